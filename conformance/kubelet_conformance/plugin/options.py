"""What the plugin's options choose."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kubelet_conformance.contract.catalogue import UnknownContract, select
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.plugin.arguments import ARGUMENTS, BUDGET_SECONDS, CONCURRENCY, destination
from kubelet_conformance.reports.delivery import Delivery
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.run_record.worker_pool import processors
from kubelet_conformance.targets.bugs import declared_bugs
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.trace.format.errors import BadInputError

_RUN = ("kubelet-conformance", "run")
_PYTEST = ("python", "-m", "pytest", "-p", "kubelet_conformance.plugin")


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
    shard: tuple[int, int] | None
    level: str | None
    strict: bool
    require_exercised: bool
    record: str | None
    delivery: Delivery
    baseline: str | None
    write_baseline: str | None
    budget: float
    quick: bool
    fail_fast: bool
    concurrency: int
    invocation: tuple[str, ...] | None

    @classmethod
    def of(cls, config: pytest.Config) -> Options:
        """The options of a pytest run."""
        is_run = not config.pluginmanager.hasplugin("terminalreporter")
        given = {name.replace("-", "_"): config.getoption(destination(name)) for name in ARGUMENTS}
        return cls.given(given, None if is_run else tuple(map(str, config.invocation_params.args)))

    @classmethod
    def given(cls, values: Mapping[str, Any], invocation: tuple[str, ...] | None = None) -> Options:
        """The options of these values, by the names that `run` has for them; None is as usual."""
        usual = {"budget": BUDGET_SECONDS, "concurrency": CONCURRENCY, "kubernetes": ""}
        values = {**values, **{name: each for name, each in usual.items() if values[name] is None}}
        chosen = ("kubelet", "runtime", "kubernetes", "seed", "kill_foreign_pods")
        gates, config = tuple(values.get("gates") or ()), values.get("config") or ""
        then = values.get("then_kubelet") or ""
        same = ("shard", "level", "strict", "require_exercised", "record", "baseline")
        flags = (*same, "write_baseline", "quick", "fail_fast")
        choice = Choice(
            **{name: values[name] for name in chosen}, gates=gates, config=config, then_kubelet=then
        )
        return cls(
            choice=choice,
            ids=tuple(values["contract"] or ()),
            scenarios=tuple(values["scenario"] or ()),
            delivery=Delivery(
                values["format"],
                values["output"],
                tuple(values["report"] or ()),
                values["debug"],
                values["verbose"],
                bugs=declared_bugs,
                processes=1 if choice.is_live else processors(),
            ),
            budget=values["budget"],
            concurrency=values["concurrency"],
            invocation=invocation,
            **{name: values[name] for name in flags},
        )

    @property
    def part(self) -> str:
        """The part of the whole that is played, such as 2/5; empty for all."""
        return "" if self.shard is None else f"{self.shard[0]}/{self.shard[1]}"

    def contracts(self) -> list[Contract]:
        """What is judged; raises OptionsError for an id that is unknown or that no contract judges."""
        every = every_contract()
        try:
            ids = select(list(self.ids)) if self.ids else list(every)
        except UnknownContract as error:
            is_scenario = "." in error.name
            remedy = "scenarios are for --scenario" if is_scenario else "`kubelet-conformance list` shows all"
            raise OptionsError(f"{error}; {remedy}") from None
        known = [every[each] for each in ids if each in every]
        chosen = [each for each in known if self.level is None or each.level == self.level.upper()]
        if not known:
            raise OptionsError(f"{' '.join(self.ids)}: not judged; `kubelet-conformance explain` says why")
        if not chosen:
            raise OptionsError(
                f"none of {' '.join(self.ids)} is a {str(self.level).upper()}; leave out level"
            )
        return chosen

    def command(self) -> tuple[str, ...]:
        """The command of this run, word by word."""
        if self.invocation is not None:
            return ("python", "-m", "pytest", *self.invocation)
        return (*_RUN, *self.ids, *self._given("--"))

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
        texts = {"shard": self.part or None, "level": self.level, "baseline": self.baseline}
        return [
            *scenarios,
            *self._chosen(prefix),
            *(f"{prefix}{name}" for name, value in flags.items() if value),
            *(f"{prefix}{name}={value}" for name, value in texts.items() if value is not None),
        ]

    def _chosen(self, prefix: str) -> list[str]:
        """The options that choose the target, where they are not as usual."""
        usual = Choice()
        names = ("kubelet", "then_kubelet", "runtime", "kubernetes", "seed", "config")
        given = {name: getattr(self.choice, name) for name in names}
        gates = [f"{prefix}gates={each}" for each in self.choice.gates]
        unusual = {name: value for name, value in given.items() if value != getattr(usual, name)}
        chosen = [f"{prefix}{name.replace('_', '-')}={value}" for name, value in unusual.items()]
        chosen += gates
        if self.choice.kill_foreign_pods:
            chosen.append(f"{prefix}kill-foreign-pods")
        if self.budget != BUDGET_SECONDS:
            chosen.append(f"{prefix}budget={self.budget:g}")
        if self.concurrency != CONCURRENCY:
            chosen.append(f"{prefix}concurrency={self.concurrency}")
        return chosen
