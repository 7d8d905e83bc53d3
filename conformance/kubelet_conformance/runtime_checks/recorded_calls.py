"""Calls to a runtime that are recorded with their replies, limited to the runtime scenario's own pods."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import grpc
from cri_api.v1 import api_pb2 as cri
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from kubelet_conformance.targets.in_process.recorded_runtime import failed
from kubelet_conformance.targets.runtime import DirectRuntime
from kubelet_conformance.trace.format.recorder import Failed, Recorder

CALL_SECONDS = 60.0
"""How long a call may take whose own time limit is not part of the runtime scenario."""
_OUTPUT_BYTES_KEPT = 4096
_POD_UID = "io.kubernetes.pod.uid"


class Recorded:
    """The runtime's calls, recorded.

    Where others use the runtime too, what a list or a stream reports of their pods is left out of the answer
    and of the record: it is not ours to record, and it changes at any time. `is_ours` decides by a pod's UID.
    """

    def __init__(self, target: DirectRuntime, recorder: Recorder, is_ours: Callable[[str], bool]) -> None:
        self._services = target.services
        self._filters = target.shared
        self._recorder = recorder
        self._is_ours = is_ours
        self._ids: set[str] = set()

    async def call(self, rpc: str, request: Message, *, timeout: float = CALL_SECONDS) -> Any:  # noqa: ANN401, ASYNC109 - the reply of its rpc; a deadline as gRPC has it
        """Make a call; raises `grpc.RpcError` if it fails, and gives up after `timeout` seconds."""
        call = self._recorder.call(rpc, request)
        try:
            response = await getattr(self._services, rpc)(request, timeout=timeout)
        except grpc.RpcError as error:
            self._recorder.reply(call, failed(error))
            raise
        if self._filters:
            response = self._own(response)
        self._recorder.reply(call, _short(response))
        return response

    async def events(self, opened: Callable[[], None]) -> AsyncGenerator[cri.ContainerEventResponse]:
        """The stream of container events; `opened` is called when nothing from now on escapes it."""
        call = self._recorder.call("GetContainerEvents", cri.GetEventsRequest())
        outcome = Failed("CANCELLED", "the scenario ended the stream")
        stream = self._services.GetContainerEvents(cri.GetEventsRequest())
        try:
            headers = getattr(stream, "initial_metadata", None)
            if headers is not None:
                await headers()
            opened()
            async with aclosing(_closable(stream)) as events:
                async for event in events:
                    if self._filters and not self._is_ours(event.pod_sandbox_status.metadata.uid):
                        continue
                    message = MessageToDict(event, preserving_proto_field_name=True)
                    self._recorder.record("message", rpc="GetContainerEvents", id=call.id, message=message)
                    yield event
        except grpc.RpcError as error:
            outcome = failed(error)
            raise
        finally:
            self._recorder.reply(call, outcome)

    def knows(self, *ids: object) -> bool:
        """Whether the runtime gave out one of these ids to this scenario, or has no other clients."""
        return not self._filters or not self._ids.isdisjoint(ids)

    def _own(self, response: Message) -> Message:
        """The response without what belongs to others."""
        match response:
            case (
                cri.RunPodSandboxResponse(pod_sandbox_id=one) | cri.CreateContainerResponse(container_id=one)
            ):
                self._ids.add(one)
            case cri.ListPodSandboxResponse():
                items = [each for each in response.items if self._is_own_sandbox(each)]
                return cri.ListPodSandboxResponse(items=items)
            case cri.ListContainersResponse():
                kept = [each for each in response.containers if self._is_own_container(each)]
                return cri.ListContainersResponse(containers=kept)
            case _:
                pass
        return response

    def _is_own_sandbox(self, one: cri.PodSandbox) -> bool:
        return (
            one.id in self._ids
            or self._is_ours(one.metadata.uid)
            or self._is_ours(one.labels.get(_POD_UID, ""))
        )

    def _is_own_container(self, one: cri.Container) -> bool:
        ours = {one.id, one.pod_sandbox_id} & self._ids
        return bool(ours) or self._is_ours(one.labels.get(_POD_UID, ""))


def _short(response: Message) -> Message:
    """The response as the record has it: of what a command printed only the begin."""
    if not isinstance(response, cri.ExecSyncResponse) or len(response.stdout) <= _OUTPUT_BYTES_KEPT:
        return response
    return cri.ExecSyncResponse(stdout=response.stdout[:_OUTPUT_BYTES_KEPT], exit_code=response.exit_code)


async def _closable(stream: Any) -> AsyncGenerator[cri.ContainerEventResponse]:  # noqa: ANN401 - a gRPC call, or a generator
    """The stream as a generator, which ends it when it is closed."""
    try:
        async for event in stream:
            yield event
    finally:
        if hasattr(stream, "cancel"):
            stream.cancel()
        else:
            await stream.aclose()
