"""`kubelet-reference` as a process: it runs pods, is asked over HTTP, ends, is killed, and comes back."""

import signal
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web
from kubelet_command import KubeletCommand, manifest, on_machine
from on_loop import on_loop

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@on_loop
async def test_signal_ends_it_and_containers_go_on(tmp_path: Path, number: signal.Signals) -> None:
    """A pod runs, is shown with its status, and goes on running when the kubelet is asked to end."""
    async with on_machine(tmp_path) as machine:
        machine.write("web.yaml", manifest())
        kubelet = await machine.start()
        (pod,) = await kubelet.until_running("web")
        health = await kubelet.get("/healthz")
        status, metrics = await kubelet.get("/metrics")
        kubelet.process.send_signal(number)
        code = await kubelet.ended()

        assert pod["metadata"]["annotations"]["kubernetes.io/config.source"] == "file"
        assert pod["status"]["containerStatuses"][0]["state"].keys() == {"running"}
        assert health == (200, "ok")
        assert status == 200
        assert "kubelet_running_pods 1.0" in metrics
        assert (code, kubelet.lines[-1].rpartition(" ")[2]) == (0, "Ended")
        assert machine.runtime.count("StopContainer") == 0


@on_loop
async def test_killed_and_started_again_adopts(tmp_path: Path) -> None:
    """After SIGKILL the next one finds what runs and makes nothing twice, whatever was left behind."""
    async with on_machine(tmp_path) as machine:
        first = await machine.start_with_pod()
        await first.kill()
        machine.write("late.yaml", manifest("late"))
        second = await machine.start()
        await second.until_running("web", "late")

        assert (machine.runtime.count("RunPodSandbox"), machine.runtime.count("StartContainer")) == (2, 2)
        assert machine.runtime.count("StopPodSandbox") == machine.runtime.count("StopContainer") == 0


def killed(kubelet: KubeletCommand, _: object) -> None:
    """A lie that is none: the kubelet dies before it hears the reply."""
    kubelet.process.kill()


@on_loop
async def test_killed_in_the_middle_of_a_start_is_finished_by_the_next(tmp_path: Path) -> None:
    """Wherever a life breaks off, the next one ends with one sandbox and one container that runs."""
    async with on_machine(tmp_path) as machine:
        machine.write("web.yaml", manifest())
        for rpc in ("RunPodSandbox", "CreateContainer", "StartContainer"):
            kubelet = await machine.begin()
            machine.runtime.lies[rpc] = partial(killed, kubelet)
            await kubelet.ended()
            machine.runtime.lies.clear()
        last = await machine.start()
        await last.until_running("web")
        ready = [each for each in machine.core.store.sandboxes.values() if each.ready]
        running = [each for each in machine.core.store.containers.values() if each.state == 1]

        assert (len(ready), len(running)) == (1, 1)


@on_loop
async def test_runtime_that_goes_away_is_reported_once_and_found_again(tmp_path: Path) -> None:
    """While the runtime is away the kubelet waits; when it is back, nothing that ran is made again."""
    async with on_machine(tmp_path) as machine:
        kubelet = await machine.start_with_pod()
        await machine.runtime_goes()
        await kubelet.says("is away")
        machine.write("late.yaml", manifest("late"))
        # A few attempts have failed by then.
        await kubelet.until_pods(lambda found: len(found) == 1)
        await machine.runtime_comes()
        await kubelet.says("is back")
        await kubelet.until_running("web", "late")

        assert sum("is away" in line for line in kubelet.lines) == 1
        assert sum("is back" in line for line in kubelet.lines) == 1
        assert machine.runtime.count("RunPodSandbox") == machine.runtime.count("StartContainer") == 2


@on_loop
async def test_removed_manifest_stops_the_pod(tmp_path: Path) -> None:
    """A pod whose manifest goes is stopped; a manifest that is bad is reported by file and field."""
    async with on_machine(tmp_path) as machine:
        machine.write("web.yaml", manifest())
        machine.write("bad.yaml", manifest("bad", restartPolicy="Sometimes"))
        kubelet = await machine.start()
        await kubelet.until_running("web")
        reported = await kubelet.says("bad.yaml")
        (machine.manifests / "web.yaml").unlink()
        await kubelet.says('reason="Killing"')
        await kubelet.until_pods(lambda found: not found)

        assert "restartPolicy" in reported


@on_loop
async def test_pods_from_a_url(tmp_path: Path) -> None:
    """Manifests come from a URL too, asked with the headers that are configured."""
    async with on_machine(tmp_path) as machine:
        received: list[str] = []

        async def answer(request: web.Request) -> web.Response:
            received.append(request.headers.get("X-Node", ""))
            return web.Response(text=manifest("far"))

        application = web.Application()
        application.router.add_get("/m", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/m"
        with (tmp_path / "config.yaml").open("a", encoding="utf-8") as config:
            config.write("staticPodURLHeader: {X-Node: [one]}\n")
        kubelet = await machine.start(f"--manifest-url={url}")
        (pod,) = await kubelet.until_running("far")
        await kubelet.kill()
        await runner.cleanup()

        assert pod["metadata"]["annotations"]["kubernetes.io/config.source"] == "http"
        assert received[0] == "one"


@on_loop
async def test_second_signal_ends_at_once(tmp_path: Path) -> None:
    """One that has been asked to end and is asked again ends with 130, whatever it was doing."""
    async with on_machine(tmp_path) as machine:
        kubelet = await machine.start()
        kubelet.process.send_signal(signal.SIGINT)
        kubelet.process.send_signal(signal.SIGTERM)

        assert await kubelet.ended() in {0, 130}
