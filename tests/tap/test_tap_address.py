"""Where the tap listens: for its owner only, and out of the way of others."""

import asyncio
import os
import socket
import stat
from pathlib import Path

import pytest
from on_loop import on_loop

from kubelet_conformance.tap.address import AddressError, ListeningSocket, socket_path
from kubelet_conformance.tap.relay import Relay


def mode(path: Path) -> int:
    """Who may do what with it."""
    return stat.S_IMODE(path.lstat().st_mode)


def listening(path: Path) -> ListeningSocket:
    """A socket of a tap there."""
    return ListeningSocket(path, Path("/run/runtime.sock"))


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("unix:///run/tap.sock", "/run/tap.sock"),
        ("unix:/run/tap.sock", "/run/tap.sock"),
        ("/run/tap.sock", "/run/tap.sock"),
        ("unix:////run/tap.sock", "/run/tap.sock"),
    ],
)
def test_addresses_of_unix_sockets(address: str, path: str) -> None:
    """As kubelets write them, or a plain path."""
    assert socket_path(address) == Path(path)


@pytest.mark.parametrize(
    "address", ["", "tap.sock", "unix:tap.sock", "unix://run/tap.sock", "tcp://127.0.0.1:80", "/a\0b", "//"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    """With an example of what would be one."""
    with pytest.raises(AddressError, match="write it like unix:///run/tap"):
        socket_path(address)


def test_path_that_is_too_long_is_refused() -> None:
    """Sockets have shorter paths than files."""
    with pytest.raises(AddressError, match="has 200 bytes, at most 107"):
        socket_path("/" + "a" * 199)


def test_socket_and_folder_are_for_the_owner_only(tmp_path: Path) -> None:
    """Whatever the umask; both are gone in the end."""
    path = tmp_path / "made" / "tap.sock"
    before = os.umask(0)
    try:
        tap = listening(path)
    finally:
        os.umask(before)
    modes = mode(path), mode(path.parent)
    tap.remove()

    assert modes == (0o600, 0o700)
    assert not path.parent.exists()


@pytest.mark.parametrize("open_to_others", [0o777, 0o1777, 0o720, 0o702])
def test_folder_that_others_may_write_in_is_refused(open_to_others: int, tmp_path: Path) -> None:
    """They could put a socket of their own in the place of the tap's; the remedy is reported."""
    tmp_path.chmod(open_to_others)

    with pytest.raises(AddressError, match=rf"others may write .*mode {open_to_others:04o}.*/tap/tap.sock"):
        listening(tmp_path / "tap.sock")


def test_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner may write in it whenever they like."""
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    if not os.getuid():
        os.chown(tmp_path, 1234, 0)

    with pytest.raises(AddressError, match=f"mode 0700, owner {tmp_path.stat().st_uid}"):
        listening(tmp_path / "tap.sock")


def test_folder_that_others_may_only_read_is_left_as_it_is(tmp_path: Path) -> None:
    """Such as /run: the socket itself keeps them out."""
    tmp_path.chmod(0o755)
    tap = listening(tmp_path / "tap.sock")
    modes = mode(tap.path), mode(tmp_path)
    tap.remove()

    assert modes == (0o600, 0o755)


def test_socket_of_a_dead_tap_is_replaced(tmp_path: Path) -> None:
    """No process listens there any more."""
    path = tmp_path / "tap.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    tap = listening(path)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    tap.remove()

    assert not path.exists()


@pytest.mark.parametrize("busy", [False, True])
def test_socket_in_use_is_refused(*, busy: bool, tmp_path: Path) -> None:
    """It stays its owner's, even where its queue is full."""
    path = tmp_path / "tap.sock"
    with socket.socket(socket.AF_UNIX) as live, socket.socket(socket.AF_UNIX) as client:
        live.bind(str(path))
        live.listen(0)
        if busy:
            client.connect(str(path))

        with pytest.raises(AddressError, match="in use by another program"):
            listening(path)
        assert path.exists()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("file", "is no socket"),
        ("file/tap.sock", "is no folder"),
        ("a/b/tap.sock", "does not exist: make it"),
    ],
)
def test_place_that_is_taken_is_refused(name: str, why: str, tmp_path: Path) -> None:
    """A file is never removed, and folders are not made by the dozen."""
    (tmp_path / "file").write_text("precious")

    with pytest.raises(AddressError, match=why):
        listening(tmp_path / name)
    assert (tmp_path / "file").read_text() == "precious"


def test_socket_cannot_be_made(tmp_path: Path) -> None:
    """What the system says is reported, and the folder that was made goes."""
    with pytest.raises(AddressError, match="cannot listen"):
        listening(tmp_path / "made" / ("x" * 300))
    assert not (tmp_path / "made").exists()


def test_tap_does_not_listen_where_the_runtime_does(tmp_path: Path) -> None:
    """Even when the runtime is down and the path is written in another way."""
    (tmp_path / "link").symlink_to(tmp_path)

    with pytest.raises(AddressError, match="where the runtime listens"):
        ListeningSocket(tmp_path / "link" / "cri.sock", tmp_path / "cri.sock")


def test_socket_that_somebody_replaced_is_left(tmp_path: Path) -> None:
    """Only what is one's own is taken away."""
    tap = listening(tmp_path / "tap.sock")
    tap.path.unlink()
    tap.path.write_text("another's")
    tap.remove()

    assert tap.path.read_text() == "another's"


@on_loop
async def test_second_tap_at_one_place_is_refused(tmp_path: Path) -> None:
    """And the first one goes on."""
    path, upstream = tmp_path / "tap.sock", tmp_path / "cri.sock"
    async with Relay(path, upstream, lambda _: None):
        with pytest.raises(AddressError, match="in use"):
            await Relay(path, upstream, lambda _: None).__aenter__()
        _, writer = await asyncio.open_unix_connection(path)
        writer.close()
        await writer.wait_closed()
