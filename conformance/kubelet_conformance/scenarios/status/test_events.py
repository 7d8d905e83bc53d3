"""Events: what is reported, about what, and what is kept out of them."""

from typing import Any

from kubelet_conformance.node import Node, PodHandle, container, exec_hook, exec_probe, pod, witness


@witness(
    "EVENTS-01",
    "EVENTS-02",
    "EVENTS-06",
    "IMAGE-18",
    undisturbed="a debugger is made and started once, whatever becomes of that",
)
async def test_life_of_a_pod_is_told(node: Node) -> None:
    """Pulling, creating, starting and killing are reported in that order, each about its container."""
    node.runtime.publish_image("registry/app:1")
    web = node.want(
        pod(container("c1", image="registry/app:1"), container("c2"), init=(container("i1", "exit 0 1"),))
    )
    await web.until_running("c1", "c2")
    web.debug(container("debugger"))
    await web.until_running("debugger")
    web.delete()
    await web.until_gone()


@witness("EVENTS-01", "EVENTS-02", undisturbed="it waits for what a fault lets pass unseen")
async def test_failures_are_warnings(node: Node) -> None:
    """Failures of images, containers and sandboxes are reported as warnings."""
    node.runtime.publish_image("registry/absent:1", there=False)
    with node.fault("RunPodSandbox", code="UNKNOWN", message="no network", times=1):
        web = node.want(
            pod(
                container("c1", image="registry/absent:1"),
                container("c2", image="absent:2", imagePullPolicy="Never"),
                container("c3", "exit 1 1"),
            )
        )
        await web.until_event("FailedCreatePodSandBox")
    await web.until_waiting("c1", "ImagePullBackOff")
    await web.until_waiting("c2", "ErrImageNeverPull")
    await web.until_held_back("c3")


@witness("EVENTS-03", "START-03", undisturbed="it waits for what a fault lets pass unseen")
async def test_ids_are_not_told(node: Node) -> None:
    """A runtime's error that names the container's id is reported with the container's name instead."""
    with node.slow("StartContainer", 1, times=1):
        web = node.want(pod())
        await web.until_called("StartContainer", done=False)
        node.runtime.remove_container(web.container("c1").id)
        await web.until_event("Failed")
    await web.until_running("c1")


@witness("EVENTS-04", "HOOK-03", "HOOK-06", undisturbed="it waits for what a fault lets pass unseen")
async def test_output_of_hooks_is_not_told(node: Node) -> None:
    """A failed hook is reported, its output is not."""
    first = container("c1", lifecycle={"postStart": exec_hook("x 3 1")})
    second = container("c2", lifecycle={"preStop": exec_hook("x 4 1")})
    web = node.want(pod(first, second, grace=5))
    await web.until_event("FailedPostStartHook")
    await web.until_running("c2")
    web.delete()
    await web.until_gone()


@witness("EVENTS-05", undisturbed="it waits for what a fault lets pass unseen")
async def test_events_need_no_listener(node: Node) -> None:
    """Nothing waits for its events to be taken: pods go on while the API server is away."""
    web = await node.run()
    with node.outage():
        web.exit(code=1)
        await web.until_started("c1", attempt=1, within=8)


@witness("EVENTS-06", "EVENTS-01", "PROBE-22")
async def test_liveness_restart_is_told_in_order(node: Node) -> None:
    """Failed probes are reported first, then the kill, then the new start."""
    node.runtime.set_file("alive", there=True)
    web = await node.run(
        container(livenessProbe=exec_probe("xf alive", periodSeconds=2, failureThreshold=3)), grace=3
    )
    node.runtime.set_file("alive", there=False)
    await web.until_called("StopContainer", "c1")
    node.runtime.set_file("alive", there=True)
    await web.until_running("c1", attempt=1)


@witness("EVENTS-07", "STATIC-16")
async def test_events_of_a_static_pod_carry_its_own_uid(node: Node) -> None:
    """Events of a static pod are about its own UID, its statuses are written to the mirror's."""
    web = node.want_static(pod(container(command="seq 1@3 run")))
    await web.until_running("c1", attempt=1)
    node.manifests.remove("web.yaml")
    await web.until_stopped()
    await node.wait(5)


@witness("EVENTS-08", "DEADLINE-01", undisturbed="its pod has a deadline, which a fault may use up")
async def test_passed_deadline_is_told_again_and_again(node: Node) -> None:
    """A passed deadline is reported each time the pod's status is computed."""
    job = await node.run(
        container(command="run stopdelay=6"), restart="Never", name="job", activeDeadlineSeconds=4
    )
    await job.until_phase("Failed")
    await node.wait(5)


@witness("EVENTS-01", "TERM-09", kubernetes=(1, 29), undisturbed="it waits for what a fault lets pass unseen")
async def test_kills_say_why(node: Node) -> None:
    """The event of a kill says why the container is stopped, and of an app whether it comes again."""
    fails = exec_probe("x 1 0", periodSeconds=1, failureThreshold=1)
    changed = await node.run(name="changed", init=(_sidecar(),))
    changed.set_image("c1", "img:2")
    changed.update(spec={"initContainers": [{"name": "s1", "image": "img:2"}]})
    once = await node.run(container("c1", livenessProbe=fails), container("c2"), name="once", restart="Never")
    quiet = await node.run(name="quiet")
    quiet.delete()
    ill = pod(container(livenessProbe=fails), name="ill", init=(_sidecar(livenessProbe=fails),))
    hook = container(lifecycle={"postStart": exec_hook("x 1 0")})
    for one, texts in {
        changed: (
            "Container c1 definition changed, will be restarted",
            "Init container s1 definition changed",
        ),
        node.want(ill): (
            "Container c1 failed liveness probe, will be restarted",
            "Init container s1 failed liveness probe",
        ),
        node.want(pod(container(startupProbe=fails), name="late")): (
            "Container c1 failed startup probe, will be restarted",
        ),
        node.want(pod(name="stuck", init=(_sidecar(startupProbe=fails),))): (
            "Init container s1 failed startup probe",
        ),
        node.want(pod(hook, name="hook")): ("FailedPostStartHook",),
        once: ("Container c1 failed liveness probe",),
        quiet: ("Stopping container c1",),
    }.items():
        for text in texts:
            await _until_killed(one, text)


def _sidecar(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the Container type
    return container("s1", restartPolicy="Always", **fields)


async def _until_killed(one: PodHandle, text: str) -> None:
    await one.until(
        lambda: text in {each.message for each in one.events("Killing")},
        f"a kill with the text {text!r}",
        within=60,
        contract="EVENTS-01",
    )
