"""What was done to a real kubelet is done to the reference in process: it does and says the same.

`differences.toml` lists what differs, with the reason why it may.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from reenact.actions import read_actions
from reenact.comparing import RETRY_SECONDS_MAX, differences
from reenact.replay import replay

from kubelet_conformance.targets.controls import ScenarioError
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import Event
from kubelet_fixtures import traces

TRACES = [
    f"{path.parent.name.removeprefix('kubernetes-')}/{path.stem}"
    for path in sorted(traces().glob("*/*.jsonl"))
]


def listed() -> list[dict[str, Any]]:
    """All differences that are known."""
    text = Path(__file__).with_name("differences.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["difference"]
    return found


def expected(trace: str) -> list[str]:
    """What is known to differ, in the words of `differences`."""
    rows = [row for row in listed() if row["trace"] == trace]
    real = [f"- {line}" for row in rows for line in row.get("only_real", ())]
    return real + [f"+ {line}" for row in rows for line in row.get("only_reference", ())]


def recorded(trace: str) -> str:
    """Where a trace is."""
    return str(traces() / f"kubernetes-{trace}.jsonl")


def compared(trace: str, folder: Path, kubelet: str = "reference") -> tuple[str, ...]:
    """What differs when what was done in a trace is done to a kubelet in process."""
    path = folder / "reenacted.jsonl"
    try:
        played = replay(read_actions(recorded(trace)), longer_seconds=RETRY_SECONDS_MAX, kubelet=kubelet)
    except ScenarioError as error:
        played = error.trace
    path.write_bytes(played)
    return differences(recorded(trace), str(path))


def texts(path: str) -> set[str]:
    """The texts of all events about pods, without UIDs, durations and what a version writes otherwise."""
    with Reader(path) as reader:
        events = [each for each in reader if isinstance(each, Event) and each.reason != "MissingClusterDNS"]
    said = (f"{each.reason} {each.container} {each.message.replace(each.uid, 'UID')}" for each in events)
    durations = (re.sub(r"\d[\d.]*[mµ]?s\b", "N s", each) for each in said)
    # Before 1.32 there is no colon.
    return {re.sub(r"Created container:? ", "Created container ", each) for each in durations}


@pytest.mark.parametrize("trace", TRACES)
def test_the_reference_does_what_the_real_kubelet_did(trace: str, tmp_path: Path) -> None:
    """The same calls that change something, statuses and events, but for what is listed."""
    assert sorted(compared(trace, tmp_path)) == sorted(expected(trace))


@pytest.mark.parametrize("trace", TRACES)
def test_the_reference_says_what_the_real_kubelet_said(trace: str, tmp_path: Path) -> None:
    """Events have the same texts too, but for UIDs and for how long a pull took."""
    compared(trace, tmp_path)

    assert texts(recorded(trace)) - texts(str(tmp_path / "reenacted.jsonl")) == set()


def test_each_listed_difference_has_a_trace_and_a_reason() -> None:
    """Nothing is listed for a trace that is not played, and nothing without a reason."""
    assert [row for row in listed() if row["trace"] not in TRACES or not row["because"]] == []


@pytest.mark.parametrize(
    ("trace", "bug"),
    [
        ("1.32/delete_graceful", "K8S-53727"),
        ("1.32/sandbox_dies_never", "K8S-68980"),
        ("1.32/exit0_never", "K8S-98718"),
        ("1.32/hooks", "K8S-45140"),
        ("1.32/static_removed", "K8S-68738"),
    ],
)
def test_a_kubelet_with_a_bug_differs(trace: str, bug: str, tmp_path: Path) -> None:
    """The comparison is no formality: it tells a kubelet that had a bug from a real one of today."""
    assert sorted(compared(trace, tmp_path, f"bug:{bug}")) != sorted(expected(trace))
