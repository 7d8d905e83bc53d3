"""The plugin's options and what they choose."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubelet_conformance.contract.catalogue import Level, UnknownContract, select
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.forms import FORMS
from kubelet_conformance.targets.stage import Choice

if TYPE_CHECKING:
    import pytest

    from kubelet_conformance.contract.frame import Contract

__all__ = ("Options", "OptionsError", "add_options")


class OptionsError(ValueError):
    """A choice that cannot be made; the message says what can."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run was asked for; see `kubelet-conformance run --help`."""

    choice: Choice
    ids: tuple[str, ...]
    level: str | None
    strict: bool
    require_exercised: bool
    record: str | None
    form: str
    output: str | None
    baseline: str | None

    @classmethod
    def of(cls, config: pytest.Config) -> Options:
        """The options of a pytest run."""
        get = config.getoption
        return cls(
            Choice(
                str(get("kc_kubelet")),
                str(get("kc_runtime")),
                str(get("kc_kubernetes")),
                int(str(get("kc_seed"))),
            ),
            tuple(get("kc_contract") or ()),
            get("kc_level"),
            bool(get("kc_strict")),
            bool(get("kc_require_exercised")),
            get("kc_record"),
            str(get("kc_format")),
            get("kc_output"),
            get("kc_baseline"),
        )

    def contracts(self) -> list[Contract]:
        """What is judged; raises OptionsError for an id that is unknown or not judged yet."""
        every = every_contract()
        try:
            ids = select(list(self.ids)) if self.ids else list(every)
        except UnknownContract as error:
            raise OptionsError(f"{error}; `kubelet-conformance list` shows them all") from None
        chosen = [every[each] for each in ids if each in every]
        if not chosen:
            raise OptionsError(
                f"{' '.join(self.ids)}: not judged yet; `kubelet-conformance list` shows what is"
            )
        return [each for each in chosen if self.level is None or each.level == self.level.upper()]

    def command(self, *ids: str) -> str:
        """The command that plays the same again, with these ids in place of the run's own."""
        chosen = {
            "--kubelet": (self.choice.kubelet, "reference"),
            "--runtime": (self.choice.runtime, "fake"),
            "--kubernetes": (self.choice.kubernetes, "1.32"),
            "--seed": (str(self.choice.seed), "0"),
        }
        options = [
            part for name, (value, usual) in chosen.items() if value != usual for part in (name, value)
        ]
        return shlex.join(["kubelet-conformance", "run", *(ids or self.ids), *options])


def add_options(parser: pytest.Parser) -> None:
    """Ours carry a prefix; pytest's own names are left alone."""
    group = parser.getgroup("kubelet-conformance", "scenarios of a pod's life, judged by contracts")
    add = group.addoption
    add("--kc-kubelet", dest="kc_kubelet", default="reference", help="reference or bug:ID")
    add("--kc-runtime", dest="kc_runtime", default="fake", help="fake or bug:ID")
    add("--kc-kubernetes", dest="kc_kubernetes", default="1.32", help="the version, such as 1.32")
    add("--kc-seed", dest="kc_seed", type=int, default=0, help="the seed of all chance")
    add("--kc-contract", dest="kc_contract", action="append", help="play and judge only these ids or globs")
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
