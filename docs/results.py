"""Writes the page of results from records: `python docs/results.py NAME=RECORD... > docs/results.md`."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.run_record.model import ContractResult, Run
from kubelet_conformance.run_record.reader import opened

_MARKS: Mapping[Verdict, str] = {
    Verdict.KEPT: "kept",
    Verdict.BROKEN: "**broken**",
    Verdict.KNOWN_DEVIATION: "[deviates](#deviations)",
    Verdict.NOT_EXERCISED: "·",
    Verdict.NOT_APPLICABLE: "",
    Verdict.ERROR: "**error**",
}
_COUNTED = (Verdict.KEPT, Verdict.BROKEN, Verdict.KNOWN_DEVIATION, Verdict.NOT_EXERCISED)
_ISSUE = re.compile(r"\b([\w.-]+/[\w.-]+)#(\d+)")
_HEAD = (
    "# Results\n\nWhat records of runs say of each contract.\n"
    "*Kept* and *broken* are [verdicts](verdicts.md); "
    "what *deviates* is broken in a way that the baseline of that release knows, with the reasons "
    "[below](#deviations), and where it says *broken* nobody has found out yet whether the kubelet or the "
    "contract is wrong. A dot is a contract that was not exercised, and an empty cell one that does not "
    "apply there, for instance to a kubelet without an API server. Bugs that can be reported have "
    "[pages of their own](findings/index.md).\n\n"
    "The page is written by a command, from records that `run`, `runtime` or `check` have kept:\n\n"
    "```sh\n{}\n```\n"
)


def page(runs: Mapping[str, Run]) -> str:
    """The page of these runs, by the names of their columns."""
    command = " ".join(["python docs/results.py", *(f"{name}=RECORD" for name in runs)])
    parts = [_HEAD.format(command), *_totals(runs), *_deviations(runs), *_contracts(runs)]
    return "\n".join(parts) + "\n"


def _table(title: str, columns: Sequence[str], rows: Iterator[Sequence[object]]) -> list[str]:
    lines = [f"## {title}", "", _row(columns), _row(["---"] * len(columns)), *map(_row, rows)]
    return [*lines, ""]


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(str(cell).replace('|', '&#124;') for cell in cells)} |"


def _totals(runs: Mapping[str, Run]) -> list[str]:
    words = [each.value.replace("_", " ") for each in _COUNTED]
    counts = ((name, *(run.totals[each] for each in _COUNTED)) for name, run in runs.items())
    return _table("Totals", ["", *words], counts)


def _deviations(runs: Mapping[str, Run]) -> list[str]:
    """Each reason once, with the contracts that it breaks and where."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for name, run in runs.items():
        for contract in run.contracts:
            for reason in dict.fromkeys(proof.deviation for proof in contract.evidence if proof.deviation):
                found.setdefault((name, reason), {})[contract.id] = None
    rows = ((name, ", ".join(ids), _linked(reason)) for (name, reason), ids in found.items())
    return _table("Deviations", ["", "contracts", "what is known"], rows)


def _linked(reason: str) -> str:
    """The reason, with its issues as links."""
    return _ISSUE.sub(r"[\g<0>](https://github.com/\1/issues/\2)", reason)


def _contracts(runs: Mapping[str, Run]) -> list[str]:
    by_run = {name: {each.id: each for each in run.contracts} for name, run in runs.items()}
    every: dict[str, ContractResult] = {}
    for known in by_run.values():
        every |= {key: each for key, each in known.items() if key not in every}
    columns = ["contract", "level", *runs]
    return _table(
        "Contracts",
        columns,
        (
            (key, each.level, *(_mark(known.get(key)) for known in by_run.values()))
            for key, each in every.items()
        ),
    )


def _mark(result: ContractResult | None) -> str:
    return "" if result is None else _MARKS[result.verdict]


def _runs(arguments: Sequence[str]) -> Iterator[tuple[str, Run]]:
    for argument in arguments:
        name, _, path = argument.partition("=")
        with opened(path) as record:
            yield name, record.run


if __name__ == "__main__":
    sys.stdout.write(page(dict(_runs(sys.argv[1:]))))
