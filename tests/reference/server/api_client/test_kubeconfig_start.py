"""`kubelet-reference --kubeconfig` as a process: what keeps it from starting, and pods of both kinds."""

from pathlib import Path

import pytest
from aiohttp import web
from fixed_random import FixedRandom
from kubelet_command import manifest, on_machine
from kubelet_world import manifest as pod_object
from on_loop import on_loop

from kubelet_fakes.api import ApiCore, Connection
from kubelet_fakes.api_server import ApiServer
from kubelet_reference.server.api_client.api_link import linked
from kubelet_reference.server.api_client.kubeconfig import read_kubeconfig
from kubelet_reference.server.errors import BadInputError
from kubelet_reference.server.host.event_log import LoggedEvents
from kubelet_reference.server.host.system_clock import WallClock

pytestmark = pytest.mark.slow
NOWHERE = "http://127.0.0.1:9"


def kubeconfig(folder: Path, server: str) -> str:
    """A flag that names a kubeconfig for the server."""
    path = folder / "kubeconfig"
    path.write_text(
        f"current-context: c\nclusters: [{{name: k, cluster: {{server: '{server}'}}}}]\n"
        "contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {token: wrong}}]\n",
        encoding="utf-8",
    )
    return f"--kubeconfig={path}"


@on_loop
async def test_server_that_is_away(tmp_path: Path) -> None:
    """Without other pods to run it ends, with the remedy; with a manifest folder it runs those meanwhile."""
    async with on_machine(tmp_path) as machine:
        flag = kubeconfig(tmp_path, NOWHERE)
        alone = await machine.begin("--pod-manifest-path=", flag)
        code = await alone.ended()
        machine.write("web.yaml", manifest())
        other = await machine.start(flag)
        await other.until_running("web")

        text = (
            f"API server at {NOWHERE}: cannot connect: connection refused: start it, or correct server in "
            f"{tmp_path}/kubeconfig"
        )
        assert (code, alone.lines) == (2, [f"error: {text}"])
        assert any(f"{text}; until it answers only pods from manifests run" in line for line in other.lines)


@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        ("https", "cannot connect: [SSL: "),
        ("http", "HTTP 404: nothing here: this is no API server: correct server in "),
    ],
)
@on_loop
async def test_server_of_another_kind(tmp_path: Path, scheme: str, said: str) -> None:
    """What listens there without TLS, or is no API server at all, is known by its answer."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=404, text="nothing here")

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
    config = kubeconfig(tmp_path, server).partition("=")[2]
    clock = WallClock()
    async with linked(read_kubeconfig(config), clock, FixedRandom(), "node", LoggedEvents()) as link:
        with pytest.raises(BadInputError) as raised:
            await link.check("node", may_wait=False)
    await runner.cleanup()

    assert str(raised.value).startswith(f"API server at {server}: {said}")


@on_loop
async def test_credentials_that_are_refused(tmp_path: Path) -> None:
    """A token that the server does not accept ends it, with the file in which to correct it."""
    async with on_machine(tmp_path) as machine, ApiServer(ApiCore(machine.clock.wall_ns)) as server:
        kubelet = await machine.begin(kubeconfig(tmp_path, server.url))
        code = await kubelet.ended()

        remedy = f"put a token or certificate that it accepts in {tmp_path}/kubeconfig"
        assert (code, kubelet.lines[-1]) == (
            2,
            f"error: API server at {server.url}: Unauthorized: {remedy}",
        )


@on_loop
async def test_pods_of_both_kinds(tmp_path: Path) -> None:
    """Pods of the API server run beside those of the manifest folder, and SIGTERM leaves them running."""
    async with on_machine(tmp_path) as machine:
        core = ApiCore(machine.clock.wall_ns)
        async with ApiServer(Connection(core)) as server:
            path = tmp_path / "kubeconfig"
            path.write_text(server.kubeconfig(), encoding="utf-8")
            machine.write("web.yaml", manifest())
            core.create("pods", pod_object("far", nodeName="node-1"))
            kubelet = await machine.start(f"--kubeconfig={path}")
            await kubelet.until_pods(
                lambda found: (
                    {pod["metadata"]["name"] for pod in found} == {"far", "web-node-1"}
                    and all(pod["status"].get("phase") == "Running" for pod in found)
                )
            )
            kubelet.process.terminate()
            code = await kubelet.ended()
            told = [line for line in kubelet.lines if server.token in line]

        assert (code, told) == (0, [])
        assert machine.runtime.count("StopContainer") == 0
