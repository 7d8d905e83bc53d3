"""Addresses of a runtime: what `--container-runtime-endpoint` takes."""

from __future__ import annotations

import os
import re

__all__ = ("DEFAULT_ENDPOINT", "socket_of")

DEFAULT_ENDPOINT = "unix:///run/containerd/containerd.sock"
"""The kubelet's own default."""
_PATH_BYTES_MAX = 107
"""What fits into the address of a unix socket."""
_ADDRESS = re.compile(r"(?:unix:(?://)?)?(/[^\0]*)")


def socket_of(endpoint: str) -> str:
    """The path of the socket of an endpoint such as `unix:///run/containerd/containerd.sock`.

    A bare path is taken too, as the kubelet does. Raises `ValueError` for anything else.
    """
    found = _ADDRESS.fullmatch(endpoint)
    if found is None:
        raise ValueError(
            f"expected a unix socket with an absolute path, such as {DEFAULT_ENDPOINT}, got {endpoint!r}"
        )
    path = "/" + os.path.normpath(found[1]).lstrip("/")
    length = len(os.fsencode(path))
    if length > _PATH_BYTES_MAX:
        raise ValueError(f"expected a path of at most {_PATH_BYTES_MAX} bytes, got one of {length}")
    return path
