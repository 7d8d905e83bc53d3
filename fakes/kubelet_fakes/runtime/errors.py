"""The one error a failed call raises: gRPC's own, in process as over a socket."""

import grpc
import grpc.aio


class CallError(grpc.aio.AioRpcError):
    """A call failed, with `code()` and `details()`; `effect` is False if it was kept from taking place."""

    def __init__(self, code: grpc.StatusCode, details: str, *, effect: bool = True) -> None:
        super().__init__(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details)
        self.effect = effect


def not_found(kind: str, name: str) -> CallError:
    """What was asked for is not there (CRI-07)."""
    return CallError(grpc.StatusCode.NOT_FOUND, f"{kind} {name} not found")


def invalid(details: str) -> CallError:
    """The request makes no sense."""
    return CallError(grpc.StatusCode.INVALID_ARGUMENT, details)


def failed_precondition(details: str) -> CallError:
    """The request cannot be met in the state things are in."""
    return CallError(grpc.StatusCode.FAILED_PRECONDITION, details)
