"""Nothing is left of a private containerd, however it or its owner ends."""

import asyncio
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import containerd_owner
import pytest
from bare_cri import at_socket
from machine_traces import traces
from on_loop import on_loop

from kubelet_conformance.targets.containerd import (
    CannotRunError,
    Home,
    PrivateContainerd,
    StartError,
    configuration,
    leftovers,
)
from kubelet_reference.server.host.clock import LoopClock

INTERRUPTED = 130


@pytest.fixture
def base() -> Generator[Path]:
    """Where instances of one test lie; the last of them takes it away."""
    folder = Path(tempfile.mkdtemp(prefix="kct-", dir="/var/lib"))
    yield folder
    assert not folder.exists()


def owner(base: Path) -> subprocess.Popen[str]:
    """A process that owns a containerd with a pod; it says so as soon as the pod runs."""
    command = [sys.executable, containerd_owner.__file__, str(base)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def pod_on(containerd: PrivateContainerd) -> None:
    """Let a pod run there."""
    async with at_socket(containerd.socket) as runtime:
        await (await runtime.pod()).container("run")


def test_stop_leaves_nothing() -> None:
    """After pods, a killed daemon and one started again, the machine is as it was."""

    async def work() -> None:
        async with PrivateContainerd() as containerd:
            await pod_on(containerd)
            containerd.kill()
            await containerd.start()
            await pod_on(containerd)
            async with at_socket(containerd.socket) as runtime:
                pod = await runtime.pod()
                await pod.container("run", memory=64 << 20)
                await pod.remove()

    before = traces()
    asyncio.run(work())

    assert traces() - before == set()


def test_leftovers_are_found(base: Path) -> None:
    """While an instance lives, each kind of thing that it makes is listed; afterwards none."""
    containerd = PrivateContainerd(base=base)

    async def work() -> tuple[str, ...]:
        await containerd.start()
        await pod_on(containerd)
        return leftovers(containerd.home)

    found = asyncio.run(work())
    home = containerd.home
    containerd.stop()

    kinds = {"process", "mount", "bridge", "link", "lease", "file", "cgroup", "folder"}
    assert {line.split()[0] for line in found} == kinds
    assert leftovers(home, containerd.seen_ids) == ()


def test_failing_user_leaves_nothing(base: Path) -> None:
    """An error within its context passes through, after everything was removed."""
    homes: list[Home] = []

    async def work() -> None:
        async with PrivateContainerd(base=base) as containerd:
            homes.append(containerd.home)
            await pod_on(containerd)
            raise LookupError("of the user")

    with pytest.raises(LookupError, match="of the user"):
        asyncio.run(work())

    assert leftovers(homes[0]) == ()


def test_failing_start_leaves_nothing(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A containerd that ends as it starts is reported with the end of its log, and leaves nothing."""

    def nonsense(*_: object) -> str:
        return "version = ["

    monkeypatch.setattr(configuration, "containerd_config", nonsense)
    before = traces()

    with pytest.raises(StartError, match=r"(?s)containerd ended as it started.*toml"):
        asyncio.run(PrivateContainerd(base=base).start())

    assert {line for line in traces() - before if "kct-" in line or "kc-" in line} == set()


@on_loop
async def test_stop_before_start_is_fine(base: Path) -> None:
    """Stopping what was never started, or twice, does nothing."""
    containerd = PrivateContainerd(base=base)
    containerd.stop()
    await containerd.start()
    containerd.stop()
    containerd.stop()


@pytest.mark.parametrize("moment", ["owner.json", "config.toml", "containerd.sock", "ready"])
def test_interrupted_owner_leaves_nothing(base: Path, moment: str) -> None:
    """Ctrl-C at any moment, while it starts or later, leaves nothing."""

    def has_come() -> bool:
        return any(base.glob(f"kc-*/{moment}"))

    async def come() -> None:
        clock = LoopClock(0)
        while not has_come() and process.poll() is None:
            await clock.sleep(0.001)

    before = traces()
    with owner(base) as process:
        if moment == "ready":
            assert process.stdout is not None
            process.stdout.readline()
        else:
            asyncio.run(come())
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=60)

    assert process.returncode == INTERRUPTED, output
    assert traces() - before == set()


def test_what_a_dead_owner_left_is_removed_by_the_next(base: Path) -> None:
    """SIGKILL leaves everything in place, and the next one to start removes it."""
    before = traces()
    with owner(base) as process:
        assert process.stdout is not None
        home = Home(Path(process.stdout.readline().strip()))
        process.kill()
    left = leftovers(home)

    async def work() -> tuple[str, ...]:
        async with PrivateContainerd(base=base):
            return leftovers(home)

    assert any(line.startswith("process") for line in left)
    assert asyncio.run(work()) == ()
    assert traces() - before == set()


def test_what_lives_is_left_alone(base: Path) -> None:
    """The next one to start leaves instances of living owners as they are."""
    with owner(base) as process:
        assert process.stdout is not None
        home = Home(Path(process.stdout.readline().strip()))

        async def work() -> None:
            async with PrivateContainerd(base=base):
                before = set(leftovers(home))
                assert any(line.startswith("process") for line in before)

        asyncio.run(work())
        left = leftovers(home)
        process.send_signal(signal.SIGINT)

    assert any(line.startswith("process") for line in left)
    assert leftovers(home) == ()


def test_missing_program_is_named(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where something is missing, one error names it and the Debian package, and nothing was made."""
    base.rmdir()

    def which(name: str, path: str = "") -> str | None:
        return None if name == "runc" else f"{path}/{name}"

    monkeypatch.setattr("shutil.which", which)

    with pytest.raises(CannotRunError, match="- the program runc: apt-get install runc"):
        asyncio.run(PrivateContainerd(base=base).start())
