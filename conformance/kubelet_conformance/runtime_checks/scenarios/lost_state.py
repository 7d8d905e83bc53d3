"""Runtime events without a CRI call: it is restarted, loses track, or goes down with its node."""

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import runtime_scenario
from kubelet_conformance.targets.controls import NotPossibleError
from kubelet_conformance.targets.runtime import StateLoss


def _state_loss(runtime: Runtime) -> StateLoss:
    """How the fake runtime can be made to lose its state."""
    if runtime.target.state_loss is None:
        raise NotPossibleError("only a fake can be made to lose what it knows")
    return runtime.target.state_loss


@runtime_scenario("CRI-16", "CRI-18", "CRI-19", "CRI-20", "CRI-21", "CRI-22", needs=("restart",), alone=True)
async def a_restart_changes_nothing(runtime: Runtime) -> None:
    """Restart the runtime; it must report sandboxes, containers and their statuses as before."""
    sandbox, stopped = await runtime.sandbox("up"), await runtime.sandbox("down")
    runs = await sandbox.running(name="runs")
    ends = await sandbox.running(runtime.target.commands.exit(3, after=0.5), name="ends")
    await ends.end()
    await stopped.stop()
    for _ in range(2):
        for one in (sandbox, stopped):
            await one.status()
        states = [(await container.status()).state for container in (runs, ends)]
        met = states == [cri.CONTAINER_RUNNING, cri.CONTAINER_EXITED]
        runtime.expect("CRI-19", "what ran runs on, and what had ended has ended", met=met)
        await runtime.look()
        if runtime.target.restart is not None:
            await runtime.target.restart()


@runtime_scenario("CRI-09", "CRI-14", needs=("state_loss",))
async def what_is_unknown_can_be_stopped(runtime: Runtime) -> None:
    """Let the runtime lose track of a container, list everything, stop that container, and remove it."""
    state_loss = _state_loss(runtime)
    container = await runtime.running()
    state_loss.lose_track(container.id)
    await runtime.ended(runtime.look())
    await container.status()
    await container.stop(1)
    await container.status()
    await container.remove()


@runtime_scenario("CRI-05", "CRI-20", needs=("state_loss",))
async def survivors_of_a_sandbox_are_stopped_with_it(runtime: Runtime) -> None:
    """Let a sandbox die under its container, and stop it."""
    state_loss = _state_loss(runtime)
    sandbox = await runtime.sandbox()
    container = await sandbox.running()
    state_loss.kill_sandbox(sandbox.id)
    await sandbox.status()
    await sandbox.stop()
    await sandbox.status()
    await container.status()


@runtime_scenario("CRI-16", "CRI-20", needs=("state_loss",), alone=True)
async def what_a_reboot_ended_has_not_ended_well(runtime: Runtime) -> None:
    """Let the node go down while a container runs: its end is unknown, so its exit code must not be 0."""
    state_loss = _state_loss(runtime)
    sandbox = await runtime.sandbox()
    container = await sandbox.running()
    state_loss.reboot()
    await sandbox.status()
    status = await container.status()
    met = status.state == cri.CONTAINER_EXITED and status.exit_code != 0
    runtime.expect("CRI-16", "an end that was not observed is never reported as exit code 0", met=met)
