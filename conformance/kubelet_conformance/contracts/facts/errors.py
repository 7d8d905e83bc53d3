"""How a kubelet prints the error of a call in its events: as gRPC does."""

from kubelet_conformance.trace.format.records import Reply

_UNANSWERED = frozenset({"DEADLINE_EXCEEDED", "UNAVAILABLE"})


def printed_error(reply: Reply) -> str:
    """The error with which the runtime has answered, "" if it has not.

    Without an answer of the runtime the client says in its own words what went wrong.
    """
    error = reply.error
    if error is None or not error.message or error.code in _UNANSWERED:
        return ""
    code = "".join(word.capitalize() for word in error.code.split("_"))
    return f"rpc error: code = {code.replace('Cancelled', 'Canceled')} desc = {error.message}"
