"""Static pods: pods from manifests, and their mirrors at the API server."""

from kubelet_conformance.node import MANIFEST_FOLDER, Node, container, pod, witness


@witness(*("STATIC-01", "STATIC-03", "STATIC-04", "STATIC-09", "STATIC-11", "STATIC-16", "EVENTS-07"))
async def test_manifest_becomes_a_pod_and_its_mirror(node: Node) -> None:
    """A manifest becomes a pod named after the node, which runs at once and has a mirror with its status."""
    await node.wait(3)
    web = node.want_static(
        pod(container("c1"), container("c2", "seq 1@4 run"), init=(container("i1", "exit 0 1"),))
    )
    await web.until_phase("Running")
    await web.until_running("c2", attempt=1)


@witness("STATIC-02", "STATIC-18", "WORK-33")
async def test_edited_manifest_is_another_pod(node: Node) -> None:
    """A manifest that is edited is a new pod, which runs when the old one has ended in its grace."""
    web = node.want_static(pod(container(command="run stopdelay=6"), grace=20))
    await web.until_phase("Running")
    old = web.uid
    node.want_static(pod(container(command="run", image="img:2"), grace=20))
    await web.until(lambda: web.uid != old, "another UID")
    await web.until_running("c1")


@witness("COND-01", "STATUS-16", undisturbed="it waits for what a fault lets pass unseen")
async def test_edited_manifest_of_an_ended_pod_begins_anew(node: Node) -> None:
    """A static pod that is edited after its end is another pod, whose status owes the old one nothing."""
    job = node.want_static(pod(container(command="exit 0 1"), restart="Never", name="job"))
    await job.until_phase("Succeeded")
    node.want_static(pod(container(command="run"), restart="Never", name="job"))
    await job.until_phase("Running")


@witness("RESTARTKUBELET-15")
async def test_unchanged_manifest_is_the_same_pod(node: Node) -> None:
    """A manifest that is written again as it was, and read by another kubelet, is still the same pod."""
    web = node.want_static(pod())
    await web.until_phase("Running")
    node.want_static(pod())
    await node.wait(25)
    await node.restart_kubelet()
    await node.wait(10)


@witness("STATIC-18", "STATIC-19")
async def test_version_that_never_started_is_skipped(node: Node) -> None:
    """Of two edits made while the old pod ends only the last is run."""
    web = node.want_static(pod(container(command="run stopdelay=8")))
    await web.until_phase("Running")
    node.want_static(pod(container("c2")))
    await node.wait(2)
    node.want_static(pod(container("c3")))
    await web.until_running("c3")


@witness("STATIC-06")
async def test_hidden_files_are_ignored(node: Node) -> None:
    """A file whose name begins with a dot is no manifest, one with any other name is."""
    node.want_static(pod(name="hidden"), file=".hidden.yaml.swp")
    kept = node.want_static(pod(name="kept"), file="kept.bak")
    await kept.until_running("c1")
    await node.wait(25)


@witness("STATIC-01", "STATIC-26")
async def test_name_may_end_in_a_dash(node: Node) -> None:
    """The node's name comes behind that of the manifest, and the whole of them is a name that is allowed."""
    web = node.want_static(pod(name="web-"), file="web.yaml")
    await web.until_phase("Running", contract="STATIC-26")


@witness("STATIC-07")
async def test_manifest_that_turns_bad_ends_its_pod_at_the_next_listing(node: Node) -> None:
    """A manifest that turned bad leaves its pod alone until all are listed again; others go on."""
    web = node.want_static(pod())
    other = node.want_static(pod(name="other"))
    await web.until_phase("Running")
    await other.until_phase("Running")
    node.manifests.write("web.yaml", "kind: Pod\n  spec: {")
    await web.until_stopped(within=40)
    await node.wait(5)


@witness(static_pod_path=f"{MANIFEST_FOLDER}/only.yaml")
async def test_single_manifest_that_turns_bad_stays_in_force(node: Node) -> None:
    """Where the kubelet reads one file, one that turned bad leaves the pod as it was."""
    # A file that appears later may be found by the next listing only: one that is not there is not watched.
    await node.kubelet.kill()
    web = node.want_static(pod(), file="only.yaml")
    await node.kubelet.start()
    await web.until_phase("Running", contract="STATIC-26")
    node.manifests.write("only.yaml", "kind: Pod\n  spec: {")
    await node.wait(45)


@witness("STATIC-08", "LOOP-07", static_pod_path="/etc/kubernetes/absent")
async def test_missing_folder_wants_no_pods(node: Node) -> None:
    """A manifest folder that is not there counts as empty: leftovers of deleted pods are cleaned up."""
    web = await node.run()
    await node.kubelet.kill()
    web.delete(0)
    await node.kubelet.start()
    await web.until_stopped()


@witness("STATIC-10", "STATIC-16", "WORK-15")
async def test_static_pod_needs_no_api_server(node: Node) -> None:
    """A static pod runs while the API server is away, and has its mirror when that is back."""
    await node.wait(2)
    with node.outage():
        web = node.want_static(pod())
        await web.until_started("c1")
        await node.wait(20)
    await web.until_phase("Running")


@witness("STATIC-12", "STATIC-11")
async def test_no_mirror_without_a_node(node: Node) -> None:
    """While the node's object is missing no mirror is made, and the static pod runs all the same."""
    await node.run(name="bound")
    with node.without_node_object():
        await node.wait(2)
        web = node.want_static(pod())
        await web.until_started("c1")
        await node.wait(30)
    await web.until_phase("Running")


@witness("STATIC-25")
async def test_mirror_brings_no_ephemeral_container(node: Node) -> None:
    """An ephemeral container that gets into a mirror, as no API server would let it, is not started."""
    web = node.want_static(pod())
    await web.until_phase("Running")
    with node.tolerant_api():
        web.debug(container("debug"))
    await node.wait(100)


@witness("STATIC-13", "STATIC-16")
async def test_deleted_mirror_is_made_again(node: Node) -> None:
    """A mirror that a user deletes is made again, and the pod's containers do not notice."""
    web = node.want_static(pod())
    await web.until_phase("Running")
    web.delete()
    await node.wait(25)
    await web.until_phase("Running")
    web.delete(0)
    # The next resync at the latest makes it.
    await web.until_phase("Running", within=100)


@witness("STATIC-13")
async def test_outdated_mirror_is_replaced(node: Node) -> None:
    """The mirror of a version that was edited away while the kubelet was down is replaced."""
    web = node.want_static(pod())
    await web.until_phase("Running")
    await node.kubelet.kill()
    node.want_static(pod(container("c2")))
    await node.wait(2)
    await node.kubelet.start()
    await web.until_running("c2")


@witness("STATIC-15", "STATIC-21", "WORK-33")
async def test_mirror_goes_when_its_pod_has_ended(node: Node) -> None:
    """The mirror of a removed static pod goes when the containers have stopped, and never says Failed."""
    web = node.want_static(pod(container(command="run stopdelay=7")))
    await web.until_phase("Running")
    node.manifests.remove("web.yaml")
    await web.until_stopped()
    await web.until(lambda: node.api.get("default", web.name) is None, "its mirror gone")


@witness("STATIC-17", "TERM-32")
async def test_finished_static_pod_keeps_its_mirror(node: Node) -> None:
    """A static pod that ends by itself keeps its mirror, which reports how it ended."""
    job = node.want_static(pod(container(command="exit 0 2"), restart="Never", name="job"))
    await job.until_phase("Succeeded")
    await node.wait(30)


@witness("STATIC-20", "CONFIG-01")
async def test_api_pod_of_the_same_name_is_not_blocked(node: Node) -> None:
    """A pod at the API server with a static pod's full name runs beside it."""
    await node.wait(2)
    with node.without_node_object():
        await node.wait(2)
        node.want_static(pod())
        await node.static("web").until_started("c1")
        await node.wait(3)
    # A kubelet reports anew what room the node has, each ten seconds.
    await node.wait(12)
    bound = node.want(pod(name=f"web-{node.name}"))
    await bound.until_started("c1", within=10)
    await node.wait(5)


@witness("STATIC-05")
async def test_static_pod_is_pending_at_first(node: Node) -> None:
    """A static pod whose image takes its time is Pending until its container runs."""
    with node.slow("PullImage", 15):
        web = node.want_static(pod(container(image="registry/big:1")))
        await web.until_phase("Pending", within=10)
        await web.until_phase("Running")


@witness("STATIC-22")
async def test_static_pod_may_not_claim_devices(node: Node) -> None:
    """A manifest with resource claims or ephemeral containers is not run."""
    node.want_static(pod(name="claims", resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}]))
    node.want_static(pod(name="debugged", ephemeralContainers=[container("debugger")]))
    await node.wait(25)


@witness("STATIC-22", kubernetes=(1, 34))
async def test_static_pod_may_not_refer_to_the_api(node: Node) -> None:
    """A manifest that refers to objects of the API server is refused, and another one is not."""
    node.want_static(pod(container(envFrom=[{"configMapRef": {"name": "settings"}}]), name="settings"))
    node.want_static(pod(name="secrets", imagePullSecrets=[{"name": "registry"}]))
    node.want_static(pod(name="account", serviceAccountName="robot"))
    web = node.want_static(pod(name="plain"))
    await web.until_phase("Running", within=40)
    await node.wait(5)


@witness("STATIC-08", static_pod_path="/etc/kubernetes/later")
async def test_folder_that_appears_later_is_read(node: Node) -> None:
    """A manifest folder that is made while the kubelet runs is found, and its pods are run."""
    await node.run(name="bound")
    node.manifests.make_folder()
    web = node.want_static(pod())
    await web.until_phase("Running", within=40)
