"""The plugin's options and what they choose."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kubelet_conformance.contract.catalogue import Level, UnknownContract, select
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.forms import FORMS
from kubelet_conformance.reports.played_run import Played
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.trace.format.errors import BadInputError


class OptionsError(BadInputError):
    """A choice that cannot be made; the message says what can."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run was asked for; see `kubelet-conformance run --help`.

    `invocation` are pytest's own arguments where somebody called pytest, and None in `run`.
    """

    choice: Choice
    ids: tuple[str, ...]
    scenarios: tuple[str, ...]
    level: str | None
    strict: bool
    require_exercised: bool
    record: str | None
    form: str
    output: str | None
    baseline: str | None
    write_baseline: str | None
    debug: bool
    budget: float
    quick: bool
    fail_fast: bool
    concurrency: int
    invocation: tuple[str, ...] | None

    @classmethod
    def of(cls, config: pytest.Config) -> Options:
        """The options of a pytest run."""
        is_run = not config.pluginmanager.hasplugin("terminalreporter")
        given = {name.replace("-", "_"): config.getoption(_dest(name)) for name in _OPTIONS}
        return cls.given(given, None if is_run else tuple(map(str, config.invocation_params.args)))

    @classmethod
    def given(cls, values: Mapping[str, Any], invocation: tuple[str, ...] | None = None) -> Options:
        """The options of these values, by the names that `run` has for them; None is as usual."""
        usual = {"budget": BUDGET_SECONDS, "concurrency": CONCURRENCY, "kubernetes": ""}
        values = {**values, **{name: each for name, each in usual.items() if values[name] is None}}
        chosen = ("kubelet", "runtime", "kubernetes", "seed", "kill_foreign_pods")
        gates, config = tuple(values.get("gates") or ()), values.get("config") or ""
        same = ("level", "strict", "require_exercised", "record", "output", "baseline", "debug")
        flags = (*same, "write_baseline", "quick", "fail_fast")
        return cls(
            choice=Choice(**{name: values[name] for name in chosen}, gates=gates, config=config),
            ids=tuple(values["contract"] or ()),
            scenarios=tuple(values["scenario"] or ()),
            form=values["format"],
            budget=values["budget"],
            concurrency=values["concurrency"],
            invocation=invocation,
            **{name: values[name] for name in flags},
        )

    def contracts(self) -> list[Contract]:
        """What is judged; raises OptionsError for an id that is unknown or that no contract judges."""
        every = every_contract()
        try:
            ids = select(list(self.ids)) if self.ids else list(every)
        except UnknownContract as error:
            raise OptionsError(f"{error}; `kubelet-conformance list` shows them all") from None
        known = [every[each] for each in ids if each in every]
        chosen = [each for each in known if self.level is None or each.level == self.level.upper()]
        if not known:
            raise OptionsError(f"{' '.join(self.ids)}: not judged; `kubelet-conformance explain` says why")
        if not chosen:
            raise OptionsError(
                f"none of {' '.join(self.ids)} is a {str(self.level).upper()}; leave out level"
            )
        return chosen

    def command(self) -> str:
        """The command of this run."""
        if self.invocation is not None:
            return shlex.join(["python", "-m", "pytest", *self.invocation])
        return shlex.join([*_RUN, *self.ids, *self._given("--")])

    def again(self, contract: str, played: Iterable[Played]) -> str:
        """The command that plays these scenarios again and judges them by this contract."""
        played = list(played)
        files = dict.fromkeys(each.file for each in played if each.file)
        names = [each.scenario for each in played]
        if files:
            wanted = [f"--kc-contract={contract}", *(f"--kc-scenario={name}" for name in names)]
            return shlex.join([*_PYTEST, *files, *wanted, *self._chosen("--kc-")])
        scenarios = [part for name in names for part in ("--scenario", name)]
        return shlex.join([*_RUN, contract, *scenarios, *self._chosen("--")])

    def _given(self, prefix: str) -> list[str]:
        """All options that are not as usual and that decide what is played, judged or concluded."""
        scenarios = [f"{prefix}scenario={name}" for name in self.scenarios]
        named = ("strict", "require_exercised", "quick", "fail_fast")
        flags = {name.replace("_", "-"): getattr(self, name) for name in named}
        texts = {"level": self.level, "baseline": self.baseline}
        return [
            *scenarios,
            *self._chosen(prefix),
            *(f"{prefix}{name}" for name, value in flags.items() if value),
            *(f"{prefix}{name}={value}" for name, value in texts.items() if value is not None),
        ]

    def _chosen(self, prefix: str) -> list[str]:
        """The options that choose the target, where they are not as usual."""
        usual = Choice()
        names = ("kubelet", "runtime", "kubernetes", "seed", "config")
        given = {name: getattr(self.choice, name) for name in names}
        gates = [f"{prefix}gates={each}" for each in self.choice.gates]
        chosen = [f"{prefix}{name}={value}" for name, value in given.items() if value != getattr(usual, name)]
        chosen += gates
        if self.choice.kill_foreign_pods:
            chosen.append(f"{prefix}kill-foreign-pods")
        if self.budget != BUDGET_SECONDS:
            chosen.append(f"{prefix}budget={self.budget:g}")
        if self.concurrency != CONCURRENCY:
            chosen.append(f"{prefix}concurrency={self.concurrency}")
        return chosen


BUDGET_SECONDS = 120.0
"""The wall time that a scenario may need, unless another is given."""
CONCURRENCY = 8
"""How many scenarios are played on one node at a time, unless another is given: a relist takes as long as all
pods of the node together."""
_RUN = ("kubelet-conformance", "run")
_PYTEST = ("python", "-m", "pytest", "-p", "kubelet_conformance.plugin")


_REAL = "on a real runtime, "
_FLAG: dict[str, Any] = {"action": "store_true"}
_OPTIONS: dict[str, dict[str, Any]] = {
    "kubelet": {"default": "reference", "help": "reference, reference-process, PATH, FILE.toml, or bug:ID"},
    "runtime": {"default": "fake", "help": "fake, containerd or unix:///PATH"},
    "kubernetes": {"default": "", "help": "play all as this version, such as 1.32"},
    "gates": {"action": "append", "help": "feature gates of a kubelet in its own process: A=true,B=false"},
    "config": {"metavar": "FILE", "help": "fields for the configuration of a kubelet in its own process"},
    "seed": {"type": int, "default": 0, "help": "the seed of all chance"},
    "contract": {"action": "append", "help": "play and judge only these ids or globs"},
    "scenario": {"action": "append", "help": "play these names or globs only"},
    "level": {"choices": [level.value.lower() for level in Level], "help": "judge only this level"},
    "strict": {**_FLAG, "help": "fail on a broken SHOULD too"},
    "require-exercised": {**_FLAG, "help": "fail on a contract that was not exercised"},
    "record": {"metavar": "DIR", "help": "keep the traces and run.json"},
    "format": {"choices": FORMS, "default": "terminal", "help": "the report's form"},
    "output": {"metavar": "FILE", "help": "write the report to FILE"},
    "baseline": {"metavar": "NAME|FILE", "help": "known deviations: kubernetes-1.36, or TOML"},
    "write-baseline": {
        "metavar": "FILE",
        "help": "write what is broken as a baseline without reasons",
    },
    "budget": {
        "type": float,
        "default": BUDGET_SECONDS,
        "metavar": "SECONDS",
        "help": f"{_REAL}leave out scenarios that need more wall time",
    },
    "quick": {**_FLAG, "help": f"{_REAL}play only what fits into a minute"},
    "fail-fast": {**_FLAG, "help": "end at the first break that fails the run, the cheapest scenarios first"},
    "concurrency": {
        "type": int,
        "default": CONCURRENCY,
        "metavar": "N",
        "help": f"{_REAL}run at most N scenarios at the same time on one node",
    },
    "kill-foreign-pods": {
        **_FLAG,
        "help": "play on a runtime that has pods of others too; the kubelet KILLS them",
    },
    "debug": {**_FLAG, "help": "show where an internal error happened"},
}


def add_options(parser: pytest.Parser) -> None:
    """Ours carry a prefix; pytest's own names are left alone."""
    group = parser.getgroup("kubelet-conformance", "scenarios of a pod's life, judged by contracts")
    for name, how in _OPTIONS.items():
        group.addoption(f"--kc-{name}", dest=_dest(name), **how)


def _dest(name: str) -> str:
    return f"kc_{name.replace('-', '_')}"
