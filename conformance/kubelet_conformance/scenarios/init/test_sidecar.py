"""Sidecars: init containers that stay, and come back."""

from typing import Any

from kubelet_conformance.node import Node, container, exec_hook, exec_probe, pod, witness


def sidecar(name: str = "s1", command: str = "run", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the Container type
    """An init container that is a sidecar."""
    return container(name, command, restartPolicy="Always", **fields)


@witness("SIDECAR-01", "ADMIT-02", kubernetes=(1, 28), until=(1, 28))
async def test_sidecars_are_refused_without_their_gate(node: Node) -> None:
    """A kubelet whose gate SidecarContainers is off refuses a pod with a sidecar."""
    await node.wait(3)
    job = node.want(pod(init=(sidecar(),)))
    await job.until_phase("Failed")
    job.delete()
    await job.until_gone()


@witness("SIDECAR-01", kubernetes=(1, 32), until=(1, 32), feature_gates={"SidecarContainers": False})
async def test_sidecars_can_be_switched_off(node: Node) -> None:
    """With the gate SidecarContainers off a newer kubelet refuses sidecars too, and no other pod."""
    await node.wait(3)
    web = node.want(pod(init=(sidecar(),)))
    plain = node.want(pod(name="plain", init=(container("i1", "exit 0 1"),)))
    await web.until_phase("Failed")
    await plain.until_running("c1")


@witness("SIDECAR-02", "SIDECAR-17", "SIDECAR-19", "SIDECAR-23", kubernetes=(1, 29))
async def test_sidecars_come_in_turn(node: Node) -> None:
    """Each sidecar runs before the next container is made, and regular init containers end in between."""
    inits = (sidecar("s1"), container("i1", "exit 0 3"), sidecar("s2"))
    web = node.want(pod(container("c1"), init=inits))
    await web.until_running("s1", "s2", "c1")
    await web.until_condition("Ready")


@witness("SIDECAR-02", "SIDECAR-04", "SIDECAR-17", "SIDECAR-19", kubernetes=(1, 29))
async def test_sidecar_is_waited_for_until_it_has_started(node: Node) -> None:
    """What comes after a sidecar waits for its startup probe, however long that is not run or fails."""
    up = exec_probe("xf up", initialDelaySeconds=12, periodSeconds=2, failureThreshold=10)
    ready = exec_probe("xf ready", periodSeconds=1)
    inits = (sidecar("s1", startupProbe=up, readinessProbe=ready), container("i1", "exit 0 1"))
    web = node.want(pod(init=inits))
    await web.until_called("ExecSync", "s1", count=3)
    node.runtime.set_file("up", there=True)
    await web.until_running("c1")
    await node.wait(5)
    node.runtime.set_file("ready", there=True)
    await web.until_condition("Ready")


@witness("SIDECAR-05", "SIDECAR-02", kubernetes=(1, 29))
async def test_sidecar_that_does_not_start_is_made_again(node: Node) -> None:
    """A sidecar whose startup probe fails is stopped and made again, and nothing follows it meanwhile."""
    up = exec_probe("xf up", periodSeconds=1, failureThreshold=2)
    web = node.want(pod(init=(sidecar("s1", startupProbe=up),), grace=4))
    await web.until_started("s1", attempt=2)
    node.runtime.set_file("up", there=True)
    await web.until_running("c1")


@witness("SIDECAR-03", kubernetes=(1, 29))
async def test_hook_of_a_sidecar_comes_before_the_next(node: Node) -> None:
    """What comes after a sidecar waits for its postStart hook."""
    hook = {"postStart": exec_hook("x 0 5")}
    web = node.want(pod(init=(sidecar("s1", lifecycle=hook), container("i1", "exit 0 1"))))
    await web.until_running("c1")


@witness("SIDECAR-06", "SIDECAR-15", "SIDECAR-18", kubernetes=(1, 29))
async def test_sidecar_that_fails_its_liveness_is_restarted_alone(node: Node) -> None:
    """A sidecar that fails its liveness probe is stopped at once, with its whole grace, and made again."""
    node.runtime.set_file("well", there=True)
    alive = exec_probe("xf well", periodSeconds=1, failureThreshold=2)
    inits = (sidecar("s1", "run stopdelay=2", livenessProbe=alive), sidecar("s2"))
    web = await node.run(container("c1"), container("c2"), init=inits, grace=10)
    await node.wait(3)
    node.runtime.set_file("well", there=False)
    await web.until_called("StopContainer", "s1")
    node.runtime.set_file("well", there=True)
    await web.until_running("s1", attempt=1)
    await node.wait(5)


@witness("SIDECAR-07", "SIDECAR-18", "SIDECAR-19", kubernetes=(1, 29))
async def test_sidecar_comes_back_in_a_run_once_pod(node: Node) -> None:
    """A sidecar that ends well or badly is run again after its back-off, though its pod runs only once."""
    inits = (sidecar("s1", "seq 0@3 1@3 0@3 run"), sidecar("s2"))
    web = await node.run(container("c1"), init=inits, restart="Never")
    await web.until_running("s1", attempt=3)


@witness("SIDECAR-08", kubernetes=(1, 29))
async def test_sidecar_that_cannot_be_made_holds_up_no_other(node: Node) -> None:
    """While one sidecar cannot be made, the next is run again all the same."""
    inits = (sidecar("s1"), sidecar("s2", "seq 1@20 1@1 run"))
    web = await node.run(container("c1"), init=inits)
    with node.fault("CreateContainer", code="UNKNOWN", message="no room", times=9, container="s1"):
        web.exit("s1", 1)
        await web.until_running("s2", attempt=2)
    await web.until_running("s1", attempt=1)


@witness("SIDECAR-09", kubernetes=(1, 29))
async def test_vanished_sidecar_is_made_again(node: Node) -> None:
    """When the records of init containers went beside a running app container, only sidecars come back."""
    inits = (container("i1", "exit 0 1"), sidecar("s1"), container("i2", "exit 0 1"))
    web = await node.run(container("c1"), init=inits)
    for name in ("i1", "s1", "i2"):
        node.runtime.remove_container(web.container(name).id)
    await web.until_called("CreateContainer", "s1", count=2)
    await node.wait(10)


@witness("SIDECAR-10", "SIDECAR-02", kubernetes=(1, 29))
async def test_sidecar_is_kept_up_during_init(node: Node) -> None:
    """A sidecar that ends while a later init container runs is run again meanwhile."""
    web = node.want(pod(init=(sidecar("s1", "seq 1@5 run"), container("i2", "exit 0 20"))))
    await web.until_running("s1", attempt=1)
    await web.until_running("c1")


@witness("SIDECAR-20", kubernetes=(1, 32))
async def test_changed_sidecar_is_replaced(node: Node) -> None:
    """A sidecar is run with its new image, under whatever policy."""
    inits = (container("i1", "exit 0 1"), sidecar("s1"))
    web = await node.run(container("c1"), init=inits, restart="Never")
    web.update(spec={"initContainers": [{"name": "s1", "image": "img:2"}]})
    await web.until_running("s1", attempt=1)
    await node.wait(5)


@witness("SIDECAR-21", "SIDECAR-02", kubernetes=(1, 29))
async def test_sidecar_that_could_not_be_started_is_made_again(node: Node) -> None:
    """A sidecar that was made and could not be started is made again before anything else."""
    with node.fault("StartContainer", code="UNKNOWN", message="no such command", times=1, container="s1"):
        web = node.want(pod(init=(sidecar("s1"), container("i1", "exit 0 1"))))
        await web.until_running("c1")


@witness("SIDECAR-22", kubernetes=(1, 29))
async def test_lost_sidecar_is_stopped_and_made_again(node: Node) -> None:
    """A sidecar that the runtime lost track of is stopped, and made again, under whatever policy."""
    web = await node.run(container("c1"), init=(sidecar("s1"),), restart="Never")
    await node.wait(3)
    node.runtime.lose_track(web.container("s1").id)
    await web.until_started("s1", attempt=1)
    await node.wait(5)


@witness("SIDECAR-23", "SIDECAR-26", "SIDECAR-02", kubernetes=(1, 29))
async def test_new_sandbox_begins_with_the_first_init(node: Node) -> None:
    """When a sandbox dies all begins anew with the first init container; a pod that has ended stays ended."""
    inits = (container("i1", "exit 0 2"), sidecar("s1"), container("i2", "exit 0 2"))
    web = await node.run(container("c1"), init=inits)
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)


@witness("SIDECAR-26", "SIDECAR-23", "INIT-12", kubernetes=(1, 29))
async def test_reboot_initializes_pods_with_sidecars_anew(node: Node) -> None:
    """After a reboot the init containers and sidecars of a pod come before its app containers again."""
    inits = (sidecar("s1"), container("i1", "exit 0 4"), container("i2", "exit 0 2"))
    web = await node.run(container("c1"), container("c2"), init=inits)
    await node.kubelet.kill()
    node.runtime.reboot()
    await node.wait(2)
    await node.kubelet.start()
    await web.until_running("c1", "c2", attempt=1)


@witness("RESTART-05", "SIDECAR-18", "PHASE-03", kubernetes=(1, 29))
async def test_app_comes_back_beside_its_sidecar(node: Node) -> None:
    """An app container that ends is run again by its policy, also when nothing but a sidecar is left."""
    web = await node.run(
        container("c1", "seq 1@4 0@3 run"), init=(sidecar("s1"), container("i1", "exit 0 1"))
    )
    await web.until_running("c1", attempt=2)


@witness("SIDECAR-02", "SIDECAR-04", "CSTAT-03", kubernetes=(1, 29))
async def test_next_instance_of_a_sidecar_has_to_start_too(node: Node) -> None:
    """A sidecar that failed while it started is probed again when it came back, in a run-once pod too."""
    up = exec_probe("x 0 0", initialDelaySeconds=3, periodSeconds=2)
    inits = (sidecar("s1", "seq 1@2 1@2 run", startupProbe=up), sidecar("s2", startupProbe=up))
    job = node.want(pod(init=inits, restart="Never"))
    await job.until_running("c1", within=60)
    await node.wait(3)


@witness("PROBE-01", "SIDECAR-17", kubernetes=(1, 29))
async def test_sidecar_is_probed_again_though_it_was_seen_to_end(node: Node) -> None:
    """The probes of a sidecar outlive its instances, in a run-once pod too."""
    ready = exec_probe("x 0 0", periodSeconds=1)
    job = await node.run(container("c1"), init=(sidecar("s1", readinessProbe=ready),), restart="Never")
    with node.slow("CreateContainer", 4):
        job.exit("s1", 1)
        await job.until_running("s1", attempt=1)
    await node.wait(20)


@witness("SIDECAR-19", "SIDECAR-18", "SIDECAR-17", kubernetes=(1, 29))
async def test_pod_stays_running_while_a_sidecar_starts_again(node: Node) -> None:
    """A sidecar that has to start again makes its pod unready, and neither Pending nor uninitialized."""
    up = exec_probe("x 0 0", initialDelaySeconds=8, periodSeconds=2)
    web = await node.run(container("c1"), init=(sidecar("s1", "seq 1@20 run", startupProbe=up),))
    await web.until_running("s1", attempt=1)
    await node.wait(15)


@witness("SIDECAR-02", kubernetes=(1, 29))
async def test_sidecar_waits_for_its_image(node: Node) -> None:
    """A pod whose first sidecar has no image yet starts with that sidecar once there is one."""
    node.runtime.publish_image("registry/late:1", there=False)
    web = node.want(pod(init=(sidecar("s1", image="registry/late:1"), sidecar("s2"))))
    await web.until_waiting("s1", "ImagePullBackOff")
    node.runtime.publish_image("registry/late:1")
    await web.until_running("s1", "s2", "c1", contract="START-02")


@witness("PHASE-07", kubernetes=(1, 29))
async def test_pod_ends_with_an_init_container_beside_a_sidecar(node: Node) -> None:
    """A pod that runs once is over when an init container beside its sidecar fails, or is lost."""
    job = node.want(pod(name="job", init=(sidecar(), container("i1", "exit 3 1")), restart="Never"))
    lost = node.want(pod(name="lost", init=(sidecar(), container("i1", "run")), restart="Never"))
    await lost.until_started("i1")
    node.runtime.lose_track(lost.container("i1").id)
    for each in (job, lost):
        # That one is lost is no event of its own: the next sync of its pod shows it.
        await each.until_phase("Failed", within=100, contract="PHASE-07")
