"""How events are counted, combined and cut before they are sent."""

from lightkube.models.core_v1 import Pod
from lightkube.models.meta_v1 import ObjectMeta
from on_loop import in_virtual_time

from kubelet_reference.server.api_client.events import Correlator
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.util.ports import PodEvent

POD = Pod(metadata=ObjectMeta(name="web", namespace="default", uid="u", resourceVersion="7"))
NODE = Pod(metadata=ObjectMeta(name="node", uid="node"))


def event(message: str, pod: Pod = POD, reason: str = "BackOff", path: str = "") -> PodEvent:
    """An event with this message."""
    return PodEvent(pod, "Warning", reason, message, path)


@in_virtual_time
async def test_repeats_are_counted() -> None:
    """The same event again is the object of before with another count; one of another container is not."""
    clock = LoopClock(0)
    correlator = Correlator(clock, "node")
    first = correlator.correlated(event("m"))
    other = correlator.correlated(event("m", path="spec.containers{app}"))
    await clock.sleep(60)
    again = correlator.correlated(event("m"))
    of_node = correlator.correlated(event("m", NODE))

    assert first is not None
    assert other is not None
    assert again is not None
    assert of_node is not None
    assert (first["count"], other["count"], again["count"]) == (1, 1, 2)
    assert first["metadata"] == again["metadata"] != other["metadata"]
    assert (again["firstTimestamp"], again["lastTimestamp"]) == (
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:01:00Z",
    )
    assert other["involvedObject"]["fieldPath"] == "spec.containers{app}"
    assert (first["involvedObject"]["kind"], first["involvedObject"]["resourceVersion"]) == ("Pod", "7")
    assert of_node["involvedObject"] == {"kind": "Node", "name": "node", "uid": "node", "apiVersion": "v1"}
    assert of_node["metadata"]["namespace"] == "default"


@in_virtual_time
async def test_similar_events_are_combined() -> None:
    """From the tenth message on, events that differ in their messages alone are one object."""
    clock = LoopClock(0)
    correlator = Correlator(clock, "node")
    made = [correlator.correlated(event(f"m{number}")) for number in range(12)]
    await clock.sleep(601)
    later = correlator.correlated(event("m12"))

    assert [one and one["count"] for one in made] == [*[1] * 10, 2, 3]
    assert [one and one["message"] for one in made[9:]] == [
        "(combined from similar events): m9",
        "(combined from similar events): m10",
        "(combined from similar events): m11",
    ]
    assert later is not None
    assert later["message"] == "m12"


@in_virtual_time
async def test_floods_are_cut() -> None:
    """Of one object 25 events are sent, then one every five minutes; the others are not concerned."""
    clock = LoopClock(0)
    correlator = Correlator(clock, "node")
    sent = [correlator.correlated(event("m", reason=f"R{number}")) for number in range(30)]
    await clock.sleep(300)
    later = [correlator.correlated(event("m", reason=f"L{number}")) for number in range(2)]

    assert [one is not None for one in sent] == [True] * 25 + [False] * 5
    assert [one is not None for one in later] == [True, False]
    assert correlator.correlated(event("m", NODE)) is not None
