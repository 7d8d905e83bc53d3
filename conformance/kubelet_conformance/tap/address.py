"""Where the tap listens: the address, the folder around the socket, and a socket that was left behind."""

import contextlib
import os
import re
import socket
import stat
from collections.abc import Generator
from pathlib import Path

from kubelet_conformance.run_record.temporary_folder import SOCKET_BYTES_MAX
from kubelet_conformance.trace.format.errors import BadInputError

_ADDRESS = re.compile(r"(?:unix:)?(?:/|///+)([^/].*)", re.DOTALL)
_OWNER_ONLY_FOLDER = 0o700
_OTHERS_MAY_WRITE = 0o022
_NOT_FOR_OTHERS = 0o177
"""The umask that leaves a socket readable and writable for its owner."""
_BACKLOG = 128


class AddressError(BadInputError):
    """The tap cannot listen there; the text says why and what to do."""


def socket_path(address: str) -> Path:
    """The path of an address such as `unix:///run/tap.sock`, or of a plain absolute path.

    Raises:
        AddressError: It is no address of a unix socket, or its path is not absolute or too long.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or "\0" in address:
        raise AddressError(
            f"{address!r}: no unix socket with an absolute path; write it like unix:///run/tap/tap.sock"
        )
    path = f"/{found[1]}"
    length = len(os.fsencode(path))
    if length > SOCKET_BYTES_MAX:
        raise AddressError(f"{address}: the path has {length} bytes, at most {SOCKET_BYTES_MAX}: shorten it")
    return Path(path)


class ListeningSocket:
    """A unix socket that only its owner can connect to (mode 0600), and what was made for it.

    A folder that is missing is made with mode 0700. One that is there must not be writable for others, who
    could put their own socket in the place of this one. A socket on which no process listens any more is
    replaced; one that is answered is not.

    Args:
        path: Where to listen.
        upstream: Where the runtime listens; never the same.

    Raises:
        AddressError: It cannot be; nothing is left behind.
    """

    def __init__(self, path: Path, upstream: Path) -> None:
        self.path = path
        self._made_folder = False
        self._identity: tuple[int, int] | None = None
        if path.parent.resolve() / path.name == upstream.parent.resolve() / upstream.name:
            raise AddressError(f"{path}: that is where the runtime listens: give the tap a socket of its own")
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self._listen()
        except BaseException as error:
            self.remove()
            if isinstance(error, OSError):
                raise AddressError(f"{path}: cannot listen: {error.strerror or error}") from None
            raise

    def remove(self) -> None:
        """Take away the socket, if it is still this one, and the folder that was made for it."""
        self.socket.close()
        with contextlib.suppress(OSError):
            if self._identity is not None and _identity(self.path) == self._identity:
                self.path.unlink()
        if self._made_folder:
            with contextlib.suppress(OSError):
                self.path.parent.rmdir()

    def _listen(self) -> None:
        self._see_to_folder()
        if os.path.lexists(self.path):
            self._remove_left_behind()
        with _umask(_NOT_FOR_OTHERS):
            self.socket.bind(str(self.path))
        self._identity = _identity(self.path)
        self.socket.listen(_BACKLOG)
        self.socket.setblocking(False)  # noqa: FBT003 - the only way to say it

    def _see_to_folder(self) -> None:
        folder = self.path.parent
        if not os.path.lexists(folder):
            if not folder.parent.is_dir():
                raise AddressError(f"{self.path}: {folder.parent} does not exist: make it first")
            folder.mkdir(mode=_OWNER_ONLY_FOLDER)
            self._made_folder = True
            return
        if not folder.is_dir():
            raise AddressError(f"{self.path}: {folder} is no folder: name another path")
        found = folder.stat()
        if found.st_mode & _OTHERS_MAY_WRITE or found.st_uid not in {0, os.geteuid()}:
            raise AddressError(
                f"{self.path}: others may write in {folder} (mode {stat.S_IMODE(found.st_mode):04o}, owner"
                f" {found.st_uid}) and could replace the socket:"
                f" name a folder of its own, such as {folder / 'tap' / self.path.name}, which is then made"
            )

    def _remove_left_behind(self) -> None:
        if not stat.S_ISSOCK(self.path.lstat().st_mode):
            raise AddressError(f"{self.path}: is there already and is no socket: name another path")
        error = connection_error(self.path)
        if error is None:
            raise AddressError(f"{self.path}: in use by another program: name another path, or end that")
        if not isinstance(error, ConnectionRefusedError):
            raise AddressError(f"{self.path}: cannot find out whether it is in use: {error.strerror}")
        self.path.unlink()


def connection_error(path: Path) -> OSError | None:
    """Why no process accepts connections at a socket; None if one does."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)  # noqa: FBT003 - the only way to say it
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return None  # Its queue is full, so the process that made it is alive.
        except OSError as error:
            return error
    return None


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def _umask(mask: int) -> Generator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
