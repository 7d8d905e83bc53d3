"""The status manager: what it accepts, what it writes and when, and when a pod's object goes."""

from typing import Any

import pytest
from decisions_bench import a_pod
from lightkube.models.core_v1 import Pod, PodStatus
from msgspec import convert
from msgspec.structs import replace
from on_loop import run_by
from status_bench import Bench, on_bench

from kubelet_reference.api import names, pods
from kubelet_reference.status.conditions import condition
from kubelet_reference.util.versions import Behaviour

OLD = Behaviour.of("1.26")
C1: dict[str, Any] = {"name": "c1", "image": "", "imageID": "", "ready": False, "restartCount": 0}
WAITS: dict[str, Any] = {"waiting": {}}
RUNS: dict[str, Any] = {"running": {}}
ENDS: dict[str, Any] = {"terminated": {"exitCode": 0}}


def shown(phase: str, state: dict[str, Any] = RUNS, *, ready: str = "False", **fields: Any) -> PodStatus:
    """A status of a pod with the one container c1."""
    body = {
        "phase": phase,
        "conditions": [{"type": "Ready", "status": ready}],
        "containerStatuses": [{**C1, "state": state, "containerID": "fake://c1-0"}],
    }
    return convert({**body, **fields}, PodStatus)


def changed(pod: Pod, **fields: Any) -> Pod:
    """The pod with another status."""
    return replace(pod, status=replace(pod.status or PodStatus(), **fields))


@run_by(on_bench)
async def test_change_is_written_at_once(bench: Bench) -> None:
    """A status is read, patched and then left alone until it changes (STATUS-01)."""
    pod = bench.want(a_pod(status={"phase": "Pending"}))
    bench.manager.set_pod_status(pod, shown("Pending", WAITS))
    await bench.let(0.001)
    first = bench.patches[0]
    bench.manager.set_pod_status(pod, shown("Pending", WAITS))
    await bench.let(0.001)

    assert len(bench.patches) == 1
    assert bench.api.reads == 1
    assert first["startTime"] == "2023-11-14T22:13:20Z"
    assert first["conditions"][0]["lastTransitionTime"] == "2023-11-14T22:13:20Z"


@run_by(on_bench)
async def test_several_changes_at_once_are_one_patch(bench: Bench) -> None:
    """Of several statuses set before the next write only the last is sent (STATUS-02)."""
    pod = bench.want(a_pod())
    bench.manager.set_pod_status(pod, shown("Pending", WAITS))
    bench.manager.set_pod_status(pod, shown("Running"))
    await bench.let(0.001)

    assert [patch["phase"] for patch in bench.patches] == ["Running"]


@run_by(on_bench)
async def test_times_stay(bench: Bench) -> None:
    """The startTime never changes, a transition time only with its status (STATUS-08, STATUS-09)."""
    pod = bench.want(a_pod())
    bench.manager.set_pod_status(pod, shown("Pending"))
    await bench.let(5)
    bench.manager.set_pod_status(pod, shown("Running"))
    same = bench.manager.get("u1")
    await bench.let(5)
    bench.manager.set_pod_status(pod, shown("Running", ready="True"))
    turned = bench.manager.get("u1")

    assert same is not None
    assert turned is not None
    assert [str(one.startTime)[11:19] for one in (same, turned)] == ["22:13:20"] * 2
    times = [condition(one.conditions, "Ready") for one in (same, turned)]
    assert [str(one.lastTransitionTime)[11:19] for one in times if one] == ["22:13:20", "22:13:30"]


@run_by(on_bench)
async def test_times_outlive_the_kubelet(bench: Bench) -> None:
    """A new kubelet takes startTime over from the API server (STATUS-08)."""
    pod = bench.want(a_pod(status={"startTime": "2023-11-14T12:00:00Z"}))
    bench.manager.set_pod_status(pod, shown("Running"))
    await bench.let(0.001)

    assert "startTime" not in bench.patches[0]


@run_by(on_bench)
async def test_failed_patch_is_repeated_within_10_seconds(bench: Bench) -> None:
    """A patch that failed is tried again by the next batch (STATUS-20)."""
    bench.api.failures = ["patch"]
    bench.manager.set_pod_status(bench.want(a_pod()), shown("Running"))
    await bench.let(9)
    before = [*bench.patches]
    await bench.let(2)

    assert before == []
    assert bench.stored.phase == "Running"


@run_by(on_bench)
async def test_failed_patch_is_repeated_with_the_next_change(bench: Bench) -> None:
    """A patch that failed is tried again when the status of any pod changes (STATUS-20)."""
    bench.api.failures = ["patch"]
    bench.manager.set_pod_status(bench.want(a_pod()), shown("Running"))
    await bench.let(1)
    bench.manager.set_pod_status(a_pod(uid="u2", name="other"), shown("Running"))
    await bench.let(1)

    assert bench.stored.phase == "Running"


@run_by(on_bench)
async def test_impossible_status_is_dropped(bench: Bench) -> None:
    """A container that ended for good does not come back to life (STATUS-10)."""
    pod = bench.want(a_pod(policy="Never"))
    bench.manager.set_pod_status(pod, shown("Running", ENDS))
    bench.manager.set_pod_status(pod, shown("Running", RUNS))
    await bench.let(1)

    assert [patch["containerStatuses"][0]["state"] for patch in bench.patches] == [ENDS]


@run_by(on_bench)
async def test_readiness_changes_the_conditions(bench: Bench) -> None:
    """A readiness result is written without a sync; an unknown container is ignored (STATUS-13)."""
    pod = bench.want(a_pod())
    bench.manager.set_container_readiness("u1", "c1-0", ready=True)
    bench.manager.set_pod_status(pod, shown("Running"))
    bench.manager.set_container_readiness("u1", "other", ready=True)
    await bench.let(1)
    bench.manager.set_container_readiness("u1", "c1-0", ready=True)
    await bench.let(1)
    ready = [condition(bench.stored.conditions, kind) for kind in ("Ready", "ContainersReady")]

    assert len(bench.patches) == 2
    assert [one.status for one in ready if one] == ["True", "True"]
    assert bench.stored.containerStatuses
    assert bench.stored.containerStatuses[0].ready


@run_by(on_bench)
async def test_startup_result(bench: Bench) -> None:
    """A startup result is written into the container's `started`."""
    bench.manager.set_pod_status(bench.want(a_pod()), shown("Running"))
    bench.manager.set_container_startup("u1", "c1-0", started=True)
    await bench.let(1)

    assert bench.patches[-1]["containerStatuses"][0]["started"] is True


@run_by(on_bench)
async def test_whole_end_of_a_deleted_pod(bench: Bench) -> None:
    """The terminal phase waits until nothing can run, the DELETE for the last status (TERM-15, 18, 19)."""
    bench.want(a_pod(status={"phase": "Running"}))
    pod = bench.want(a_pod(status={"phase": "Running"}, deleting=True))
    bench.manager.set_pod_status(pod, shown("Succeeded", ENDS))
    await bench.let(11)
    held = bench.stored.phase
    bench.could_run = False
    bench.manager.set_pod_status(pod, shown("Succeeded", ENDS))
    await bench.let(1)
    before_cleanup = bench.verbs
    bench.manager.terminate_pod(pod)
    await bench.let(1)

    assert held == "Running"
    assert "delete" not in before_cleanup
    assert bench.patches[-1]["phase"] == "Succeeded"
    assert bench.api.writes[-1] == ("delete", (0, "u1"))
    assert bench.manager.get("u1") is None


@run_by(on_bench)
async def test_failed_delete_is_repeated(bench: Bench) -> None:
    """A final DELETE that failed is tried again within 10 s."""
    pod = bench.want(a_pod(status={"phase": "Failed"}, deleting=True))
    bench.could_run = False
    bench.manager.terminate_pod(pod)
    bench.api.failures = ["delete"]
    await bench.let(11)

    assert bench.verbs.count("delete") == 2
    assert bench.api.pods == {}


@run_by(on_bench)
async def test_pod_that_never_ran_fails(bench: Bench) -> None:
    """A deleted pod that started nothing ends as Failed, with an unknown end (TERM-16, TERM-17)."""
    pod = bench.want(a_pod(deleting=True))
    bench.could_run = False
    bench.manager.set_pod_status(pod, shown("Pending", WAITS))
    bench.manager.terminate_pod(pod)
    status = bench.manager.get("u1")
    await bench.let(1)

    assert status is not None
    assert status.phase == "Failed"
    assert bench.patches[-1]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    assert bench.verbs[-1] == "delete"


@run_by(on_bench)
async def test_refused_pod_is_written_once(bench: Bench) -> None:
    """A status without conditions, as of a refused pod, says nowhere that it is ready and is left alone."""
    pod = bench.want(a_pod())
    bench.could_run = False
    bench.manager.set_pod_status(pod, PodStatus(phase="Failed", reason="OutOfcpu", message="no"))
    await bench.let(35)

    assert len(bench.patches) == 1
    assert not bench.stored.conditions


@run_by(on_bench, behaviour=OLD)
async def test_old_kubelet_deletes_without_a_terminal_phase(bench: Bench) -> None:
    """Up to 1.26 the object goes when nothing runs and the volumes are gone, whatever its phase (TERM-18)."""
    bench.reclaimed = False
    pod = bench.want(a_pod(status={"phase": "Running"}, deleting=True))
    bench.manager.set_pod_status(pod, shown("Running", ENDS))
    await bench.let(1)
    bench.could_run = False
    bench.manager.terminate_pod(pod)
    await bench.let(1)
    with_volumes = bench.verbs
    bench.reclaimed = True
    await bench.let(10)

    assert "delete" not in with_volumes
    assert bench.verbs[-1] == "delete"
    assert all(patch.get("phase", "Running") == "Running" for patch in bench.patches)


def a_static_pod() -> Pod:
    """One of a manifest with that hash."""
    pod = a_pod(source="file", uid="hash")
    assert pod.metadata is not None
    pod.metadata.annotations = {**pods.annotations(pod), names.CONFIG_HASH: "hash"}
    return pod


@run_by(on_bench)
async def test_static_pod_is_shown_by_its_mirror(bench: Bench) -> None:
    """The status of a static pod waits for its mirror, and never deletes it (STATIC-16, 17, 21)."""
    pod = a_static_pod()
    bench.known["hash"] = pod
    bench.could_run = False
    bench.manager.set_pod_status(pod, shown("Running"))
    await bench.let(15)
    reads = bench.api.reads
    bench.mirror = a_pod(uid="m1", mirror="hash", deleting=True)
    bench.api.add(bench.mirror)
    await bench.let(10)
    bench.manager.terminate_pod(pod)
    await bench.let(10)

    assert reads == 0
    assert bench.verbs == ["patch", "patch"]
    assert bench.stored.phase == "Running"


@run_by(on_bench)
async def test_old_mirror_is_not_written_to(bench: Bench) -> None:
    """A mirror that was replaced, and whose successor is not known yet, gets nothing; the status is kept."""
    pod = a_static_pod()
    bench.known["hash"] = pod
    bench.mirror = a_pod(uid="m1", mirror="hash")
    bench.api.add(a_pod(uid="m2", mirror="hash"))
    bench.manager.set_pod_status(pod, shown("Running"))
    await bench.let(1)

    assert bench.api.writes == []
    assert bench.manager.get("hash") is not None


@pytest.mark.parametrize(("file", "patches"), [("hash", 1), ("other", 0)])
@run_by(on_bench)
async def test_mirror_of_another_file_is_not_written_to(bench: Bench, file: str, patches: int) -> None:
    """The last status of a static pod whose file changed is not the next pod's (STATUS-04)."""
    pod = a_static_pod()
    bench.mirror = a_pod(uid="m1", mirror=file)
    bench.api.add(bench.mirror)
    bench.manager.set_pod_status(pod, shown("Failed"))
    await bench.let(1)

    assert len(bench.patches) == patches


@run_by(on_bench)
async def test_orphans_are_forgotten(bench: Bench) -> None:
    """The statuses of pods that nobody wants any more are dropped (STATUS-14)."""
    bench.manager.set_pod_status(a_pod(), shown("Running"))
    bench.manager.set_pod_status(a_pod(uid="u2"), shown("Running"))
    bench.manager.remove_orphans({"u2"})
    await bench.let(1)

    assert bench.manager.get("u1") is None
    assert bench.api.reads == 1
