"""IMAGE contracts on failed pulls: each is kept by a right trace and broken by a wrong one."""

import pytest
from outside_world import file_pod, remove_file, static_config
from trace_builder import PodHandle, TraceBuilder
from twice import assert_detects, detects

from kubelet_conformance.contract.verdicts import Verdict


def pull(s: TraceBuilder, web: PodHandle, image: str = "img:1", *, error: str | None = None) -> None:
    """PullImage."""
    request = {"image": {"image": image}, "sandbox_config": s.sandbox_config(web)}
    s.call("PullImage", request, {"image_ref": f"sha256:{image}"}, error=error)


def failing(s: TraceBuilder) -> PodHandle:
    """A pod whose first pull has failed."""
    web = s.pod()
    s.run_sandbox(web)
    pull(s, web, error="INTERNAL")
    return web


def waits(s: TraceBuilder, web: PodHandle, reason: str, message: str) -> None:
    """A status in which c1 waits for this reason."""
    waiting = {"reason": reason, "message": message}
    s.status(web, "Pending", containerStatuses=[{"name": "c1", "state": {"waiting": waiting}}])


@pytest.mark.parametrize("failures", [1, 2, 3, 6])
@detects("IMAGE-07")
def test_pull_waits_for_its_back_off(s: TraceBuilder, failures: int, *, right: bool) -> None:
    """IMAGE-07 breaks when a pull comes before 10, 20, 40 ... 300 s have passed since the failure."""
    web = failing(s)
    delays = [10, 20, 40, 80, 160, 300][:failures]
    for delay in delays[:-1]:
        s.wait(delay)
        pull(s, web, error="INTERNAL")
    s.wait(delays[-1] + (1 if right else -1))
    pull(s, web)


@pytest.mark.parametrize("after", ["ten minutes", "a restart"])
def test_back_off_begins_anew(after: str) -> None:
    """IMAGE-07 begins at 10 s again after a long time, and the kubelet forgets it when it starts anew."""
    s = TraceBuilder()
    web = failing(s)
    if after == "a restart":
        s.record("kubelet", op="killed")
        s.record("kubelet", op="started")
        pull(s, web, error="INTERNAL")
    else:
        s.wait(10)
        pull(s, web, error="INTERNAL")
        s.delete(web)
        s.wait(601)
        pull(s, web, error="INTERNAL")
    s.wait(11)
    pull(s, web)

    assert s.judge("IMAGE-07").breaks == 0


@detects("IMAGE-07", if_right=Verdict.NOT_EXERCISED, same=(False, True))
def test_back_off_of_a_static_pod_that_is_back(s: TraceBuilder, *, same: bool) -> None:
    """IMAGE-07: with the same content it has the same UID, by which the back-off is known."""
    web = file_pod(s)
    sandbox = s.run_sandbox(web, config=static_config(s, web))
    pull(s, web, error="INTERNAL")
    s.stop_sandbox(sandbox)
    remove_file(s, web)
    s.call("RemovePodSandbox", {"pod_sandbox_id": sandbox.id}, {})
    other = file_pod(s.wait(5), **({} if same else {"restartPolicy": "Never"}))
    again = web if same else other
    s.run_sandbox(again, config=static_config(s, again))
    pull(s, again)


@detects("IMAGE-07")
def test_failed_pull_is_retried(s: TraceBuilder, *, right: bool) -> None:
    """IMAGE-07 breaks when an image is not pulled again once its back-off is over."""
    web = failing(s)
    s.wait(25 if right else 40)
    pull(s, web)


@pytest.mark.parametrize("wrong", ["other message", "no failure"])
@detects("IMAGE-07")
def test_failed_pull_is_reported(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """IMAGE-07 breaks when ErrImagePull says something else than the runtime, or nothing had failed."""
    web = failing(s) if right or wrong == "other message" else s.pod()
    waits(s, web, "ErrImagePull", "rpc error: injected" if right else "it did not work")
    s.wait(12)
    pull(s, web)


@pytest.mark.parametrize(("version", "tells"), [("1.26", False), ("1.31", False), ("1.32", True)])
def test_back_off_tells_the_failure(version: str, *, tells: bool) -> None:
    """IMAGE-09 breaks when 1.32 does not tell the error of the pull before, or 1.31 does."""

    def tell(s: TraceBuilder, *, right: bool) -> None:
        web = failing(s)
        waits(s, web, "ImagePullBackOff", "Back-off: injected" if tells == right else "Back-off")

    assert_detects("IMAGE-09", tell, kubernetes=version)
