"""Containers: created, started, ended, removed."""

from contextlib import suppress

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import runtime_scenario
from kubelet_conformance.targets.controls import NotPossibleError

_KILLED = 137
_SOON = 0.5
"""Every caller sees a process that ends after so many seconds as running first."""


@runtime_scenario("CRI-11", "CRI-12", "CRI-19", "CRI-34")
async def a_container_is_created_and_then_started(runtime: Runtime) -> None:
    """Create a container, read it, start it twice, and read it again."""
    sandbox = await runtime.sandbox()
    container = await sandbox.create()
    await container.status()
    await runtime.look()
    await container.start()
    await container.status()
    await runtime.attempt("StartContainer", cri.StartContainerRequest(container_id=container.id))
    await container.status()


@runtime_scenario("CRI-12")
async def a_failed_start_is_an_end(runtime: Runtime) -> None:
    """Start a container whose program is not there, or refuse to create it; then start another attempt."""
    sandbox = await runtime.sandbox()
    asked = sandbox.request(runtime.target.commands.nothing())
    with suppress(grpc.RpcError):
        container = await sandbox.create(request=asked)
        await runtime.ended(container.start())
        await container.status()
    await sandbox.running(attempt=1)


@runtime_scenario("CRI-12", "CRI-16", "CRI-19")
async def an_ended_container_is_not_started_again(runtime: Runtime) -> None:
    """Let a container end by itself, start it once more, and start another attempt beside it."""
    sandbox, commands = await runtime.sandbox(), runtime.target.commands
    container = await sandbox.running(commands.exit(0, _SOON))
    await container.end()
    await runtime.attempt("StartContainer", cri.StartContainerRequest(container_id=container.id))
    await container.status()
    await sandbox.running(commands.exit(0, _SOON), attempt=1)


@runtime_scenario("CRI-16", "CRI-34")
async def exit_codes_are_reported(runtime: Runtime) -> None:
    """Let containers end with a few codes."""
    sandbox = await runtime.sandbox()
    for attempt, code in enumerate((0, 3, 255)):
        container = await sandbox.running(runtime.target.commands.exit(code, _SOON), attempt=attempt)
        status = await container.end()
        met = (status.state, status.exit_code) == (cri.CONTAINER_EXITED, code)
        runtime.expect("CRI-16", f"a process that ends with {code} is reported with that exit code", met=met)


@runtime_scenario("CRI-16")
async def a_process_may_end_at_once(runtime: Runtime) -> None:
    """Let containers end as soon as they have started; finished_at must never be before started_at."""
    sandbox = await runtime.sandbox()
    for attempt in range(8):
        container = await sandbox.running(runtime.target.commands.exit(0), attempt=attempt)
        await container.end()


@runtime_scenario("CRI-16")
async def a_killed_process_has_the_code_of_its_signal(runtime: Runtime) -> None:
    """Stop a container without a grace period."""
    container = await runtime.running(runtime.target.commands.run(stop_delay=60))
    await container.stop(0)
    code = (await container.status()).exit_code
    runtime.expect("CRI-16", f"a process that was killed has exit code {_KILLED}", met=code == _KILLED)


@runtime_scenario("CRI-16", needs=("starvation",))
async def lack_of_memory_is_reported(runtime: Runtime) -> None:
    """Let a container exceed its memory limit; its end must be reported as OOMKilled at once and for good."""
    sandbox = await runtime.sandbox()
    asked = sandbox.request(runtime.target.commands.starve())
    asked.config.linux.resources.memory_limit_in_bytes = 32 << 20
    container = await sandbox.create(request=asked)
    await container.start()
    runtime.target.starve(container.id)
    first = await container.end()
    await runtime.wait(1)
    later = await container.status()
    for status in (first, later):
        met = (status.reason, status.exit_code) == ("OOMKilled", _KILLED)
        runtime.expect("CRI-16", f"the reason is OOMKilled and the exit code {_KILLED}", met=met)


@runtime_scenario("CRI-17")
async def dead_containers_stay(runtime: Runtime) -> None:
    """Let containers end, and list everything a while later."""
    sandbox = await runtime.sandbox()
    for attempt in range(2):
        container = await sandbox.running(runtime.target.commands.exit(attempt, _SOON), attempt=attempt)
        await container.end()
    await runtime.look()
    await runtime.wait(1)
    await runtime.look()
    await runtime.list_containers(state=cri.ContainerStateValue(state=cri.CONTAINER_EXITED))


@runtime_scenario("CRI-15")
async def a_container_is_removed_by_force(runtime: Runtime) -> None:
    """Remove a container that runs, look for it, and remove it again."""
    container = await runtime.running()
    request = cri.RemoveContainerRequest(container_id=container.id)
    await runtime.attempt("RemoveContainer", request)
    await runtime.look()
    await runtime.attempt("ContainerStatus", cri.ContainerStatusRequest(container_id=container.id))
    await runtime.attempt("RemoveContainer", request)


@runtime_scenario("CRI-10", "CRI-18")
async def labels_of_a_container_come_back(runtime: Runtime) -> None:
    """Give containers labels and annotations, and read them in lists and statuses."""
    sandbox = await runtime.sandbox()
    for attempt in range(2):
        asked = sandbox.request(attempt=attempt)
        asked.config.labels.update({"empty": "", "a.b.c/d-e_f": "A.b-C_9"})
        note = '{"ports":[{"containerPort":80}]}\n'
        asked.config.annotations.update({"io.kubernetes.container.ports": note, "empty": ""})
        container = await sandbox.create(request=asked)
        await container.status()
    await runtime.look()


@runtime_scenario("CRI-34")
async def a_container_knows_its_image(runtime: Runtime) -> None:
    """Create a container by the image's id, as a kubelet does."""
    await _by_image_id(runtime)
    await runtime.look()


@runtime_scenario("CRI-39")
async def a_container_knows_the_id_of_its_image(runtime: Runtime) -> None:
    """Do the same where the runtime reports image_id, which came with Kubernetes 1.30."""
    if not (await _by_image_id(runtime)).image_id:
        raise NotPossibleError("its ContainerStatus has no image_id, which the CRI has since Kubernetes 1.30")


async def _by_image_id(runtime: Runtime) -> cri.ContainerStatus:
    """The status of a container that was created by the id of its image."""
    asked_for = cri.ImageSpec(image=runtime.target.image)
    image = (await runtime.call("ImageStatus", cri.ImageStatusRequest(image=asked_for))).image
    sandbox = await runtime.sandbox()
    asked = sandbox.request()
    asked.config.image.image, asked.config.image.user_specified_image = image.id, runtime.target.image
    container = await sandbox.create(request=asked)
    return await container.status()


@runtime_scenario("CRI-37")
async def processes_are_shared_within_a_sandbox_only(runtime: Runtime) -> None:
    """Let a container share the processes of one in its sandbox, and of one in another."""
    near, far = await runtime.sandbox("near"), await runtime.sandbox("far")
    for place in (near, far):
        target = await place.running(name="target")
        asked = near.request(name=f"looks-{place.config.metadata.name}")
        options = asked.config.linux.security_context.namespace_options
        options.pid, options.target_id = cri.TARGET, target.id
        await runtime.attempt("CreateContainer", asked)
