"""The timeline of a trace: what is news, what lasts, where a break shows, and where time is folded."""

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from runtime_reads import list_containers
from trace_builder import TraceBuilder

from kubelet_conformance.reports.timeline.axis import FOLDED_SECONDS, axis_of
from kubelet_conformance.reports.timeline.model import Item, Lane, LaneKind, Life, Timeline, What
from kubelet_conformance.reports.timeline.reading import timeline_of
from kubelet_conformance.run_record.model import Proof
from kubelet_conformance.trace.format.records import Body

WIDTH = 20.0


def written(s: TraceBuilder, folder: Path) -> Path:
    """The trace as a file."""
    path = folder / "t.jsonl"
    path.write_bytes(s.text())
    return path


def life() -> TraceBuilder:
    """A container that ends and is started again, with polls that say nothing new between."""
    s = TraceBuilder()
    web = s.pod("web")
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox, "c1")
    for _ in range(5):
        s.wait(1).sandbox_status(sandbox)
    s.wait(1).exited(c1, code=1)
    s.wait(10).run_container(web, sandbox, "c1", attempt=1)
    return s


def test_lanes_stand_by_pod(tmp_path: Path) -> None:
    """A pod, its sandbox and its container have a lane each, below those of the node."""
    found = timeline_of(written(life(), tmp_path))

    lanes = [found.lanes[number] for number in found.lane_order()]
    of_pod = [each for each in lanes if each.pod]
    assert [each.kind for each in of_pod] == [LaneKind.POD, LaneKind.SANDBOX, LaneKind.CONTAINER]
    assert {each.pod for each in of_pod} == {"default/web"}
    assert lanes[-3:] == of_pod


def test_what_lies_on_the_lanes_of_the_node_is_about_a_pod(tmp_path: Path) -> None:
    """A status is about its pod, and a list of all containers about none."""
    s = life()
    s.status(s.pod("own"), "Running")
    list_containers(s)
    found = timeline_of(written(s, tmp_path))

    pods = {each.what: each.pod for each in found.items if not found.lanes[each.lane].pod}
    assert (pods[What.STATUS], pods[What.READ]) == ("default/own", "")


def test_a_stall_is_the_machines(tmp_path: Path) -> None:
    """What a starved machine does is on a lane of its own, also where no scenario is played."""
    s = life()
    s.record("stall", of="recorder", seconds=2.0, pressure=0.9)
    found = timeline_of(written(s, tmp_path))

    assert LaneKind.MACHINE in {each.kind for each in found.lanes}
    assert LaneKind.SCENARIO not in {each.kind for each in found.lanes}


def test_attempts_last_from_start_to_exit(tmp_path: Path) -> None:
    """Each attempt is a span of its own; what has not ended is open."""
    found = timeline_of(written(life(), tmp_path))

    container = next(n for n, each in enumerate(found.lanes) if each.kind is LaneKind.CONTAINER)
    lives = [each for each in found.lives if each.lane == container]
    assert [each.label for each in lives] == ["#0", "#1"]
    assert [each.end is None for each in lives] == [False, True]


def test_what_says_nothing_new_is_counted_and_not_shown(tmp_path: Path) -> None:
    """Of polls with the same answer the first is news, and the rest is quiet."""
    found = timeline_of(written(life(), tmp_path))

    assert [each.what for each in found.items].count(What.EXIT) == 1
    assert sum(each.text.startswith("PodSandboxStatus") for each in found.items) == 1
    assert sum(each.records for each in found.quiet) >= 5


def test_evidence_is_shown_though_it_is_no_news(tmp_path: Path) -> None:
    """Every record that proves a break has an item, which names the contract."""
    s = TraceBuilder()
    sandbox = s.run_sandbox(s.pod("web"))
    for _ in range(3):
        s.wait(1).sandbox_status(sandbox)
    path = written(s, tmp_path)
    last = timeline_of(path).records - 2
    proof = Proof(trace="t", seq=(last,), text="ready of c1 is False")

    found = timeline_of(path, [("A-01", proof)], bodies=True)

    (marked,) = found.having([last])
    assert marked.breaks == ("A-01",)
    assert marked.bodies
    assert found.findings[0].by is None


@pytest.mark.parametrize("by", [5.0, None])
def test_a_deadline_is_drawn_where_it_is_known(by: float | None, tmp_path: Path) -> None:
    """What was expected within some time has a place on the axis, though nothing happened then."""
    path = written(life(), tmp_path)
    first = timeline_of(path).items[0]
    proof = Proof(trace="t", seq=(first.seq,), text="c1 is stopped", due=by)

    found = timeline_of(path, [("A-01", proof)])

    assert found.findings[0].by == (None if by is None else first.t + by)
    axis = axis_of(found, lambda _: WIDTH)
    if by is not None:
        assert axis.at(first.t) < axis.at(first.t + by) < axis.width


def test_time_without_news_is_folded(tmp_path: Path) -> None:
    """A long pause takes as much room as another; the order of items is that of the trace."""
    found = timeline_of(written(life(), tmp_path))

    axis = axis_of(found, lambda _: WIDTH)

    assert axis.folds
    assert all(each.seconds > FOLDED_SECONDS for each in axis.folds)
    assert len({each.width for each in axis.folds}) == 1
    begins = [begin for begin, _ in axis.spans]
    in_order = sorted(range(len(begins)), key=lambda number: found.items[number].seq)
    assert [begins[number] for number in in_order] == sorted(begins)


def test_items_of_a_lane_do_not_lie_on_each_other(tmp_path: Path) -> None:
    """Calls that follow each other at the same time stand side by side."""
    s = TraceBuilder()
    sandbox = s.run_sandbox(s.pod("web"))
    for _ in range(4):
        s.stop_sandbox(sandbox)
    found = timeline_of(written(s, tmp_path))

    axis = axis_of(found, lambda _: WIDTH)

    spans = sorted(span for span, item in zip(axis.spans, found.items, strict=True) if item.what is What.STOP)
    assert len(spans) == 4
    assert all(end < begin for (_, end), (begin, _) in pairwise(spans))


def test_a_long_timeline_is_shortened_around_its_breaks() -> None:
    """What is kept has the evidence in it."""
    items = [Item(seq, float(seq), 0, What.EVENT, "e", "e") for seq in range(1000)]
    items[700].breaks = ("A-01",)
    timeline = Timeline(items=items)

    timeline.shorten(100)

    assert [each.seq for each in timeline.items] == list(range(675, 775))


@pytest.mark.parametrize(("most", "kept"), [(3, [69, 70, 71]), (100, [*range(1, 100)])])
def test_bodies_are_kept_where_breaks_are(most: int, kept: list[int]) -> None:
    """Of many bodies those that are nearest to a break stay; all of few."""
    body = {"request": Body(msgspec.Raw(b"{}"))}
    items = [
        Item(seq, float(seq), 0, What.EVENT, "e", "e", bodies=dict(body) if seq else {}) for seq in range(100)
    ]
    items[70].breaks = ("A-01",)
    timeline = Timeline(items=items)

    assert timeline.keep_bodies(most) is (most < 99)
    assert [each.seq for each in timeline.items if each.bodies] == kept


def test_a_timeline_is_narrowed_to_the_pods_of_its_breaks() -> None:
    """Pods in other namespaces go, with their lives and their statuses; what else the node does stays."""
    of_pods = [Lane(LaneKind.POD, name, f"{name}/web") for name in ("broken", "other")]
    pods = ["", *(each.pod for each in of_pods)]
    items = [Item(lane, float(lane), lane, What.EVENT, "e", "e", pods[lane]) for lane in range(3)]
    items.append(Item(3, 3.0, 0, What.STATUS, "s", "s", "other/web"))
    items[1].breaks = ("A-01",)
    timeline = Timeline(
        [Lane(LaneKind.KUBELET, "kubelet"), *of_pods],
        items,
        [Life(lane, "#0", (0.0, lane)) for lane in (1, 2)],
    )
    timeline.narrow()

    assert [each.lane for each in timeline.items] == [0, 1]
    assert [each.lane for each in timeline.lives] == [1]


def test_a_damaged_trace_shows_what_can_be_read(tmp_path: Path) -> None:
    """The rest is a problem that is said."""
    path = written(life(), tmp_path)
    path.write_bytes(path.read_bytes()[:-200] + b"{")

    found = timeline_of(path)

    assert found.items
    assert found.problem
