"""CSTAT contracts on counts, images, readiness and reasons."""

from typing import Any

import pytest
from pod_status import ended, runs, tell_status, waits
from running import running
from trace_builder import TraceBuilder
from twice import assert_detects, detects

from kubelet_conformance.contract.verdicts import Verdict


def assert_running(contract_id: str, kubernetes: str = "1.32", **wrong: Any) -> None:
    """Of a running container, and with `wrong` in its status."""
    for right in (True, False):
        s, web, _, c1 = running(kubernetes)
        tell_status(s, web, "Running", [runs(c1, **({} if right else wrong))])

        assert s.judge(contract_id).verdict.words == ("kept" if right else "broken")


def assert_ended(contract_id: str, **wrong: Any) -> None:
    """Of a container that ended, and with `wrong` in its status."""
    for right in (True, False):
        s, web, _, c1 = running()
        s.exited(c1, 1)
        tell_status(s, web, "Running", [ended(1, c1, **({} if right else wrong))])

        assert s.judge(contract_id).verdict.words == ("kept" if right else "broken")


def test_restart_count_is_that_of_the_record() -> None:
    """CSTAT-07: the number in the record's annotation is the one in the status."""
    assert_running("CSTAT-07", restartCount=1)


@pytest.mark.parametrize("count", [0, 1])
def test_restart_count_may_be_that_of_a_record_that_just_went(count: int) -> None:
    """CSTAT-07: the sync that removes a record reported it, so that the number may be lower than before."""
    s, web, _, c1 = running()
    tell_status(s, web, "Running", [waits(restartCount=2)])
    s.exited(c1, 1)
    s.remove(c1)
    s.run_container(web, s.run_sandbox(web, 1), "c1", 1)
    tell_status(s, web, "Running", [ended(1, c1, restartCount=count)])

    assert s.judge("CSTAT-07").verdict.words == ("broken" if count else "kept")


@pytest.mark.parametrize(
    ("kubernetes", "count", "verdict"),
    [
        ("1.36", 2, "kept"),
        ("1.36", 1, "kept"),
        ("1.36", 0, "broken"),
        ("1.36", 3, "broken"),
        ("1.35", 1, "broken"),
    ],
)
def test_restarts_whose_records_are_gone_count(kubernetes: str, count: int, verdict: str) -> None:
    """CSTAT-07: init containers of a new sandbox begin anew with 0, and from 1.36 on their count does not."""
    s = TraceBuilder(kubernetes)
    web = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
    for attempt in range(2):
        i1 = s.run_container(web, s.run_sandbox(web, attempt), "i1")
        s.exited(i1, 1)
        reported = ended(1, i1, restartCount=attempt if kubernetes == "1.36" else 0)
        tell_status(s, web, "Pending", inits=[reported])
        s.remove(i1)
    i1 = s.run_container(web, s.run_sandbox(web, 2), "i1")
    tell_status(s, web, "Pending", inits=[runs(i1, restartCount=count)])

    assert s.judge("CSTAT-07").verdict.words == verdict


@pytest.mark.parametrize(
    ("found", "count", "verdict"), [(True, 0, "kept"), (True, 1, "broken"), (False, 1, "broken")]
)
def test_lost_container_that_is_found_did_not_restart(count: int, verdict: str, *, found: bool) -> None:
    """CSTAT-07: the count of an end that was not observed may be taken back, and no other."""
    s, web, _, c1 = running("1.36")
    said = ended(137, c1, restartCount=1)
    if found:
        s.container_status(c1, state="CONTAINER_UNKNOWN")
        said["state"]["terminated"]["reason"] = "ContainerStatusUnknown"
        tell_status(s, web, "Running", [said])
        s.container_status(c1, state="CONTAINER_RUNNING")
    tell_status(s, web, "Running", [runs(c1, restartCount=count)])

    assert s.judge("CSTAT-07").verdict.words == verdict


@pytest.mark.parametrize(("kubernetes", "is_right"), [("1.36", True), ("1.35", False)])
def test_container_is_removed_as_its_whole_pod_restarts(kubernetes: str, *, is_right: bool) -> None:
    """CSTAT-04, CSTAT-07: from 1.36 on its status says so in place of its end, and counts a restart."""
    s, web, _, c1 = running(kubernetes)
    reason = "RestartingAllContainers"
    s.exited(c1, 42)
    s.remove(c1)
    last = {"terminated": {"exitCode": 137, "reason": reason}}
    tell_status(s, web, "Running", [waits(reason, c1, lastState=last, restartCount=1)])

    assert [bool(s.judge(each).breaks) for each in ("CSTAT-04", "CSTAT-07")] == [not is_right] * 2


@detects("CSTAT-07", if_right=Verdict.NOT_EXERCISED, goes=(True, False))
def test_pod_that_is_back_counts_anew(s: TraceBuilder, *, goes: bool) -> None:
    """CSTAT-07: a static pod whose file went and is back has no restarts yet, but one that stayed has."""
    web = s.pod("web-node-1", source="file", uid="static")
    sandbox = s.run_sandbox(web)
    tell_status(s, web, "Running", [waits(restartCount=1)])
    if goes:
        s.wait(5).unset(web)
        s.stop_sandbox(sandbox)
        s.wait(10).set(web)
    s.run_sandbox(web, 1)
    tell_status(s, web, "Pending", [waits()])


@pytest.mark.parametrize("wrong", [{"image": "other:1"}, {"imageID": "sha256:other"}, {"containerID": "x"}])
def test_image_is_that_of_the_record(wrong: dict[str, Any]) -> None:
    """CSTAT-08: image, imageID and containerID are the runtime's."""
    assert_running("CSTAT-08", **wrong)


def test_id_is_of_a_container_of_the_pod() -> None:
    """CSTAT-08: an id that nobody was given is in no status."""
    assert_running("CSTAT-08", containerID="fake://nobody")


@detects("CSTAT-08")
def test_image_without_record_is_that_of_the_spec(s: TraceBuilder, *, right: bool) -> None:
    """CSTAT-08: a container that is not there yet has its image from the spec."""
    tell_status(s, s.pod(), "Pending", [waits(image="img:1" if right else "img:2")])


@detects("CSTAT-08", if_right=Verdict.NOT_EXERCISED, updated=(True, False))
def test_image_without_record_may_be_that_of_the_spec_before(s: TraceBuilder, *, updated: bool) -> None:
    """CSTAT-08: the sync that tells of a container may have begun before its image was changed."""
    web = s.pod()
    if updated:
        web.manifest["spec"]["containers"][0]["image"] = "img:2"
        s.set(web)
    tell_status(s, web, "Pending", [waits(image="img:1" if updated else "img:2")])


def test_running_container_is_started() -> None:
    """CSTAT-09: without a startup probe a running container is started."""
    assert_running("CSTAT-09", started=False)
    assert_running("CSTAT-09", started=None)


def test_ended_container_is_not_started() -> None:
    """CSTAT-09: a container that does not run is not started."""
    assert_ended("CSTAT-09", started=True)


@detects("CSTAT-09", reported=(True, False))
def test_late_result_of_a_startup_probe_is_reported(s: TraceBuilder, *, reported: bool) -> None:
    """CSTAT-09: the success of an instance whose end has just been reported makes it started, no more."""
    probe = {"tcpSocket": {"port": 8080}}
    web = s.pod(containers=[{"name": "c1", "image": "img:1", "startupProbe": probe}])
    tell_status(s, web, "Running", [ended(1) if reported else runs(started=True)])
    tell_status(s, web, "Running", [ended(1, started=True)])


@pytest.mark.parametrize(("kubernetes", "started"), [("1.26", None), ("1.32", False)])
def test_init_containers_are_started_since_sidecars(kubernetes: str, *, started: bool | None) -> None:
    """CSTAT-09: init containers carry `started` from 1.28 on."""

    def tell(s: TraceBuilder, *, right: bool) -> None:
        pod = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
        wrong = False if started is None else None
        init = waits("PodInitializing", name="i1", started=started if right else wrong)
        tell_status(s, pod, "Pending", inits=[init])

    assert_detects("CSTAT-09", tell, kubernetes=kubernetes)


def test_running_container_without_probes_is_ready() -> None:
    """CSTAT-10: what nobody probes is ready as soon as it runs."""
    assert_running("CSTAT-10", ready=False)


def test_ended_container_is_not_ready() -> None:
    """CSTAT-10: a container that does not run is not ready."""
    assert_ended("CSTAT-10", ready=True)


@detects("CSTAT-10")
def test_init_container_is_ready_once_it_ended_well(s: TraceBuilder, *, right: bool) -> None:
    """CSTAT-10: an init container that ended with 0 is ready."""
    pod = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
    tell_status(s, pod, "Pending", inits=[ended(0, name="i1", ready=right)])


@detects("CSTAT-10")
def test_init_container_that_waits_is_not_ready(s: TraceBuilder, *, right: bool) -> None:
    """CSTAT-10: also where it has succeeded, and has to run again."""
    pod = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
    tell_status(s, pod, "Pending", inits=[waits("ErrImagePull", name="i1", ready=not right)])


@pytest.mark.parametrize("names", [["c1", "stranger"], ["c1", "c1"]])
@detects("CSTAT-13")
def test_only_containers_of_the_spec_have_a_status(s: TraceBuilder, names: list[str], *, right: bool) -> None:
    """CSTAT-13: neither a stranger nor a second one of the same name."""
    apps = [waits(name=name) for name in (["c1"] if right else names)]
    tell_status(s, s.pod(), "Pending", apps)
