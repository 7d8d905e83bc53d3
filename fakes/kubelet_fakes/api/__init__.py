"""An API server without I/O: a core that keeps the objects, and connections to it that can break."""

from kubelet_fakes.api.connection import Answer, Connection
from kubelet_fakes.api.core import ApiCore, numbered_uids
from kubelet_fakes.api.errors import ApiStatusError, FieldError
from kubelet_fakes.api.objects import FrozenDict, FrozenList
from kubelet_fakes.api.requests import Client, Request
from kubelet_fakes.api.watching import Change, Watch, WatchEvent

__all__ = (
    "Answer",
    "ApiCore",
    "ApiStatusError",
    "Change",
    "Client",
    "Connection",
    "FieldError",
    "FrozenDict",
    "FrozenList",
    "Request",
    "Watch",
    "WatchEvent",
    "numbered_uids",
)
