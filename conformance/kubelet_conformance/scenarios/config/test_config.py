"""Sources of pods: what becomes of what they say, and of what they say wrongly."""

import json
from contextlib import ExitStack
from typing import Any

from kubelet_conformance.node import MANIFEST_URL, Node, container, pod, witness

WEB_PORT = {"containerPort": 80, "hostPort": 8080}


@witness("CONFIG-04", static_pod_url=MANIFEST_URL)
async def test_three_sources_are_merged(node: Node) -> None:
    """Pods from the API server, the folder and the URL run together, and end alone."""
    own = node.want_static(pod(name="own"))
    (served,) = node.serve(pod(name="served"))
    await node.run(name="bound")
    await own.until_running("c1")
    await served.until_running("c1", contract="CONFIG-14")
    node.manifests.remove("own.yaml")
    await own.until_stopped()
    await node.wait(5)


@witness("CONFIG-02")
async def test_only_what_changed_is_touched(node: Node) -> None:
    """A list that brings one new pod and one changed pod leaves the others alone."""
    await node.run(name="first")
    changed = await node.run(name="changed")
    await node.wait(3)
    await node.run(name="new")
    changed.annotate({"a": "b"})
    await node.wait(5)


@witness("CONFIG-03", static_pod_url=MANIFEST_URL)
async def test_what_goes_makes_room_for_what_comes(node: Node) -> None:
    """When one list drops a pod and brings another that takes its port, the first no longer counts."""
    (old,) = node.serve(pod(container(command="run stopdelay=2", ports=[WEB_PORT]), name="old"))
    await old.until_running("c1")
    (new,) = node.serve(pod(container(ports=[WEB_PORT]), name="new"))
    await new.until_running("c1")
    await old.until_stopped()


@witness("SYNC-13", "RESTART-08", "CRI-14")
async def test_changes_that_mean_something(node: Node) -> None:
    """A foreign status wakes no worker, an annotation does, another image replaces the container."""
    web = await node.run()
    await node.wait(5)
    foreign = {"type": "example.com/checked", "status": "True"}
    node.api.update_status("default", "web", {"conditions": [foreign]})
    await node.wait(5)
    web.annotate({"a": "b"})
    await node.wait(5)
    web.set_image("c1", "img:2")
    await web.until_running("c1", attempt=1)


@witness("CONFIG-05", undisturbed="a fault of its own comes at a call that it counts")
async def test_changes_wake_a_worker_that_waits(node: Node) -> None:
    """A pod that waits for its retry is not tried earlier for a foreign status, and is for an annotation."""
    with node.fault("RunPodSandbox", code="UNKNOWN"):
        web = node.want(pod())
        await web.until_called("RunPodSandbox")
        await node.wait(1)
        foreign = {"type": "example.com/checked", "status": "True"}
        node.api.update_status("default", "web", {"conditions": [foreign]})
        await node.wait(6)
        web.annotate({"a": "b"})
        await web.until_called("RunPodSandbox", count=2, within=3)
    await web.until_running("c1")


@witness("CONFIG-07", "LOOP-15")
async def test_deletion_and_change_at_once(node: Node) -> None:
    """A pod that is deleted and changed at once is terminated once, with its grace."""
    web = await node.run(container(command="run stopdelay=3"), grace=8)
    web.delete()
    web.update(metadata={"labels": {"late": "yes"}})
    await web.until_gone()


@witness("CONFIG-08")
async def test_pod_first_seen_in_its_deletion(node: Node) -> None:
    """A pod that is already being deleted when the kubelet first learns of it is never started, and goes."""
    await node.kubelet.kill()
    web = node.want(pod())
    web.delete()
    await node.wait(1)
    await node.kubelet.start()
    await web.until_gone()


@witness("CONFIG-09")
async def test_last_pod_of_a_name_is_run(node: Node) -> None:
    """Of two manifests with one name the one of the last file is run, and the other is not."""
    await node.kubelet.kill()
    node.want_static(pod(container(image="img:1")), file="a.yaml")
    web = node.want_static(pod(container(image="img:2")), file="b.yaml")
    await node.kubelet.start()
    await web.until_running("c1")
    await node.wait(25)


@witness("CONFIG-11")
async def test_pods_are_asked_for_once_the_node_is_known(node: Node) -> None:
    """Pods are asked for when the API server has answered for the node, and not before."""
    await node.kubelet.kill()
    fails = [f"{verb} nodes before 500" for verb in ("get", "list", "watch")]
    with ExitStack() as faults:
        for each in fails:
            faults.enter_context(node.inject(each))
        web = node.want(pod())
        await node.kubelet.start()
        await node.wait(8)
    await web.until_running("c1", within=45)


@witness("SANDBOX-01")
async def test_pods_are_asked_for_though_there_is_no_node(node: Node) -> None:
    """That there is no object of the node is an answer too: the pods of the API server are run."""
    await node.kubelet.kill()
    with node.without_node_object():
        web = node.want(pod())
        await node.kubelet.start()
        await web.until_started("c1")


@witness("CONFIG-12", "LOOP-01", "LOOP-20")
async def test_outage_of_the_api_server_costs_no_pod(node: Node) -> None:
    """While the API server is away its pods are kept and looked after, and manifests go on being read."""
    web = await node.run(container("c1"), container("c2"))
    with node.outage():
        web.exit("c1", 1)
        own = node.want_static(pod(name="own"))
        await own.until_started("c1")
        await node.wait(100)
    await web.until_running("c1", "c2")
    await own.until_phase("Running")


@witness("CONFIG-13", static_pod_url=MANIFEST_URL)
async def test_bad_answers_of_the_url_change_nothing(node: Node) -> None:
    """An error, silence or nonsense at the URL keeps the pods as they are; an empty body wants none."""
    (web,) = node.serve(pod())
    await web.until_running("c1", contract="CONFIG-14")
    others = '{"apiVersion": "v1", "kind": "List", "items": []}'
    none = '{"apiVersion": "v1", "kind": "PodList", "items": [null]}'
    for status, body in (
        *((500, "oops"), (0, ""), (404, "")),
        *((200, each) for each in ("{not yaml", "kind: Service\n", others, none)),
    ):
        node.manifests.serve(status, body)
        await node.wait(25)
    node.serve(pod())
    await node.wait(25)
    node.manifests.serve(200, "")
    await web.until_stopped()


@witness("CONFIG-14", static_pod_url=MANIFEST_URL)
async def test_url_may_hold_one_pod_or_many(node: Node) -> None:
    """The URL may answer with one pod or a list of them, whose items need not say what they are."""
    node.manifests.serve(200, json.dumps(pod(name="one")))
    one = node.static("one", source="http")
    await one.until_running("c1", contract="CONFIG-14")
    for each in node.serve(pod(name="one"), pod(name="two"), pod(name="three")):
        await each.until_running("c1", contract="CONFIG-14")
    # What is an item of a list of pods need not say that it is a pod.
    bare = {name: part for name, part in pod(name="bare").items() if name not in {"apiVersion", "kind"}}
    node.manifests.serve(200, json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [bare]}))
    await node.static("bare", source="http").until_running("c1", contract="CONFIG-14")


@witness("EVENTS-01", static_pod_url=MANIFEST_URL)
async def test_pod_that_is_listed_twice_is_run_once(node: Node) -> None:
    """Of two pods with one name in a list at the URL the first is run, and an event reports the other."""
    first, _ = node.serve(pod(name="twice"), pod(name="twice"))
    await first.until_running("c1", contract="CONFIG-14")
    await node.expect(
        "the second one is refused",
        lambda: [] if node.events("FailedValidation") else ["no event says so"],
        "EVENTS-01",
    )


@witness("CONFIG-15")
async def test_changes_of_a_mirror_do_not_reach_the_pod(node: Node) -> None:
    """Whatever is changed in a mirror pod, nothing is started for it and its static pod stays as it is."""
    web = node.want_static(pod())
    await web.until_phase("Running")
    mirror = web.name
    node.api.update("default", mirror, {"metadata": {"labels": {"edited": "yes"}}})
    node.api.update("default", mirror, {"spec": {"containers": [{"name": "c1", "image": "img:2"}]}})
    await node.wait(20)


@witness("CONFIG-16")
async def test_gate_opened_by_another_is_noticed(node: Node) -> None:
    """When another controller opens a pod's gate it becomes ready soon, and nothing is restarted."""
    web = await node.run(readinessGates=[{"conditionType": "example.com/gate"}])
    await web.until_condition("ContainersReady")
    await node.wait(5)
    gate = {"type": "example.com/gate", "status": "True"}
    node.api.update_status("default", "web", {"conditions": [gate]})
    await web.until_condition("Ready", within=8)


@witness("CONFIG-17")
async def test_removal_waits_for_every_source(node: Node) -> None:
    """A pod whose manifest goes while another source is still silent is stopped once that one has reported.

    Before 1.27 its worker gets no update; then it is an orphan of the runtime to the next kubelet.
    """
    web = node.want_static(pod())
    await web.until_running("c1")
    await node.kubelet.kill()
    with node.outage():
        await node.kubelet.start()
        await node.wait(5)
        node.manifests.remove("web.yaml")
        await node.wait(15)
    await node.wait(30)
    await node.restart_kubelet()
    await web.until_stopped()


@witness("CONFIG-18", "WORK-22", undisturbed="another kubelet does not know that it was gone")
async def test_pod_that_comes_back_while_it_ends(node: Node) -> None:
    """A static pod with a UID of its own that goes and comes back at once ends first and then runs anew."""
    manifest = pod(
        container("c1"),
        container("c2", "run stopdelay=6"),
        metadata={"uid": "11111111-2222-4333-8444-555555555555"},
    )
    web = node.want_static(manifest)
    await web.until_running("c1", "c2")
    node.manifests.remove("web.yaml")
    await web.until_called("StopContainer", done=False)
    node.want_static(manifest)
    await web.until_stopped()
    await web.until_called("RunPodSandbox", count=2)
    await web.until(lambda: any(c.state == "RUNNING" for c in web.containers()), "running again")


@witness("EVENTS-01")
async def test_files_that_hold_no_pod_are_refused(node: Node) -> None:
    """A file that is not YAML, empty, a list, or something other than a pod is left out; the others run."""
    node.manifests.write("a-not-yaml.yaml", "kind: Pod\n  metadata: [")
    node.manifests.write("b-empty.yaml", "")
    node.manifests.write("c-list.yaml", "- 1\n- 2\n")
    node.manifests.write(
        "d-service.yaml", json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}})
    )
    node.manifests.write("e-binary.yaml", "\x00\x01")
    good = node.want_static(pod(), file="z-good.yaml")
    await good.until_running("c1")
    await node.wait(25)


@witness("STATIC-22")
async def test_fields_that_are_wrong_are_refused(node: Node) -> None:
    """A pod with a field that is wrong or out of range is not run; the others are."""
    bad: dict[str, dict[str, Any]] = {
        "wrong-type": pod(name="wrong-type", hostNetwork="maybe"),
        "two-of-a-name": pod(container("c1"), container("c1"), name="two-of-a-name"),
        "same-as-init": pod(container("c1"), init=(container("c1", "exit 0 1"),), name="same-as-init"),
        "no-container": {**pod(name="no-container"), "spec": {"containers": []}},
        "unknown-policy": pod(name="unknown-policy", restart="Sometimes"),
        "unknown-pull-policy": pod(container(imagePullPolicy="Maybe"), name="unknown-pull-policy"),
        "negative-period": pod(
            container(livenessProbe={"exec": {"command": ["x"]}, "periodSeconds": -1}), name="negative-period"
        ),
        "claims": pod(name="claims", resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}]),
        "name": pod(name="Not A Name"),
    }
    for file, manifest in bad.items():
        node.want_static(manifest, file=f"{file}.yaml")
    good = node.want_static(pod(name="good"), file="z-good.yaml")
    await good.until_running("c1")
    await node.wait(25)


@witness("START-05", "START-06", "WORK-33")
async def test_negative_grace_counts_as_one_second(node: Node) -> None:
    """A pod whose manifest has a negative grace period is run, and has one second to stop."""
    hasty = node.want_static(pod(container("c1", "run stopdelay=5"), name="hasty", grace=-5))
    # The API server takes no mirror with such a grace.
    await hasty.until_started("c1")
    await node.wait(5)
    node.manifests.remove("hasty.yaml")
    await hasty.until_stopped()


@witness("CONFIG-13", static_pod_url=MANIFEST_URL)
async def test_bad_pod_in_a_list_has_the_list_refused(node: Node) -> None:
    """A list at the URL with a pod that is wrong changes nothing: the pods of the last good one run on."""
    (first,) = node.serve(pod(name="first"))
    await first.until_running("c1", contract="CONFIG-14")
    node.serve(pod(name="bad", restart="Sometimes"), pod(name="second"))
    await node.wait(25)
    (second,) = node.serve(pod(name="second"))
    await first.until_stopped()
    await second.until_running("c1", contract="CONFIG-14")
