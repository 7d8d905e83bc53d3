"""Pods that are read from time to time are recorded where they explain what the kubelet did."""

from pathlib import Path

import pytest
from judging import outcomes
from recorded_again import record_again
from sampling import of_recorded_traces

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.recording.ordering import Owner, Work, place_of
from kubelet_conformance.recording.pod_sources import Change, PodKey
from kubelet_conformance.trace.format.reader import Reader
from kubelet_fixtures import traces

WEB, DB = Owner("default", "web", "1"), Owner("default", "db", "2")
KEY = PodKey("api", "default", "web", "1")
#: The runtime lost what no call removed, and no record of that is left: CRI-17 says so, and rightly.
REALLY_BROKEN = {"sandbox_removed_oob": {"CRI-17"}}


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0.1, 0.71])
@of_recorded_traces(one_in=3)
def test_recording_a_real_kubelet_breaks_nothing(tmp_path: Path, path: Path, offset: float) -> None:
    """Each real trace, recorded again with the pods read each second, in one file or more, stays kept."""
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    files = [
        *record_again(path, tmp_path / "one" / "trace.jsonl", gives_status=True, offset=offset),
        *record_again(
            path, tmp_path / "many" / "trace.jsonl", gives_status=True, offset=offset, max_bytes=9_000
        ),
    ]
    broken = {
        f"{file}: {key} {[each.text for each in one.evidence]} {one.reason}"
        for file in files
        for key, one in outcomes(str(file), file.read_bytes()).items()
        if one.verdict in {Verdict.BROKEN, Verdict.ERROR} and key not in REALLY_BROKEN.get(path.stem, ())
    }

    assert not broken
    assert len(files) > 2


def test_writing_that_is_behind_makes_the_trace_no_longer(tmp_path: Path) -> None:
    """Pods that are read after the end count as read at the end: there were no more calls to be seen."""
    path = traces() / "kubernetes-1.32" / "sandbox_dies.jsonl"
    [file] = record_again(path, tmp_path / "trace.jsonl", gives_status=True, offset=0.5, lag=30.0)
    with Reader(path) as reader, Reader(file) as again:
        ends = [list(each)[-1].t for each in (reader, again)]

    assert ends[0] == ends[1]


def works(*rpcs: str, owner: Owner = WEB) -> list[tuple[int, Work]]:
    """Calls about a pod, at 0, 10, 20 ...; `hook` is an exec without timeout, `new` makes a container."""
    found: list[tuple[int, Work]] = []
    for place, rpc in enumerate(rpcs):
        if rpc in {"hook", "probe"}:
            work = Work(owner, "ExecSync", hook=rpc == "hook")
        elif rpc == "new":
            work = Work(owner, "CreateContainer", container="new")
        else:
            work = Work(owner, rpc, container="app" if rpc == "CreateContainer" else "")
        found.append((10 * place, work))
    return found


@pytest.mark.parametrize(
    ("what", "calls", "place"),
    [
        ("new", ("RunPodSandbox", "CreateContainer"), 0),
        ("new", (), None),
        ("going", ("StartContainer", "StopContainer"), 10),
        ("going", ("StartContainer", "hook", "StopContainer"), 10),
        ("going", ("StartContainer", "hook", "CreateContainer", "StopContainer"), 30),
        ("going", ("probe", "StopPodSandbox"), 10),
        ("going", ("StartContainer",), None),
        ("changed", ("CreateContainer", "StopContainer"), 10),
        ("changed", ("CreateContainer", "new"), 10),
        ("changed", ("CreateContainer",), None),
        ("status", ("StopContainer",), None),
    ],
)
def test_changes_come_before_what_they_explain(what: str, calls: tuple[str, ...], place: int | None) -> None:
    """A new pod before its first call, a deletion before the stop and its hook, a new container before it."""
    change = Change(KEY, what, (), frozenset({"app"}))

    assert place_of(change, works(*calls)) == place


def test_calls_of_other_pods_explain_nothing() -> None:
    """Only calls about the pod count: by UID where both have one, else by name."""
    stopped = works("StopContainer", owner=DB)
    static = PodKey("file", "default", "db", "")

    assert place_of(Change(KEY, "going", ()), stopped) is None
    assert place_of(Change(static, "going", ()), stopped) == 0
