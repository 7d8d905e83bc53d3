"""Addresses of a runtime: what `--container-runtime-endpoint` takes."""

from __future__ import annotations

import os

DEFAULT_ENDPOINT = "unix:///run/containerd/containerd.sock"
"""The kubelet's own default."""
_PATH_BYTES_MAX = 107
"""What fits into the address of a unix socket."""
_PREFIXES = ("unix://", "unix:", "")


def socket_of(endpoint: str) -> str:
    """The path of the socket of an endpoint such as `unix:///run/containerd/containerd.sock`.

    A bare path is taken too, as the kubelet does. Raises `ValueError` for anything else.
    """
    prefix = next(each for each in _PREFIXES if endpoint.startswith(each))
    given = endpoint.removeprefix(prefix)
    if not given.startswith("/") or "\0" in given:
        raise ValueError(
            f"expected a unix socket with an absolute path, such as {DEFAULT_ENDPOINT}, got {endpoint!r}"
        )
    path = "/" + os.path.normpath(given).lstrip("/")
    length = len(os.fsencode(path))
    if length > _PATH_BYTES_MAX:
        raise ValueError(f"expected a path of at most {_PATH_BYTES_MAX} bytes, got one of {length}")
    return path
