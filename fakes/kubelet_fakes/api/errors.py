"""What the API server answers when it does not do what it was asked, in its own words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class ApiStatusError(Exception):
    """A request that failed: `code` is HTTP's (404, 409, 422; 0 is unreachable), `reason` the API's word."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    def status(self) -> dict[str, Any]:
        """The body that HTTP carries: an object of kind Status."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field that is wrong: `kind` is the API's word for how (Required value, Forbidden ...)."""

    field: str
    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.kind}" + (f": {self.detail}" if self.detail else "")


def not_found(resource: str, name: str) -> ApiStatusError:
    """There is no such object."""
    return ApiStatusError(404, "NotFound", f'{resource} "{name}" not found', {"name": name, "kind": resource})


def already_exists(resource: str, name: str) -> ApiStatusError:
    """There is one of that name already."""
    details = {"name": name, "kind": resource}
    return ApiStatusError(409, "AlreadyExists", f'{resource} "{name}" already exists', details)


def conflict(resource: str, name: str, why: str) -> ApiStatusError:
    """The object is not in the state that the request takes for granted."""
    text = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return ApiStatusError(409, "Conflict", text, {"name": name, "kind": resource})


def invalid(kind: str, name: str, errors: Sequence[FieldError]) -> ApiStatusError:
    """The object would break a rule; the message names each field."""
    causes = [{"reason": each.kind, "message": each.detail, "field": each.field} for each in errors]
    text = str(errors[0]) if len(errors) == 1 else f"[{', '.join(map(str, errors))}]"
    details = {"name": name, "kind": kind, "causes": causes}
    return ApiStatusError(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details)


def bad_request(message: str) -> ApiStatusError:
    """The request makes no sense."""
    return ApiStatusError(400, "BadRequest", message)


def expired(wanted: int, oldest: int) -> ApiStatusError:
    """The changes since that resourceVersion are not remembered any more: list anew."""
    return ApiStatusError(410, "Expired", f"too old resource version: {wanted} ({oldest})")


def gone() -> ApiStatusError:
    """A watch ends here, as its resourceVersion is no longer remembered: list anew."""
    return ApiStatusError(410, "Expired", "The resourceVersion for the provided watch is too old.")


def unavailable(code: int) -> ApiStatusError:
    """The API server cannot be reached (code 0), or is there and cannot serve (503)."""
    if code == 0:
        return ApiStatusError(0, "Unreachable", "dial tcp: connect: connection refused")
    return ApiStatusError(code, "ServiceUnavailable", "the server is currently unable to handle the request")


_FAILURE = 400
"""The first status of HTTP that is one."""
_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    504: "Timeout",
}


def injected(code: str, message: str) -> ApiStatusError | None:
    """What a fault with this status answers; None for one that is no failure."""
    number = int(code or 500)
    if number < _FAILURE:
        return None if number else unavailable(0)
    return ApiStatusError(number, _REASONS.get(number, "ServiceUnavailable"), message)
