"""Whatever stands in the bodies of a trace, it is judged or refused: nothing else happens."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.forms import FORMS, in_form
from kubelet_conformance.run_record.record import Record
from kubelet_conformance.run_record.results import Scoring, check_result
from kubelet_conformance.trace.format.errors import TraceError
from kubelet_fixtures import traces

LINES = (traces() / "kubernetes-1.32" / "sidecar_two_delete.jsonl").read_text(encoding="utf-8").splitlines()
ODD: list[Any] = [
    None,
    0,
    -1,
    2**70,
    1e300,
    True,
    "",
    "x",
    "\x1b[2J\u202e",
    "9" * 30,
    [],
    {},
    [1],
    {"a": 1},
    [[]],
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands inside a body."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = list(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        inside = list(enumerate(cast("Sequence[Any]", value)))
    for key, part in inside:
        if path:
            yield (*path, key)
        yield from places(part, (*path, key))


PLACES = [(number, path) for number, line in enumerate(LINES) for path in places(json.loads(line))]


def changed(changes: list[tuple[tuple[int, tuple[Any, ...]], Any]]) -> bytes:
    """The trace with other values at these places; a place that is gone is left alone."""
    records = {number: json.loads(LINES[number]) for (number, _), _ in changes}
    for (number, path), value in changes:
        inner = records[number]
        try:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    lines = [json.dumps(records[n]) if n in records else line for n, line in enumerate(LINES)]
    return "\n".join([*lines, ""]).encode()


@pytest.mark.slow
@settings(max_examples=75, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(ODD)), min_size=1, max_size=4))
def test_odd_bodies_are_judged_or_refused(
    changes: list[tuple[tuple[int, tuple[Any, ...]], Any]], tmp_path: Path
) -> None:
    """No judge fails, no report fails, and nothing unprintable is in either report."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(changed(changes))
    check = Check(every_contract().values())
    try:
        check.add(judge_file(str(path), check.contracts))
    except TraceError:
        return
    record = Record(check_result(check, Scoring()), Path())

    assert [key for key, each in check.results.items() if each.outcome.verdict is Verdict.ERROR] == []
    for form in FORMS:
        assert in_form(form, record, to_file=True).replace("\n", "").isprintable(), form
