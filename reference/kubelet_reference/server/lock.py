"""The lock of a root folder: two kubelets on one would undo each other's work."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from kubelet_reference.server.errors import BadInputError

_NAME = "kubelet-reference.lock"
_FOLDER_MODE, _FILE_MODE = 0o750, 0o600


@contextmanager
def locked(root_dir: str) -> Generator[None]:
    """Make the root folder and hold it; the kernel lets go of it with the process, however that ends.

    Raises:
        BadInputError: Another one holds it, or it cannot be made.
    """
    path = Path(root_dir) / _NAME
    try:
        Path(root_dir).mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _FILE_MODE)
    except OSError as error:
        raise BadInputError(
            f"root folder {root_dir}: {error.strerror}: name another one with --root-dir"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise BadInputError(
            f"root folder {root_dir}: another kubelet-reference works in it: "
            "end that one, or name another folder with --root-dir"
        ) from None
    try:
        yield
    finally:
        os.close(descriptor)
