"""Errors of the runtime: how they are classified, and how they are worded."""

import grpc


class BadReply(grpc.RpcError):
    """The runtime answered, but the reply lacks what the kubelet cannot do without (CRI-34)."""

    def code(self) -> grpc.StatusCode:
        """Counts as UNKNOWN: it says nothing about whether the call took effect."""
        return grpc.StatusCode.UNKNOWN

    def details(self) -> str:
        """What the reply lacks."""
        return str(self)


class NoStatus(BadReply):
    """A status call was answered without any status (SYNC-21)."""


def is_not_found(error: grpc.RpcError) -> bool:
    """Whether the runtime does not know what it was asked about: the only error that is ignored (CRI-07)."""
    return error.code() is grpc.StatusCode.NOT_FOUND


def error_text(error: grpc.RpcError) -> str:
    """The runtime's own words, without the gRPC wrapper (START-03)."""
    return error.details() or ""


def wrapped_text(error: Exception) -> str:
    """The error in words, gRPC's as it prints them: "rpc error: code = NotFound desc = ..." (START-03)."""
    if isinstance(error, BadReply) or not isinstance(error, grpc.RpcError):
        return str(error)
    return f"rpc error: code = {_code_name(error.code())} desc = {error_text(error)}"


def _code_name(code: grpc.StatusCode) -> str:
    """The code as Go spells it, such as DeadlineExceeded."""
    if code is grpc.StatusCode.CANCELLED:
        return "Canceled"
    return "".join(word.capitalize() for word in code.name.split("_"))
