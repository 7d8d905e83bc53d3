"""The scripts in our images do on containerd what the fake runtime does with the same words."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bare_cri import BareRuntime, at_socket
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.targets.containerd import PrivateContainerd
from kubelet_fakes.clock import LoopClock, run
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore

Seen = list[Any]
_SECOND = 1_000_000_000


@dataclass(frozen=True)
class Case:
    """Main processes, one container after another, and what is done to the last of them."""

    commands: tuple[str, ...]
    executed: tuple[str, ...] = ()
    stopped_with_grace: int | None = None


CASES = {
    "exit": Case(("exit 3 0",)),
    "exit-without-time": Case(("exit 5",)),
    "exit-later": Case(("exit 0 1.2",)),
    "exit-is-stopped": Case(("exit 9 60",), stopped_with_grace=10),
    "run-is-stopped": Case(("run",), stopped_with_grace=10),
    "run-ends-as-scripted": Case(("run stopcode=143",), stopped_with_grace=10),
    "run-takes-its-time": Case(("run stopdelay=1 stopcode=4",), stopped_with_grace=10),
    "run-outlasts-its-grace": Case(("run stopdelay=60",), stopped_with_grace=1),
    "says": Case(("exit 0 0 say=one say=two",)),
    "seq": Case(("seq 1@0 2@0 0@0",) * 4),
    "seq-with-a-run": Case(("seq 7@0 run stopcode=6",) * 2, stopped_with_grace=10),
    "x": Case(("run",), executed=("x 0 0", "x 3 0.2", "x 1 0 bytes=5")),
    "xf-without-file": Case(("run",), executed=("xf nothing",)),
}


async def lived(runtime: BareRuntime, case: Case) -> Seen:
    """What is seen of it: the output and code of what is executed, codes and times of containers."""
    pod = await runtime.pod()
    seen: Seen = []
    for attempt, command in enumerate(case.commands):
        container = await pod.container(f"{command} say=up", attempt=attempt)
        if attempt == len(case.commands) - 1:
            for words in case.executed:
                reply = await runtime.execute(container, words)
                seen.append((words, reply.exit_code, reply.stdout))
            if case.stopped_with_grace is not None:
                await pod.says(f"c1-{attempt}.log", "up")
                await runtime.stop(container, case.stopped_with_grace)
        if case.executed:
            continue
        status = await runtime.ended(container)
        seconds = round((status.finished_at - status.started_at) / _SECOND)
        seen.append((command, status.exit_code, seconds))
    await pod.remove()
    return seen


def on_containerd(containerd: PrivateContainerd, work: Callable[[BareRuntime], Awaitable[Seen]]) -> Seen:
    """Do this work on containerd."""

    async def main() -> Seen:
        async with at_socket(containerd.socket, containerd.home.folder / "pods") as runtime:
            return await work(runtime)

    return asyncio.run(main())


def on_the_fake(work: Callable[[BareRuntime], Awaitable[Seen]]) -> Seen:
    """Do it on the fake."""

    async def main() -> Seen:
        fake = FakeRuntime(RuntimeCore(), LoopClock())
        return await work(BareRuntime(fake, fake))

    return run(main())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_scripts_do_what_the_fake_does(containerd: PrivateContainerd, case: Case) -> None:
    """Exit codes, output and seconds are the same on both runtimes."""

    async def work(runtime: BareRuntime) -> Seen:
        return await lived(runtime, case)

    assert on_containerd(containerd, work) == on_the_fake(work)


def test_what_is_said_is_in_the_log(containerd: PrivateContainerd, tmp_path: Path) -> None:
    """`say=` writes lines to the container's log."""

    async def work() -> None:
        async with at_socket(containerd.socket, tmp_path) as runtime:
            pod = await runtime.pod()
            await runtime.ended(await pod.container("exit 0 0 say=one say=two"))
            await pod.remove()

    asyncio.run(work())
    (log,) = tmp_path.rglob("c1-0.log")
    lines = [line.split(" ", 3)[1:] for line in log.read_text(encoding="utf-8").splitlines()]

    assert lines == [["stdout", "F", "one"], ["stdout", "F", "two"]]


def test_file_that_a_scenario_sets_is_found(containerd: PrivateContainerd) -> None:
    """`xf FILE` finds what was set on the node, in containers that run already, until it is taken away."""

    async def work(runtime: BareRuntime) -> Seen:
        pod = await runtime.pod()
        c1 = await pod.container("run")
        codes: Seen = []
        for there in (False, True, False):
            containerd.set_file("ready", there=there)
            codes.append((await runtime.execute(c1, "xf ready")).exit_code)
        await pod.remove()
        return codes

    assert on_containerd(containerd, work) == [1, 0, 1]


@pytest.mark.parametrize("shared_pids", [False, True], ids=["own-pids", "shared-pids"])
def test_container_is_ended_from_outside(containerd: PrivateContainerd, *, shared_pids: bool) -> None:
    """`end CODE` ends the container it is executed in, with that code, and no other one of its pod."""

    async def work(runtime: BareRuntime) -> Seen:
        pod = await runtime.pod(shared_pids=shared_pids)
        c1, c2 = await pod.container("run", name="c1"), await pod.container("exit 1 60", name="c2")
        await runtime.execute(c2, "end 42")
        codes = [(await runtime.ended(c2)).exit_code, (await runtime.status(c1)).state]
        await pod.remove()
        return codes

    assert on_containerd(containerd, work) == [42, cri.ContainerState.CONTAINER_RUNNING]


def test_lack_of_memory_is_reported(containerd: PrivateContainerd) -> None:
    """`oom` has the kernel kill a process for lack of memory; the container ends with 137 and says why."""

    async def work(runtime: BareRuntime) -> Seen:
        pod = await runtime.pod()
        c1 = await pod.container("run", memory=32 << 20)
        await runtime.execute(c1, "oom")
        status = await runtime.ended(c1)
        await pod.remove()
        return [status.exit_code, status.reason]

    assert on_containerd(containerd, work) == [137, "OOMKilled"]


def test_lack_of_memory_needs_a_limit(containerd: PrivateContainerd) -> None:
    """`oom` refuses to use up the memory of the machine."""

    async def work(runtime: BareRuntime) -> Seen:
        pod = await runtime.pod()
        c1 = await pod.container("run")
        reply = await runtime.execute(c1, "oom")
        state = (await runtime.status(c1)).state
        await pod.remove()
        return [reply.exit_code, b"no limit" in reply.stderr, state]

    assert on_containerd(containerd, work) == [64, True, cri.ContainerState.CONTAINER_RUNNING]


async def http_status(address: str, port: int, path: str) -> str:
    """The first line that a server says, or nothing."""
    reader, writer = await asyncio.open_connection(address, port)
    writer.write(f"GET {path}?q HTTP/1.1\r\nHost: pod\r\n\r\n".encode())
    await writer.drain()
    answer = await reader.read()
    writer.close()
    return answer.decode().partition("\r\n")[0]


def test_server_answers_as_scripted(containerd: PrivateContainerd) -> None:
    """`serve PORT` answers 200, another status where one was set for the path, or nothing at all."""

    async def work(runtime: BareRuntime) -> Seen:
        pod = await runtime.pod()
        c1 = await pod.container("serve 8080")
        # It listens when something answers from inside.
        await runtime.execute(c1, ["sh", "-c", "until nc 127.0.0.1 8080 </dev/null; do :; done"])
        address = await pod.address()
        seen: Seen = [await http_status(address, 8080, "/healthz")]
        for status in (503, 0):
            containerd.answer_http("/healthz", status)
            seen.append(await http_status(address, 8080, "/healthz"))
        seen.append(await http_status(address, 8080, "/other"))
        await pod.remove()
        return seen

    assert on_containerd(containerd, work) == [
        "HTTP/1.1 200 Told",
        "HTTP/1.1 503 Told",
        "",
        "HTTP/1.1 200 Told",
    ]
