"""The API server on loopback: HTTP to the requests of `kubelet_fakes.api`, and their answers back."""

from kubelet_fakes.api_server.server import ApiServer, CannotListenError

__all__ = ("ApiServer", "CannotListenError")
