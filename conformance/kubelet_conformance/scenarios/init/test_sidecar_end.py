"""Sidecars at the end of their pod: they do not keep it, and go last."""

from typing import Any

from kubelet_conformance.node import Node, container, exec_hook, exec_probe, pod, witness


def sidecar(name: str = "s1", command: str = "run", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the Container type
    """An init container that is a sidecar."""
    return container(name, command, restartPolicy="Always", **fields)


@witness("SIDECAR-11", "SIDECAR-12", "SIDECAR-19", kubernetes=(1, 29))
async def test_sidecars_do_not_keep_a_finished_pod(node: Node) -> None:
    """A pod whose app containers are done succeeds, its sidecars stopped, with whatever code they end."""
    inits = (sidecar("s1", "run stopcode=137"), sidecar("s2", "run stopcode=1"))
    job = await node.run(container("c1"), container("c2"), init=inits, restart="Never")
    job.exit("c1", 0)
    await node.wait(3)
    job.exit("c2", 0)
    await job.until_phase("Succeeded")
    await job.until_stopped()


@witness("SIDECAR-12", "SIDECAR-14", "SIDECAR-27", kubernetes=(1, 29))
async def test_sidecars_go_last_and_in_reverse(node: Node) -> None:
    """A deleted pod stops its app containers, then its sidecars, the last one first, all in one grace."""
    inits = tuple(sidecar(name, "run stopdelay=2") for name in ("s1", "s2", "s3"))
    web = await node.run(container("c1", "run stopdelay=4"), container("c2", "run stopdelay=1"), init=inits)
    web.delete(20)
    await web.until_gone()


@witness("SIDECAR-14", "SIDECAR-12", kubernetes=(1, 29))
async def test_sidecars_get_what_the_apps_leave_of_the_grace(node: Node) -> None:
    """When an app container takes the whole grace, the sidecars have 2 s each."""
    inits = tuple(sidecar(name, "run stopdelay=1") for name in ("s1", "s2"))
    web = await node.run(container("c1", "run stopdelay=60"), init=inits)
    web.delete(6)
    await web.until_gone()


@witness("SIDECAR-13", kubernetes=(1, 29))
async def test_hooks_of_sidecars_begin_at_once(node: Node) -> None:
    """The preStop hooks of sidecars run while the app containers stop; only the stop waits its turn."""
    hook = {"preStop": exec_hook("x 0 1")}
    inits = tuple(sidecar(name, lifecycle=hook) for name in ("s1", "s2"))
    web = await node.run(container("c1", "run stopdelay=8"), init=inits)
    web.delete()
    await web.until_gone()


@witness(
    "SIDECAR-16", "SIDECAR-12", kubernetes=(1, 29), undisturbed="it waits for what a fault lets pass unseen"
)
async def test_nobody_waits_for_what_does_not_run(node: Node) -> None:
    """A sidecar does not wait for an app container that waits for its back-off, nor for one never made."""
    web = await node.run(container("c1", "seq run 1@1"), init=(sidecar("s1"), sidecar("s2")))
    web.exit("c1", 1)
    await web.until_held_back()
    web.delete()
    await web.until_gone()


@witness("SIDECAR-12", kubernetes=(1, 29))
async def test_sidecar_goes_at_once_where_no_app_was_made(node: Node) -> None:
    """A pod that is deleted while it is initialized stops its sidecar without waiting for app containers."""
    web = node.want(pod(init=(sidecar("s1"), container("i1", "run stopdelay=1"))))
    await web.until_running("i1")
    web.delete()
    await web.until_gone()


@witness("SIDECAR-24", kubernetes=(1, 29), until=(1, 36))
async def test_sidecar_is_not_made_again_in_the_end(node: Node) -> None:
    """A sidecar that ends while its pod is stopped stays ended."""
    web = await node.run(container("c1", "run stopdelay=8"), init=(sidecar("s1"), sidecar("s2")))
    web.delete()
    await web.until_called("StopContainer", "c1", done=False)
    await node.wait(1)
    web.exit("s1", 1)
    await web.until_gone()


@witness("SIDECAR-25", kubernetes=(1, 29))
async def test_failing_sidecar_is_not_killed_out_of_turn(node: Node) -> None:
    """A sidecar whose liveness probe fails while its pod is stopped is stopped in its turn and not before."""
    node.runtime.set_file("well", there=True)
    alive = exec_probe("xf well", periodSeconds=1, failureThreshold=1)
    inits = (sidecar("s1", livenessProbe=alive), sidecar("s2", "run stopdelay=2"))
    web = await node.run(container("c1", "run stopdelay=8"), init=inits)
    await node.wait(2)
    web.delete()
    await web.until_called("StopContainer", "c1", done=False)
    node.runtime.set_file("well", there=False)
    await web.until_gone()


@witness("SIDECAR-23", kubernetes=(1, 29))
async def test_finished_pod_gets_no_second_sandbox(node: Node) -> None:
    """A pod whose app containers have all succeeded is not made again when its sandbox dies."""
    job = await node.run(container("c1"), init=(sidecar("s1"),), restart="OnFailure")
    job.exit("c1", 0)
    node.runtime.kill_sandbox(job.sandbox().id)
    await job.until_phase("Succeeded")
    await node.wait(5)
