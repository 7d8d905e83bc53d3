"""The first contact with the runtime: whether there is one that this kubelet can work with (CRI-01)."""

import os
import socket
import stat

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_reference.cri.checks import check_version
from kubelet_reference.cri.errors import BadReply, error_text
from kubelet_reference.server.errors import BadInputError
from kubelet_reference.server.host.channel import Channel
from kubelet_reference.util.ports import ImageService, RuntimeService

FIRST_ANSWER_SECONDS = 10.0
"""So long may the first answer of a runtime take, or as long as any call if that is less."""
_OLD_VERSION = "/runtime.v1alpha2.RuntimeService/Version"
_RUNTIME_FLAG, _IMAGE_FLAG = "--container-runtime-endpoint", "--image-service-endpoint"


async def check_runtime(channel: Channel, runtime: RuntimeService, seconds: float) -> cri.VersionResponse:
    """What the runtime calls itself; raises `BadInputError` if there is none, or none that will do."""
    _check_socket(channel.path, _RUNTIME_FLAG)
    try:
        reply = await runtime.Version(cri.VersionRequest(), timeout=seconds)
        check_version(reply)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise await _other_service(channel, seconds) from None
        raise _refusal(channel.path, error, seconds, "Version", _RUNTIME_FLAG) from None
    return reply


async def check_images(channel: Channel, images: ImageService, seconds: float) -> None:
    """See whether an image service answers, as kubelets from 1.26 on do; raises `BadInputError` if not."""
    _check_socket(channel.path, _IMAGE_FLAG)
    try:
        await images.ImageFsInfo(cri.ImageFsInfoRequest(), timeout=seconds)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            text = f"there is no runtime.v1.ImageService: name the socket of one with {_IMAGE_FLAG}"
            raise _bad(channel.path, text) from None
        raise _refusal(channel.path, error, seconds, "ImageFsInfo", _IMAGE_FLAG) from None


def _check_socket(path: str, flag: str) -> None:
    """Distinguish what gRPC reports alike: no socket, no permission, no process that listens."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):  # noqa: PTH116 - the mode alone is wanted
            raise _bad(path, f"this is no socket: name the runtime's socket with {flag}")
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(FIRST_ANSWER_SECONDS)
            probe.connect(path)
    except FileNotFoundError:
        text = f"there is no such socket: start the runtime, or name its socket with {flag}"
        raise _bad(path, text) from None
    except ConnectionRefusedError:
        raise _bad(path, "the socket is there, but no process listens: start the runtime again") from None
    except PermissionError:
        raise _bad(path, "permission denied: run as the user the socket belongs to, such as root") from None
    except OSError as error:
        raise _bad(path, f"cannot connect: {error.strerror or error}") from None


async def _other_service(channel: Channel, seconds: float) -> BadInputError:
    """Why there is gRPC, but not the service that is needed."""
    try:
        await channel.channel.unary_unary(_OLD_VERSION)(b"", timeout=seconds)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return _bad(
                channel.path,
                "another gRPC service answers there, it has no runtime.v1.RuntimeService: name the "
                f"runtime's socket with {_RUNTIME_FLAG}, or switch the runtime's CRI on",
            )
    return _bad(
        channel.path,
        "the runtime speaks CRI v1alpha2 only, CRI v1 is needed: use containerd 1.6, CRI-O 1.20, or newer",
    )


def _refusal(path: str, error: grpc.RpcError, seconds: float, rpc: str, flag: str) -> BadInputError:
    """Why a first call failed, and what to do."""
    said = error_text(error)
    if isinstance(error, BadReply):
        return _bad(path, f"{rpc} was answered, but {said}: this is no CRI runtime that a kubelet can use")
    match error.code():
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            text = f"something listens there, but {rpc} was not answered in {seconds:g} s: see to the runtime"
            return _bad(path, f"{text}, or name its socket with {flag}")
        case grpc.StatusCode.UNAVAILABLE:
            text = f"something listens there, but it does not speak gRPC ({said})"
            return _bad(path, f"{text}: name the runtime's socket with {flag}")
        case code:
            return _bad(path, f"{rpc} failed with {code.name}: {said}: see to the runtime")


def _bad(path: str, text: str) -> BadInputError:
    return BadInputError(f"container runtime at unix://{path}: {text}")
