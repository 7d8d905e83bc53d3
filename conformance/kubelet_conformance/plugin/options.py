"""The plugin's options and what they choose."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from kubelet_conformance.contract.catalogue import Level, UnknownContract, select
from kubelet_conformance.contract.frame import Contract
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.forms import FORMS
from kubelet_conformance.reports.played import Played
from kubelet_conformance.targets.choice import Choice


class OptionsError(ValueError):
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
    debug: bool
    budget: float
    concurrency: int
    invocation: tuple[str, ...] | None

    @classmethod
    def of(cls, config: pytest.Config) -> Options:
        """The options of a pytest run."""
        get = config.getoption
        is_run = not config.pluginmanager.hasplugin("terminalreporter")
        return cls(
            Choice(
                str(get("kc_kubelet")),
                str(get("kc_runtime")),
                str(get("kc_kubernetes")),
                int(str(get("kc_seed"))),
                bool(get("kc_kill_foreign_pods")),
            ),
            tuple(get("kc_contract") or ()),
            tuple(get("kc_scenario") or ()),
            get("kc_level"),
            bool(get("kc_strict")),
            bool(get("kc_require_exercised")),
            get("kc_record"),
            str(get("kc_format")),
            get("kc_output"),
            get("kc_baseline"),
            bool(get("kc_debug")),
            float(str(get("kc_budget"))),
            int(str(get("kc_concurrency"))),
            None if is_run else tuple(map(str, config.invocation_params.args)),
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
            raise OptionsError(f"{' '.join(self.ids)}: not judged; `kubelet-conformance explain` tells why")
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
        flags = {"strict": self.strict, "require-exercised": self.require_exercised}
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
        given = {name: getattr(self.choice, name) for name in ("kubelet", "runtime", "kubernetes", "seed")}
        chosen = [f"{prefix}{name}={value}" for name, value in given.items() if value != getattr(usual, name)]
        if self.choice.kill_foreign_pods:
            chosen.append(f"{prefix}kill-foreign-pods")
        if self.budget != BUDGET_SECONDS:
            chosen.append(f"{prefix}budget={self.budget:g}")
        if self.concurrency != CONCURRENCY:
            chosen.append(f"{prefix}concurrency={self.concurrency}")
        return chosen


BUDGET_SECONDS = 120.0
"""The wall time that a scenario may need, unless told otherwise."""
CONCURRENCY = 8
"""How many scenarios are played on one node at a time, unless told otherwise."""
_RUN = ("kubelet-conformance", "run")
_PYTEST = ("python", "-m", "pytest", "-p", "kubelet_conformance.plugin")


def add_options(parser: pytest.Parser) -> None:
    """Ours carry a prefix; pytest's own names are left alone."""
    group = parser.getgroup("kubelet-conformance", "scenarios of a pod's life, judged by contracts")
    add = group.addoption
    add("--kc-kubelet", dest="kc_kubelet", default="reference", help="reference or bug:ID")
    add("--kc-runtime", dest="kc_runtime", default="fake", help="fake, containerd or unix:///PATH")
    add("--kc-kubernetes", dest="kc_kubernetes", default="", help="play all as this version, such as 1.32")
    add("--kc-seed", dest="kc_seed", type=int, default=0, help="the seed of all chance")
    add("--kc-contract", dest="kc_contract", action="append", help="play and judge only these ids or globs")
    add("--kc-scenario", dest="kc_scenario", action="append", help="play these names or globs only")
    levels = [level.value.lower() for level in Level]
    add("--kc-level", dest="kc_level", choices=levels, default=None, help="judge only this level")
    add("--kc-strict", dest="kc_strict", action="store_true", help="fail on a broken SHOULD too")
    add(
        "--kc-require-exercised",
        dest="kc_require_exercised",
        action="store_true",
        help="fail on a contract that was not exercised",
    )
    add("--kc-record", dest="kc_record", default=None, metavar="DIR", help="keep the traces and run.json")
    add("--kc-format", dest="kc_format", choices=FORMS, default="terminal", help="the report's form")
    add("--kc-output", dest="kc_output", default=None, metavar="FILE", help="write the report to FILE")
    add("--kc-baseline", dest="kc_baseline", default=None, metavar="FILE", help="known deviations, in TOML")
    add(
        "--kc-budget",
        dest="kc_budget",
        type=float,
        default=BUDGET_SECONDS,
        metavar="SECONDS",
        help="on a real runtime, leave out scenarios that need more wall time",
    )
    add(
        "--kc-concurrency",
        dest="kc_concurrency",
        type=int,
        default=CONCURRENCY,
        help="on a real runtime, play so many scenarios at a time on one node",
    )
    add(
        "--kc-kill-foreign-pods",
        dest="kc_kill_foreign_pods",
        action="store_true",
        help="play on a runtime that has pods of others too; the kubelet KILLS them",
    )
    add("--kc-debug", dest="kc_debug", action="store_true", help="show where an internal error happened")
