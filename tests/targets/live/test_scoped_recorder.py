"""Each scenario on a shared node hears what concerns its own pods, and what concerns none."""

from typing import Any

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.node.observations import Observations
from kubelet_conformance.targets.live.scoped_recorder import Router
from kubelet_conformance.trace.format.recorder import Failed, Item, RecordedCall, Recorder

ONE, TWO = "kcrun-1-a", "kcrun-2-b"


def rpcs(view: Recorder) -> list[str]:
    """The calls that were seen."""
    return [seen.rpc for seen in view.records if isinstance(seen, RecordedCall)]


def run_sandbox(whole: Recorder, namespace: str, uid: str, sandbox: str) -> None:
    """A sandbox is run for a pod."""
    metadata = cri.PodSandboxMetadata(name="web", namespace=namespace, uid=uid)
    config = cri.PodSandboxConfig(metadata=metadata)
    call = whole.call("RunPodSandbox", cri.RunPodSandboxRequest(config=config))
    whole.reply(call, cri.RunPodSandboxResponse(pod_sandbox_id=sandbox))


def test_calls_reach_their_own_scenario() -> None:
    """A call is its pod's by namespace, UID or an id that an earlier call gave; a listing is everybody's."""
    whole = Recorder(lambda: 0.0)
    router = Router(whole)
    one, two = (router.open(scope) for scope in ("kcrun-1", "kcrun-2"))
    run_sandbox(whole, ONE, "u1", "s1")
    run_sandbox(whole, TWO, "u2", "s2")
    made = whole.call("CreateContainer", cri.CreateContainerRequest(pod_sandbox_id="s1"))
    whole.reply(made, cri.CreateContainerResponse(container_id="c1"))
    whole.reply(
        whole.call("StartContainer", cri.StartContainerRequest(container_id="c1")), Failed("UNKNOWN", "no")
    )
    uid = {"io.kubernetes.pod.uid": "u2"}
    whole.call("ListPodSandbox", cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(label_selector=uid)))
    whole.call("ListContainers", cri.ListContainersRequest())

    assert rpcs(one) == ["RunPodSandbox", "CreateContainer", "StartContainer", "ListContainers"]
    assert rpcs(two) == ["RunPodSandbox", "ListPodSandbox", "ListContainers"]
    assert router.owners == [
        *("kcrun-1", "kcrun-1", "kcrun-2", "kcrun-2"),
        *("kcrun-1", "kcrun-1", "kcrun-1", "kcrun-1", "kcrun-2", ""),
    ]


def test_records_of_other_kinds_reach_their_own_scenario() -> None:
    """Statuses, events, deletions and writes are their pod's; what a scenario records is its own."""
    whole = Recorder(lambda: 0.0)
    router = Router(whole)
    views = [router.open(scope) for scope in ("kcrun-1", "kcrun-2")]
    one, two = map(Observations, views)
    event: dict[str, Any] = {"type": "Normal", "reason": "Pulled", "message": ""}
    whole.record("pod", op="set", source="api", pod={"metadata": {"namespace": ONE, "uid": "u1"}})
    whole.record("status", uid="u1", namespace=ONE, name="web", status={"phase": "Running"})
    router.know("u2", TWO)
    whole.record("event", uid="u2", **event)
    item = {"container_id": "c2", "pod_sandbox_status": {"metadata": {"uid": "u2", "namespace": TWO}}}
    whole.record("message", rpc="GetContainerEvents", id="c1", message=item)
    whole.record("deleted", uid="u1")
    whole.record("event", uid="of nobody", **event)
    views[1].record("expect", awaited="more", met=False)
    views[1].record("fault", what="something")

    assert one.statuses == {"u1": {"phase": "Running"}}
    assert one.deleted == {"u1"}
    assert (len(one.events), len(two.events)) == (0, 1)
    assert router.owners == [*("kcrun-1", "kcrun-1", "kcrun-2", "kcrun-2"), "kcrun-1", "", *["kcrun-2"] * 2]
    assert [each.t for each in views[1].records] == [0.0] * 4


def test_late_view_hears_no_reply_to_a_call_before_it() -> None:
    """A scenario that begins while a listing is under way hears of neither its call nor its reply."""
    whole = Recorder(lambda: 0.0)
    router = Router(whole)
    call = whole.call("ListContainers", cri.ListContainersRequest())
    view = router.open("kcrun-1")
    sights = Observations(view)
    whole.reply(call, cri.ListContainersResponse())
    router.close(view)
    whole.call("ListContainers", cri.ListContainersRequest())

    assert (*sights.of("ListContainers"), *view.records) == ()


def test_removal_is_recorded_before_the_first_listing_without_it() -> None:
    """What somebody took away was gone when a listing no longer had it, though he learnt of it later."""
    whole = Recorder(lambda: 0.0)
    router = Router(whole)
    view = router.open("kcrun-1")
    mark = view.mark
    for ids in (("c1", "c2"), ("c2",)):
        call = whole.call("ListContainers", cri.ListContainersRequest(filter=cri.ContainerFilter()))
        whole.reply(call, cri.ListContainersResponse(containers=[cri.Container(id=each) for each in ids]))
    view.record_removal(mark, "c1", "s1", "app")
    view.record_removal(mark, "c2", "s1", "app")
    removals = [
        (place, seen.fields["container_id"])
        for place, seen in enumerate(whole.records)
        if isinstance(seen, Item)
    ]

    assert removals == [(3, "c1"), (5, "c2")]
    assert router.owners == ["", "", "", "kcrun-1", "", "kcrun-1"]


def test_removal_is_recorded_before_whatever_shows_it() -> None:
    """A list of one pod that had it and no longer has it, or a status that is not found, shows it as well."""
    whole = Recorder(lambda: 0.0)
    view = Router(whole).open("kcrun-1")
    ready = cri.PodSandboxStateValue(state=cri.SANDBOX_READY)
    of_pod = cri.PodSandboxFilter(label_selector={"io.kubernetes.pod.uid": "u1"})
    mark = view.mark
    others = cri.PodSandboxFilter(state=ready), cri.PodSandboxFilter(id="s2")
    for asked, found in ((of_pod, ["s1"]), *((each, []) for each in others)):
        call = whole.call("ListPodSandbox", cri.ListPodSandboxRequest(filter=asked))
        items = [cri.PodSandbox(id=each) for each in found]
        whole.reply(call, cri.ListPodSandboxResponse(items=items))
    whole.reply(
        whole.call("PodSandboxStatus", cri.PodSandboxStatusRequest(pod_sandbox_id="s2")),
        Failed("NOT_FOUND", "no such sandbox"),
    )
    asked_again = cri.ListPodSandboxRequest(filter=of_pod)
    whole.reply(whole.call("ListPodSandbox", asked_again), cri.ListPodSandboxResponse())
    view.record_removal(mark, "", "s1", "")
    view.record_removal(mark, "", "s2", "")

    assert [place for place, seen in enumerate(whole.records) if isinstance(seen, Item)] == [7, 10]


def test_what_comes_before_a_record_is_on_the_whole_record_too() -> None:
    """A scenario puts something before a call that it has seen: so it stands on both records."""
    whole = Recorder(lambda: 0.0)
    router = Router(whole)
    one = router.open("kcrun-1")
    run_sandbox(whole, TWO, "u2", "s2")
    whole.call("ListContainers", cri.ListContainersRequest())
    whole.record("kubelet", op="killed")
    one.insert(0, "fault", what="late")

    kinds = [seen.kind if isinstance(seen, Item) else "call" for seen in whole.records[2:]]
    assert kinds == ["fault", "call", "kubelet"]
    assert router.owners[2:] == ["kcrun-1", "", ""]
    assert isinstance(one.records[0], Item)
