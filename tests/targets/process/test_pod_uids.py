"""Events in a kubelet's log get the UID of the pod that they are about, or none where that is not certain."""

from typing import Any

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.targets.process.pod_uids import PodUids
from kubelet_conformance.targets.process.pod_watch import LogEvents
from kubelet_conformance.trace.format.recorder import Item, Recorder


class Bench:
    """A record of one name, with the UIDs that events of it get."""

    def __init__(self) -> None:
        self.recorder = Recorder(lambda: 0.0)
        self._events = LogEvents(self.recorder, PodUids(self.recorder, "Node-1").of_event)

    def want(self, container: str, uid: str | None = None) -> None:
        """A manifest is written."""
        metadata: dict[str, Any] = {"name": "web"} if uid is None else {"name": "web", "uid": uid}
        pod = {"metadata": metadata, "spec": {"containers": [{"name": container}]}}
        self.recorder.record("pod", op="set", source="file", pod=pod)

    def show(self, uid: str) -> None:
        """The kubelet lists the pod."""
        self.recorder.record("status", uid=uid, namespace="default", name="web-node-1", status={})

    def run(self, uid: str) -> None:
        """A sandbox is run for it."""
        metadata = cri.PodSandboxMetadata(name="web-node-1", namespace="default", uid=uid)
        config = cri.PodSandboxConfig(metadata=metadata)
        self.recorder.call("RunPodSandbox", cri.RunPodSandboxRequest(config=config))

    def event(self, container: str = "") -> str | None:
        """The UID that an event gets."""
        path = f"spec.containers{{{container}}}" if container else ""
        line = f'I0101 1 event.go:1] "Event occurred" object="default/web-node-1" fieldPath="{path}" '
        self._events.read_line(f'{line}kind="Pod" type="Normal" reason="Killing" message="m"'.encode())
        found = self.recorder.records[-1]
        assert isinstance(found, Item)
        uid: str | None = found.fields["uid"]
        return uid


def test_pod_that_is_not_listed_has_its_uid() -> None:
    """What the manifest states holds before the pod is listed; without it, what the sandbox is run for."""
    stated, given = Bench(), Bench()
    stated.want("c1", uid="u1")
    given.want("c1")
    before = given.event("c1")
    given.run("u2")

    assert stated.event("c1") == "u1"
    assert (before, given.event("c1"), given.event()) == (None, "u2", "u2")


def test_event_of_an_old_version_is_not_the_new_ones() -> None:
    """A container's event is of the version that runs, whichever is listed; the pod's own may be of any."""
    bench = Bench()
    bench.want("c1")
    bench.run("u1")
    bench.want("c1")
    while_unknown = bench.event("c1"), bench.event()
    bench.show("u2")
    old = bench.event("c1"), bench.event()
    bench.run("u2")

    assert while_unknown == old == ("u1", None)
    assert (bench.event("c1"), bench.event()) == ("u2", "u2")


def test_containers_tell_versions_apart() -> None:
    """A version that never ran is known by a container that only it has."""
    bench = Bench()
    bench.want("old", uid="u1")
    bench.run("u1")
    bench.want("new", uid="u2")

    assert (bench.event("old"), bench.event("new"), bench.event("other")) == ("u1", "u2", None)


def test_name_that_is_not_known_has_no_uid() -> None:
    """An event about a pod of nobody's is recorded without one."""
    assert Bench().event("c1") is None


def test_event_of_the_node_has_its_name() -> None:
    """An event of the node is on the record with the node's name as its UID."""
    recorder = Recorder(lambda: 0.0)
    events = LogEvents(recorder, PodUids(recorder, "node-1").of_event)
    line = 'I0101 1 event.go:1] "Event occurred" object="node-1" fieldPath="" kind="Node" type="Warning" '
    events.read_line(f'{line}reason="ContainerGCFailed" message="m"'.encode())
    events.read_line(line.replace('"Node"', '"Service"').encode())

    (found,) = recorder.records
    assert isinstance(found, Item)
    named = (found.fields["uid"], found.fields["namespace"], found.fields["name"], found.fields["reason"])
    assert named == ("node-1", "", "node-1", "ContainerGCFailed")
