"""Tables of the fake API server, which `kubectl get` prints as they are."""

import pytest
from api_world import pod
from on_loop import on_loop
from served_api import PODS, Json, ServedApi, served_api

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
NODE = {"metadata": {"name": "node-1"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}


async def _lines(api: ServedApi, path: str) -> list[list[str]]:
    _, table = await api.ask("GET", path, Accept=TABLE)
    assert table["kind"] == "Table"
    return [each["cells"] for each in table["rows"]]


@on_loop
async def test_tables() -> None:
    """What `kubectl get` prints of pods, of nodes and of other kinds."""
    async with served_api() as api:
        api.core.create("nodes", NODE)
        api.core.create("configmaps", {"metadata": {"name": "c"}, "data": {"a": "b"}})
        api.core.create("pods", pod())
        api.core.wait(90)
        running: Json = {
            "image": "img:1",
            "imageID": "",
            "ready": True,
            "restartCount": 2,
            "state": {"running": {}},
        }
        status: Json = {"phase": "Running", "containerStatuses": [{"name": "app", **running}]}
        api.core.patch("pods", "web", {"status": status}, subresource="status")
        pods = await _lines(api, PODS)
        nodes = await _lines(api, "/api/v1/nodes")
        others = await _lines(api, "/api/v1/configmaps")
        events = await _lines(api, "/api/v1/events")

    assert pods == [["web", "1/1", "Running", "2", "90s", "<none>", "node-1", "<none>", "<none>"]]
    assert nodes[0][:4] == ["node-1", "NotReady", "<none>", "90s"]
    assert others == [["c", "1", "90s"]]
    assert events == []


RUNNING: Json = {"state": {"running": {"startedAt": "2026-01-01T12:00:00Z"}}, "ready": True}
WAITING: Json = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 3}
STARTING: Json = {"state": {"waiting": {"reason": "PodInitializing"}}}
DONE: Json = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
KILLED: Json = {"state": {"terminated": {"exitCode": 137, "signal": 9}}}
FAILED: Json = {"state": {"terminated": {"exitCode": 4}}}
#: The states of init container, sidecar and container, the status, and READY, STATUS and RESTARTS of the row.
ROWS: dict[str, tuple[tuple[Json, ...], Json, list[str]]] = {
    "first init": ((RUNNING, STARTING, STARTING), {}, ["0/2", "Init:0/2", "0"]),
    "init fails": ((WAITING, STARTING, STARTING), {}, ["0/2", "Init:CrashLoopBackOff", "3"]),
    "sidecar starts": ((DONE, {**RUNNING, "ready": False}, STARTING), {}, ["0/2", "Init:1/2", "0"]),
    "running": ((DONE, {**RUNNING, "started": True}, RUNNING), {"phase": "Running"}, ["2/2", "Running", "0"]),
    "crashing": ((DONE, {**RUNNING, "started": True}, WAITING), {}, ["1/2", "CrashLoopBackOff", "3"]),
    "killed": ((DONE, {**RUNNING, "started": True}, KILLED), {}, ["1/2", "Signal:9", "0"]),
    "failed": ((DONE, {**RUNNING, "started": True}, FAILED), {}, ["1/2", "ExitCode:4", "0"]),
    "done": ((DONE, DONE, DONE), {"phase": "Succeeded"}, ["0/2", "Completed", "0"]),
    "evicted": ((), {"phase": "Failed", "reason": "Evicted"}, ["0/2", "Evicted", "0"]),
}


@pytest.mark.parametrize("case", ROWS)
@on_loop
async def test_status_of_a_pod_in_one_word(case: str) -> None:
    """Init containers first, then what a container waits for or how it ended, else reason or phase."""
    states, status, row = ROWS[case]
    names = ("one", "side", "app")
    every = [
        {"name": name, "image": "img:1", "imageID": "", "restartCount": 0, "ready": False, **state}
        for name, state in zip(names, states, strict=False)
    ]
    statuses = {"initContainerStatuses": every[:2], "containerStatuses": every[2:]}
    async with served_api() as api:
        initial: list[Json] = [
            {"name": "one", "image": "img:1"},
            {"name": "side", "image": "img:1", "restartPolicy": "Always"},
        ]
        api.core.create("pods", pod(initContainers=initial))
        api.core.patch("pods", "web", {"status": {**status, **statuses}}, subresource="status")
        before = await _lines(api, PODS)
        api.core.delete("pods", "web")
        after = await _lines(api, PODS)

    assert before[0][1:4] == row
    assert after == [] or after[0][2] == "Terminating"
