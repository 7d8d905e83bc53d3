"""In which order the scenarios of a run on wall time begin, how long they take, and what --quick leaves."""

from kubelet_conformance.plugin.live.dry_run import Place, Placement
from kubelet_conformance.plugin.live.forecast import Forecast, duration
from kubelet_conformance.plugin.live.plan import Plan


def planned(*, cheapest_first: bool = False) -> Plan:
    """Two nodes at a time, two scenarios on a node; a start takes three seconds."""
    plan = Plan(cheapest_first=cheapest_first)
    plan.forecast = Forecast(nodes=2, concurrency=2, processors=4)
    plan.placements = {
        "beside-1": Placement(Place.SHARED, seconds=10),
        "beside-2": Placement(Place.SHARED, seconds=30),
        "beside-3": Placement(Place.SHARED, seconds=15),
        "alone-1": Placement(Place.ALONE, seconds=50),
        "alone-2": Placement(Place.ALONE, seconds=70),
        "nowhere": Placement(Place.NOWHERE, "needs an API server", 10),
    }
    return plan


def test_longest_come_first() -> None:
    """The node that is shared begins first, then those of the longest scenarios; each in that order too."""
    plan = planned()
    cheap = planned(cheapest_first=True)

    assert plan.by_node(plan.to_play) == [["beside-2", "beside-3", "beside-1"], ["alone-2"], ["alone-1"]]
    assert cheap.by_node(cheap.to_play) == [["beside-1", "beside-3", "beside-2"], ["alone-1"], ["alone-2"]]


def test_shortest_come_last() -> None:
    """Short scenarios begin beside the long ones, and as many as there are nodes at the end."""
    plan = planned()
    seconds = (90, 80, 70, 60, 20, 15, 10, 5)
    plan.placements = {str(each): Placement(Place.ALONE, seconds=each) for each in seconds}

    assert [each for (each,) in plan.by_node(plan.to_play)] == ["90", "15", "20", "60", "80", "70", "10", "5"]


def test_scenarios_share_several_nodes_where_there_are_many() -> None:
    """One node of eight is shared, and no more than are full."""
    plan = planned()
    plan.forecast = Forecast(nodes=24, concurrency=1, processors=4)

    assert plan.by_node(plan.to_play)[:3] == [["beside-2"], ["beside-3"], ["beside-1"]]
    plan.forecast = Forecast(nodes=24, concurrency=2, processors=4)
    assert plan.by_node(plan.to_play)[:2] == [["beside-2", "beside-1"], ["beside-3"]]


def test_estimate() -> None:
    """The shared node takes 33 s, and the shorter of the others follows it: 33 + 53 s."""
    plan = planned()

    assert plan.estimate == "5 scenarios on 3 nodes, about 86 s"
    assert Forecast(nodes=20, concurrency=1, processors=1).seconds([[7.0]] * 10) == 10 * (1.0 + 0.4 + 0.4)
    assert [duration(seconds) for seconds in (0.2, 119.5, 121)] == ["1 s", "120 s", "3 min"]


def test_time_left_follows_what_was_played() -> None:
    """What is over counts no more, and of what is being played only the rest."""
    plan = planned()
    for name in plan.to_play:
        plan.begin(name, 100)
    for name in ("beside-1", "beside-2", "beside-3", "alone-1"):
        plan.end(name)

    assert plan.time_left(150) == "about 23 s left"
    assert plan.time_left(500) == "about 3 s left"


def test_quick_keeps_what_fits() -> None:
    """The cheapest are kept as long as all together fit into a minute."""
    plan = planned()
    plan.leave_out_what_is_long()

    assert plan.to_play == ["beside-1", "beside-2", "beside-3", "alone-1"]
    assert plan.long == {"alone-2"}
    assert plan.estimate == "4 scenarios on 2 nodes, about 53 s"
