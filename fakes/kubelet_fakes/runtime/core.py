"""The calls of a container runtime, decided without I/O: each is a method from request to reply.

The core reads no clock. Its driver says with `advance` what time it is, which lets happen what was
due until then, and asks `due` when to come back. Calls that take time are begun by one method and waited
for by the driver: `stop_container` until the container has exited, `begin_exec` until a moment. So what was
begun goes on whether or not anybody waits (CRI-32), and no call holds up another (CRI-33).

Replies are shared: do not change a message that comes from here.
"""

import json
from collections.abc import Callable
from collections.abc import Container as Holds
from typing import TypeAlias

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.errors import CallError, failed_precondition, invalid, not_found
from kubelet_fakes.runtime.images import Images
from kubelet_fakes.runtime.records import Container, Sandbox, container_key, sandbox_key
from kubelet_fakes.runtime.script import Execution, ScriptError, parse_execution, parse_script
from kubelet_fakes.runtime.settings import RuntimeSettings
from kubelet_fakes.runtime.store import KILLED, Store, containers_that_match, sandboxes_that_match

OUTPUT_LIMIT = 16 * 1024 * 1024
"""So many bytes of a command's output are kept, the rest is dropped (CRI-26)."""
START_FAILED = 128
"""The exit code of a container whose process could not be started."""
_NS = 1_000_000_000


StreamRequest: TypeAlias = cri.ExecRequest | cri.AttachRequest | cri.PortForwardRequest
"""A request for a stream."""


class BegunExec:
    """A command that was begun at `begun_ns`; it ends at `ends_at_ns` unless its container ends first.

    `is_cut_short` says whether that is its time limit and not its own end.
    """

    def __init__(
        self,
        container: Container,
        execution: Execution,
        begun_ns: int,
        limit_ns: int | None,
        files: Holds[str],
    ) -> None:
        self.container = container
        self._execution = execution
        self.is_cut_short = limit_ns is not None and execution.takes_ns > limit_ns
        self.ends_at_ns = begun_ns + (
            limit_ns if self.is_cut_short and limit_ns is not None else execution.takes_ns
        )
        self._files = files

    def result(self) -> cri.ExecSyncResponse:
        """The answer; the exit code is part of it, never an error (CRI-26).

        A command that outlasts its timeout is killed: DEADLINE_EXCEEDED. One whose container ended is killed
        with it.
        """
        if not self.container.is_running:
            return cri.ExecSyncResponse(exit_code=KILLED)
        if self.is_cut_short:
            details = "the command was killed: it outlasted its timeout"
            raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, details)
        code = self._execution.exit_code(self._files)
        return cri.ExecSyncResponse(stdout=self._execution.output[:OUTPUT_LIMIT], exit_code=code)


class RuntimeCore:
    """A runtime: `store` has its records, `images` its images, `files` what `xf` commands find.

    Each call raises `CallError` for what it refuses, and then changes nothing; only a process that cannot be
    started leaves its container EXITED.
    """

    def __init__(
        self,
        settings: RuntimeSettings | None = None,
        *,
        epoch_ns: int = 0,
        store: type[Store] = Store,
        images: type[Images] = Images,
    ) -> None:
        self.settings = settings or RuntimeSettings()
        self.store = store(self.settings, epoch_ns=epoch_ns)
        self.images = images(self.settings.images)
        self.files: set[str] = set()
        self.stream_url: Callable[[StreamRequest], str] | None = None
        """Gives the URL of a stream; None where none are served."""

    @property
    def now(self) -> int:
        """The core's time in nanoseconds."""
        return self.store.now

    @property
    def due(self) -> int | None:
        """When the next thing happens by itself, in the core's time."""
        return self.store.due

    def advance(self, now: int) -> None:
        """It is `now`: let happen what was due."""
        self.store.advance(now)

    # Sandboxes.

    def run_pod_sandbox(self, request: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        """Make a READY sandbox (CRI-03); one like it must not be there (CRI-04)."""
        config, handler = request.config, request.runtime_handler
        if not config.metadata.name:
            raise invalid("the sandbox has no metadata")
        if handler and handler not in self.settings.handlers:
            raise invalid(f"no runtime for {handler!r} is configured")
        self._check_name(config.metadata)
        kept = cri.PodSandboxConfig()
        kept.CopyFrom(config)
        host_network = config.linux.security_context.namespace_options.network == cri.NODE
        sandbox = self.store.add_sandbox(kept, handler, host_network=host_network)
        return cri.RunPodSandboxResponse(pod_sandbox_id=sandbox.id)

    def _check_name(self, metadata: cri.PodSandboxMetadata) -> None:
        """No two sandboxes are of one pod and attempt (CRI-04)."""
        twin = self.store.sandbox_keys.get(sandbox_key(metadata))
        if twin is not None:
            details = f"sandbox {metadata.name!r}: the name is reserved for {twin.id}"
            raise CallError(grpc.StatusCode.ALREADY_EXISTS, details)

    def stop_pod_sandbox(self, request: cri.StopPodSandboxRequest) -> cri.StopPodSandboxResponse:
        """End the sandbox and all that runs in it; stopped or gone already is fine (CRI-05)."""
        sandbox = self.store.sandboxes.get(request.pod_sandbox_id)
        if sandbox is not None:
            self._stop_sandbox(sandbox)
        return _SANDBOX_STOPPED

    def _stop_sandbox(self, sandbox: Sandbox) -> None:
        for container in list(sandbox.containers.values()):
            if container.is_running or container.state == cri.CONTAINER_UNKNOWN:
                self.store.finish(container, KILLED)
        if sandbox.ready:
            self.store.unready(sandbox)

    def remove_pod_sandbox(self, request: cri.RemovePodSandboxRequest) -> cri.RemovePodSandboxResponse:
        """Remove the sandbox and its containers, by force if need be; gone already is fine (CRI-06)."""
        sandbox = self.store.sandboxes.get(request.pod_sandbox_id)
        if sandbox is not None:
            self._stop_sandbox(sandbox)
            for container in list(sandbox.containers.values()):
                self.store.drop_container(container)
            self.store.drop_sandbox(sandbox)
        return _SANDBOX_REMOVED

    def pod_sandbox_status(self, request: cri.PodSandboxStatusRequest) -> cri.PodSandboxStatusResponse:
        """The sandbox in full; with its containers if the evented PLEG is advertised (CRI-31)."""
        sandbox = self.sandbox(request.pod_sandbox_id)
        if not self.settings.evented and not request.verbose:
            return sandbox.reply()
        reply = cri.PodSandboxStatusResponse(status=sandbox.status())
        if self.settings.evented:
            reply.containers_statuses.extend(c.reply().status for c in sandbox.containers.values())
            reply.timestamp = self.store.stamp()
        if request.verbose:
            reply.info["info"] = json.dumps({"ips": sandbox.ips, "runtimeHandler": sandbox.runtime_handler})
        return reply

    def list_pod_sandbox(self, request: cri.ListPodSandboxRequest) -> cri.ListPodSandboxResponse:
        """The sandboxes that meet the filter (CRI-09); the same message while nothing changes."""
        store, asked = self.store, request.filter
        key = asked.SerializeToString()
        reply = store.sandbox_lists.get(key)
        if reply is None:
            found = sandboxes_that_match(asked, store.sandboxes, store.index)
            reply = cri.ListPodSandboxResponse(items=[sandbox.listed() for sandbox in found])
            store.sandbox_lists[key] = reply
        return reply

    # Containers.

    def create_container(self, request: cri.CreateContainerRequest) -> cri.CreateContainerResponse:
        """Make a CREATED container in a READY sandbox (CRI-11).

        No two are of one name, attempt and pod, in whichever of its sandboxes: so containerd names them.
        """
        sandbox, config = self.sandbox(request.pod_sandbox_id), request.config
        if not sandbox.ready:
            raise failed_precondition(f"sandbox {sandbox.id} is not ready")
        metadata = config.metadata
        if not metadata.name:
            raise invalid("the container has no metadata")
        twin = self.store.container_keys.get(container_key(metadata, sandbox.config.metadata))
        if twin is not None:
            details = f"container {metadata.name!r}: the name is reserved for {twin.id}"
            raise CallError(grpc.StatusCode.ALREADY_EXISTS, details)
        self._check_target(sandbox, config)
        image = self.images.find(config.image.image)
        if image is None:
            raise not_found("image", config.image.image)
        try:
            script = parse_script((*config.command, *config.args), metadata.attempt)
        except ScriptError as error:
            raise invalid(str(error)) from None
        kept = cri.ContainerConfig()
        kept.CopyFrom(config)
        container = self.store.add_container(sandbox, kept, image, script)
        return cri.CreateContainerResponse(container_id=container.id)

    def _check_target(self, sandbox: Sandbox, config: cri.ContainerConfig) -> None:
        """A container whose processes another shall see is one of the same sandbox (CRI-37)."""
        options = config.linux.security_context.namespace_options
        if options.pid == cri.TARGET and options.target_id not in sandbox.containers:
            raise invalid(f"target {options.target_id!r} is no container of sandbox {sandbox.id}")

    def start_container(self, request: cri.StartContainerRequest) -> cri.StartContainerResponse:
        """Let a CREATED container run; it is an error in any other state (CRI-12)."""
        container = self.container(request.container_id)
        if container.state != cri.CONTAINER_CREATED:
            raise failed_precondition(f"container {container.id} is {container.state_name}, not CREATED")
        if not container.sandbox.ready:
            raise failed_precondition(f"sandbox {container.sandbox.id} is not ready")
        if not container.script.starts:
            self.fail_start(container)
            raise CallError(grpc.StatusCode.UNKNOWN, 'exec: "nostart": executable file not found in $PATH')
        try:
            self.store.start(container)
        except OSError as error:
            raise CallError(grpc.StatusCode.INTERNAL, f"no log file: {error}") from error
        return _STARTED

    def fail_start(self, container: Container) -> None:
        """What could not be started has ended, and not well (kubernetes#35344)."""
        self.store.finish(container, START_FAILED, reason="StartError")

    def stop_container(self, request: cri.StopContainerRequest) -> cri.StopContainerResponse:
        """Ask the process to end, and have it killed when the timeout is over (CRI-13).

        The container has stopped when it no longer runs: the driver waits for that before it answers. One
        that was never started never will be. What has ended, or is not there (CRI-08), is fine.
        """
        container = self.store.containers.get(request.container_id)
        if container is None:
            return _STOPPED
        if container.is_running:
            self._stop(container, max(request.timeout, 0) * _NS)
        elif container.state != cri.CONTAINER_EXITED:
            self.store.finish(container, KILLED)
        return _STOPPED

    def _stop(self, container: Container, grace: int) -> None:
        now, script = self.now, container.script
        if container.kill_at is None and grace:
            own = now + script.stop_delay_ns, script.stop_code
            container.own_end = min(filter(None, [container.own_end, own]))
        # A later stop may make the time shorter, never longer.
        kill_at = now + grace
        container.kill_at = kill_at if container.kill_at is None else min(kill_at, container.kill_at)
        self.store.foresee(container)

    def is_stopping(self, container_id: str) -> bool:
        """Whether a stop of the container has begun and its process still runs."""
        container = self.store.containers.get(container_id)
        return container is not None and container.is_running and container.kill_at is not None

    def remove_container(self, request: cri.RemoveContainerRequest) -> cri.RemoveContainerResponse:
        """Remove the container, by force if it runs; gone already is fine (CRI-15)."""
        container = self.store.containers.get(request.container_id)
        if container is not None:
            if container.is_running:
                self.store.finish(container, KILLED)
            self.store.drop_container(container)
        return _REMOVED

    def list_containers(self, request: cri.ListContainersRequest) -> cri.ListContainersResponse:
        """The containers that meet the filter (CRI-09); the same message while nothing changes."""
        store, asked = self.store, request.filter
        key = asked.SerializeToString()
        reply = store.container_lists.get(key)
        if reply is None:
            found = containers_that_match(asked, store.containers, store.sandboxes, store.index)
            reply = cri.ListContainersResponse.FromString(b"".join([one.listed() for one in found]))
            store.container_lists[key] = reply
        return reply

    def container_status(self, request: cri.ContainerStatusRequest) -> cri.ContainerStatusResponse:
        """The container in full; an unknown id is NOT_FOUND (CRI-07)."""
        container = self.container(request.container_id)
        return container.verbose_reply() if request.verbose else container.reply()

    def update_container_resources(
        self, request: cri.UpdateContainerResourcesRequest
    ) -> cri.UpdateContainerResourcesResponse:
        """Set what the request sets, all of it or nothing, before the call returns (CRI-28)."""
        container = self.container(request.container_id)
        if container.state not in {cri.CONTAINER_CREATED, cri.CONTAINER_RUNNING}:
            raise failed_precondition(f"container {container.id} is {container.state_name}")
        asked = request.linux
        if asked.cpu_shares < 0 or asked.cpu_period < 0 or asked.memory_limit_in_bytes < 0:
            raise invalid("a resource is less than nothing")
        container.config.linux.resources.MergeFrom(asked)
        self.store.resized(container)
        return _UPDATED

    def update_pod_sandbox_resources(
        self, request: cri.UpdatePodSandboxResourcesRequest
    ) -> cri.UpdatePodSandboxResourcesResponse:
        """Set what the request sets."""
        linux = self.sandbox(request.pod_sandbox_id).config.linux
        linux.overhead.MergeFrom(request.overhead)
        linux.resources.MergeFrom(request.resources)
        return cri.UpdatePodSandboxResourcesResponse()

    def reopen_container_log(self, request: cri.ReopenContainerLogRequest) -> cri.ReopenContainerLogResponse:
        """Open the log file anew, which makes it if it was moved away; nothing is made on error (CRI-29)."""
        container = self._running(request.container_id)
        try:
            self.store.logs.open(container)
        except OSError as error:
            raise CallError(grpc.StatusCode.INTERNAL, f"the log was not reopened: {error}") from error
        return _REOPENED

    def begin_exec(self, request: cri.ExecSyncRequest) -> BegunExec:
        """Execute a command in a running container (CRI-27); `BegunExec.result` gives its end."""
        container = self._running(request.container_id)
        try:
            execution = parse_execution(tuple(request.cmd))
        except ScriptError as error:
            raise invalid(str(error)) from None
        limit = request.timeout * _NS if request.timeout > 0 else None
        if execution.ends_with is not None:
            self.store.finish(container, execution.ends_with)
        return BegunExec(container, execution, self.now, limit, self.files)

    def say(self, container_id: str, text: str) -> None:
        """Let the process of a running container write a line."""
        self.store.logs.write(self._running(container_id), text, self.store.wall)

    def checkpoint_container(
        self, request: cri.CheckpointContainerRequest
    ) -> cri.CheckpointContainerResponse:
        """Accept a checkpoint of a running container; nothing is written."""
        self._running(request.container_id)
        return _CHECKPOINTED

    def exec(self, request: cri.ExecRequest) -> cri.ExecResponse:
        """Where a command in a running container can be connected to."""
        self._running(request.container_id)
        return cri.ExecResponse(url=self._stream("Exec", request))

    def attach(self, request: cri.AttachRequest) -> cri.AttachResponse:
        """Where the main process of a running container can be connected to."""
        self._running(request.container_id)
        return cri.AttachResponse(url=self._stream("Attach", request))

    def port_forward(self, request: cri.PortForwardRequest) -> cri.PortForwardResponse:
        """Where ports of a sandbox can be connected to."""
        self.sandbox(request.pod_sandbox_id)
        return cri.PortForwardResponse(url=self._stream("PortForward", request))

    def _stream(self, rpc: str, request: StreamRequest) -> str:
        """The URL for that; refused in so many words where no streaming server stands beside the fake."""
        if self.stream_url is None:
            details = f"{rpc} is not supported: this runtime serves no streams"
            raise CallError(grpc.StatusCode.UNIMPLEMENTED, details)
        return self.stream_url(request)

    # Looking up.

    def sandbox(self, sandbox_id: str) -> Sandbox:
        """The sandbox of that id; NOT_FOUND if there is none."""
        sandbox = self.store.sandboxes.get(sandbox_id)
        if sandbox is None:
            raise not_found("sandbox", sandbox_id)
        return sandbox

    def container(self, container_id: str) -> Container:
        """The container of that id; NOT_FOUND if there is none."""
        container = self.store.containers.get(container_id)
        if container is None:
            raise not_found("container", container_id)
        return container

    def _running(self, container_id: str) -> Container:
        container = self.container(container_id)
        if not container.is_running:
            raise failed_precondition(f"container {container_id} is {container.state_name}, not RUNNING")
        return container


# Empty answers are all alike.
_SANDBOX_STOPPED = cri.StopPodSandboxResponse()
_SANDBOX_REMOVED = cri.RemovePodSandboxResponse()
_STARTED = cri.StartContainerResponse()
_STOPPED = cri.StopContainerResponse()
_REMOVED = cri.RemoveContainerResponse()
_UPDATED = cri.UpdateContainerResourcesResponse()
_REOPENED = cri.ReopenContainerLogResponse()
_CHECKPOINTED = cri.CheckpointContainerResponse()
