"""What keeps `kubelet-reference` from starting, met by the whole command; and what it bears once it runs."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubelet_command import manifest, on_machine, ran
from on_loop import on_loop

from kubelet_reference.server.errors import BadInputError
from kubelet_reference.server.lock import locked


def test_no_runtime_is_two(tmp_path: Path) -> None:
    """Without a runtime it ends with 2 and one line, which has the endpoint and the remedy; no traceback."""
    flags = (f"--container-runtime-endpoint=unix://{tmp_path}/absent.sock", f"--root-dir={tmp_path}/root")

    assert asyncio.run(ran(*flags)) == (
        2,
        [
            (
                f"error: container runtime at unix://{tmp_path}/absent.sock: there is no such socket: "
                "start the runtime, or name its socket with --container-runtime-endpoint"
            )
        ],
    )


@pytest.mark.parametrize("flag", ["--port", "--read-only-port", "--healthz-port"])
@on_loop
async def test_port_in_use_is_two(tmp_path: Path, flag: str) -> None:
    """A port that is taken is named with the flag that chooses another."""
    async with on_machine(tmp_path) as machine:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            kubelet = await machine.begin(f"{flag}={port}")
            code = await kubelet.ended()

        assert (code, kubelet.lines[-1]) == (
            2,
            (
                f"error: cannot serve on 127.0.0.1 port {port}: Address already in use: "
                f"end what listens there, or choose another port with {flag}"
            ),
        )


@on_loop
async def test_two_on_one_root_folder_is_two(tmp_path: Path) -> None:
    """A second one on the same root folder is refused and leaves the first alone."""
    async with on_machine(tmp_path) as machine:
        first = await machine.start()
        second = await machine.begin()
        code = await second.ended()
        health = await first.get("/healthz")

        assert (code, second.lines) == (
            2,
            [
                (
                    f"error: root folder {machine.root}: another kubelet-reference works in it: "
                    "end that one, or name another folder with --root-dir"
                )
            ],
        )
        assert health == (200, "ok")


def test_root_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """The folder is named with the reason and the flag."""
    (tmp_path / "file").touch()

    with (
        pytest.raises(BadInputError, match="file/root: Not a directory: name another one with --root-dir"),
        locked(f"{tmp_path}/file/root"),
    ):
        pass


def clear(*path: str) -> Callable[[Any], None]:
    """A lie: a field is empty, in every item where it is in a list."""

    def lie(message: Any) -> None:
        inner = message
        for name in path[:-1]:
            inner = getattr(inner, name)
            if hasattr(inner, "add"):
                for item in inner:
                    item.ClearField(path[-1])
                return
        inner.ClearField(path[-1])

    return lie


LIES: dict[str, tuple[Callable[[Any], None], str]] = {
    "Status": (clear("status", "conditions"), "NetworkReady and RuntimeReady missing in the runtime status"),
    "RunPodSandbox": (clear("pod_sandbox_id"), "PodSandboxId for sandbox"),
    "PodSandboxStatus": (clear("status", "metadata"), "PodSandboxStatus.metadata.name is not set"),
    "CreateContainer": (clear("container_id"), "ContainerId for container"),
    "ContainerStatus": (clear("status", "image_ref"), "ContainerStatus.image_ref is not set"),
    "ImageStatus": (clear("image", "id"), "Image.id is not set"),
}


@pytest.mark.slow
@pytest.mark.parametrize("rpc", LIES)
@on_loop
async def test_lying_runtime_is_logged_and_borne(tmp_path: Path, rpc: str) -> None:
    """A runtime that leaves out what is needed is reported; the kubelet goes on, and does not run wild."""
    lie, said = LIES[rpc]
    async with on_machine(tmp_path) as machine:
        machine.runtime.lies[rpc] = lie
        machine.write("web.yaml", manifest())
        kubelet = await machine.start()
        await kubelet.says(said)
        calls = machine.runtime.count(rpc)
        health = await kubelet.get("/healthz")

        assert health == (200, "ok")
        assert calls < 30


@pytest.mark.slow
@on_loop
async def test_runtime_that_stops_lying_is_used(tmp_path: Path) -> None:
    """What a lie kept from running runs when the runtime tells the truth, and runs once."""
    async with on_machine(tmp_path) as machine:
        machine.runtime.lies["Status"] = clear("status", "conditions")
        machine.write("web.yaml", manifest())
        kubelet = await machine.start()
        await kubelet.says("missing in the runtime status")
        machine.runtime.lies.clear()
        await kubelet.until_running("web")

        assert machine.runtime.count("RunPodSandbox") == machine.runtime.count("StartContainer") == 1


@on_loop
async def test_log_keeps_what_it_tells_in_one_line(tmp_path: Path) -> None:
    """What a runtime says cannot begin a line of its own, nor reach the terminal as an escape."""
    async with on_machine(tmp_path) as machine:

        def lie(message: Any) -> None:
            message.runtime_name = "evil\nE1121 fake\x1b[2J"

        machine.runtime.lies["Version"] = lie
        kubelet = await machine.start()

        assert any("on evil E1121 fake\\u001b[2J 1.0.0" in line for line in kubelet.lines)
        assert all(line[0] in "IWEF" for line in kubelet.lines)
