"""The records of a runtime, and the messages that report them.

A message that was given out is never changed: readers may keep it, and an unchanged record is reported by the
same message each time.
"""

import json
from collections.abc import Callable, MutableMapping
from typing import TypeAlias

from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.images import Image
from kubelet_fakes.runtime.script import Script

#: The label by which the kubelet asks for the records of one pod.
POD_UID = "io.kubernetes.pod.uid"

#: The names of the states of a container, by number.
CONTAINER_STATES = ("CREATED", "RUNNING", "EXITED", "UNKNOWN")


class Sandbox:
    """A sandbox: READY until it is stopped or dies, and never again (CRI-20)."""

    __slots__ = (
        "_listed",
        "_reported",
        "config",
        "containers",
        "created_at",
        "id",
        "ips",
        "key",
        "ready",
        "runtime_handler",
        "uid_label",
    )

    def __init__(
        self,
        sandbox_id: str,
        config: cri.PodSandboxConfig,
        runtime_handler: str,
        created_at: int,
        ips: tuple[str, ...],
    ) -> None:
        self.id = sandbox_id
        self.config = config
        self.runtime_handler = runtime_handler
        self.created_at = created_at
        self.ips = ips
        self.ready = True
        self.containers: dict[str, Container] = {}
        self.key = sandbox_key(config.metadata)
        self.uid_label: str = config.labels.get(POD_UID, "")
        self._listed: cri.PodSandbox | None = None
        self._reported: cri.PodSandboxStatusResponse | None = None

    @property
    def pod_uid(self) -> str:
        """The UID of its pod."""
        return self.config.metadata.uid

    @property
    def state(self) -> cri.PodSandboxState.ValueType:
        """READY or NOTREADY."""
        return cri.SANDBOX_READY if self.ready else cri.SANDBOX_NOTREADY

    def listed(self) -> cri.PodSandbox:
        """The record as a list shows it."""
        if self._listed is None or self._listed.state != self.state:
            config = self.config
            self._listed = cri.PodSandbox(
                id=self.id,
                metadata=config.metadata,
                state=self.state,
                created_at=self.created_at,
                labels=config.labels,
                annotations=config.annotations,
                runtime_handler=self.runtime_handler,
            )
        return self._listed

    def changed(self) -> None:
        """Its status is no longer what was reported last."""
        self._reported = None

    def status(self) -> cri.PodSandboxStatus:
        """The record in full; a sandbox that is not ready has no address (CRI-21)."""
        return self.reply().status

    def reply(self) -> cri.PodSandboxStatusResponse:
        """The same as the answer to PodSandboxStatus."""
        if self._reported is None or self._reported.status.state != self.state:
            config = self.config
            reply = cri.PodSandboxStatusResponse()
            status = reply.status
            status.id = self.id
            status.metadata.CopyFrom(config.metadata)
            status.state = self.state
            status.created_at = self.created_at
            _fill(status.labels, config.labels)
            _fill(status.annotations, config.annotations)
            status.runtime_handler = self.runtime_handler
            status.network.SetInParent()
            if self.ready and self.ips:
                status.network.ip = self.ips[0]
                status.network.additional_ips.extend(cri.PodIP(ip=ip) for ip in self.ips[1:])
            # The kubelet runs another sandbox in its place if the modes are not reported (CRI-22).
            status.linux.namespaces.options.CopyFrom(config.linux.security_context.namespace_options)
            self._reported = reply
        return self._reported


def _fill(into: MutableMapping[str, str], pairs: MutableMapping[str, str]) -> None:
    """Copy a map of a message into another, which `update` takes ten times longer for."""
    merge: Callable[[object], None] = getattr(into, "MergeFrom")  # noqa: B009 - a map does not declare it
    merge(pairs)


def sandbox_key(metadata: cri.PodSandboxMetadata) -> tuple[str, str, str, int]:
    """What no two sandboxes share (CRI-04)."""
    return metadata.name, metadata.namespace, metadata.uid, metadata.attempt


ContainerKey: TypeAlias = tuple[str, int, str, str, str]


def container_key(metadata: cri.ContainerMetadata, pod: cri.PodSandboxMetadata) -> ContainerKey:
    """What no two containers share; the attempt of the sandbox is no part of it."""
    return metadata.name, metadata.attempt, pod.name, pod.namespace, pod.uid


class Container:
    """An instance of a container: CREATED, then RUNNING, then EXITED (CRI-19).

    One that was stopped before it was started is EXITED and has no started_at.
    """

    __slots__ = (
        "_listed",
        "_reply",
        "attempt",
        "config",
        "created_at",
        "exit_code",
        "finished_at",
        "id",
        "image",
        "key",
        "kill_at",
        "name",
        "own_end",
        "reason",
        "sandbox",
        "script",
        "started_at",
        "state",
        "uid_label",
    )

    def __init__(  # noqa: PLR0913 - a record is made in one place, from all it is made of
        self,
        container_id: str,
        created_at: int,
        *,
        sandbox: Sandbox,
        config: cri.ContainerConfig,
        image: Image,
        script: Script,
    ) -> None:
        self.id = container_id
        self.sandbox = sandbox
        self.config = config
        self.image = image
        self.script = script
        self.name = config.metadata.name
        self.attempt = config.metadata.attempt
        self.key = container_key(config.metadata, sandbox.config.metadata)
        self.uid_label: str = config.labels.get(POD_UID, "")
        self.state: cri.ContainerState.ValueType = cri.CONTAINER_CREATED
        self.created_at = created_at
        self.started_at = 0
        self.finished_at = 0
        self.exit_code = 0
        self.reason = ""
        #: When, in the core's time, its process ends by itself, and with which code.
        self.own_end: tuple[int, int] | None = None
        #: When the runtime kills it.
        self.kill_at: int | None = None
        #: The state in which it was last listed, and as what.
        self._listed: tuple[cri.ContainerState.ValueType, bytes] | None = None
        self._reply: cri.ContainerStatusResponse | None = None

    @property
    def is_running(self) -> bool:
        """Whether its process runs."""
        return self.state == cri.CONTAINER_RUNNING

    @property
    def state_name(self) -> str:
        """CREATED, RUNNING, EXITED or UNKNOWN."""
        return CONTAINER_STATES[self.state]

    @property
    def log_path(self) -> str:
        """The file of its log; empty if it has none (CRI-36)."""
        folder, file = self.sandbox.config.log_directory, self.config.log_path
        return f"{folder}/{file}" if folder and file else ""

    def next_end(self) -> tuple[int, int] | None:
        """When its process will end, in the core's time, and with which code; None is not foreseen."""
        own, kill = self.own_end, self.kill_at
        if kill is not None and (own is None or kill < own[0]):
            return kill, 137
        return own

    def changed(self) -> None:
        """Its status is no longer what was reported last."""
        self._reply = None

    def listed(self) -> bytes:
        """A list of the record alone, encoded: such lists one after another are a list of all of them."""
        last = self._listed
        if last is None or last[0] != self.state:
            alone = cri.ListContainersResponse.FromString(last[1]) if last else self._alone()
            alone.containers[0].state = self.state
            last = self._listed = self.state, alone.SerializeToString()
        return last[1]

    def _alone(self) -> cri.ListContainersResponse:
        """A list of the record alone, but for its state."""
        config, alone = self.config, cri.ListContainersResponse()
        listed = alone.containers.add(
            id=self.id,
            pod_sandbox_id=self.sandbox.id,
            metadata=config.metadata,
            image=config.image,
            image_ref=self.image.ref,
            image_id=self.image.id,
            created_at=self.created_at,
        )
        _fill(listed.labels, config.labels)
        _fill(listed.annotations, config.annotations)
        return alone

    def reply(self) -> cri.ContainerStatusResponse:
        """The record in full, as the answer to ContainerStatus."""
        if self._reply is None:
            config = self.config
            reply = cri.ContainerStatusResponse()
            status = reply.status
            status.id = self.id
            status.metadata.CopyFrom(config.metadata)
            status.state = self.state
            status.created_at = self.created_at
            status.started_at = self.started_at
            status.finished_at = self.finished_at
            status.exit_code = self.exit_code
            status.reason = self.reason
            status.image.CopyFrom(config.image)
            status.image_ref = self.image.ref
            status.image_id = self.image.id
            _fill(status.labels, config.labels)
            _fill(status.annotations, config.annotations)
            status.mounts.MergeFrom(config.mounts)
            status.log_path = self.log_path
            status.stop_signal = config.stop_signal
            if config.linux.HasField("resources"):
                status.resources.linux.CopyFrom(config.linux.resources)
            self._reply = reply
        return self._reply

    def verbose_reply(self) -> cri.ContainerStatusResponse:
        """The same with what only a person asks for."""
        reply = cri.ContainerStatusResponse()
        reply.CopyFrom(self.reply())
        words = [*self.config.command, *self.config.args]
        reply.info["info"] = json.dumps({"sandboxID": self.sandbox.id, "words": words})
        return reply
