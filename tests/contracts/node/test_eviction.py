"""EVICT contracts, and who has a pod killed: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from node_pressure import configured_node, evict, press, run, stop, use
from outside_world import event, killed, started
from running import BROKEN, KEPT
from trace_builder import TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

NOT_EXERCISED = Verdict.NOT_EXERCISED

LIMITED = [{"name": "c1", "image": "img:1", "resources": {"limits": {"ephemeral-storage": "1Gi"}}}]


@pytest.mark.parametrize("wrong", ["", "together", "never"])
def test_one_pod_at_a_time(wrong: str) -> None:
    """EVICT-01: a pod goes within 10 s, and the next one when it is gone."""
    s = configured_node()
    a, b = run(s, "a"), run(s, "b")
    press(s)
    if wrong != "never":
        evict(s, a)
    if wrong == "":
        stop(s, a)
    if wrong != "never":
        evict(s, b, after=1)
    s.wait(30).stop_here()

    assert s.judge("EVICT-01").verdict is (BROKEN if wrong else KEPT)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        ({}, KEPT),
        ({"message": "no"}, BROKEN),
        ({"reason": ""}, BROKEN),
        ({"phase": "Succeeded"}, BROKEN),
    ],
)
def test_evicted_pod_is_failed(status: dict[str, Any], verdict: Verdict) -> None:
    """EVICT-02: Failed, Evicted, and what for."""
    s = configured_node()
    web = run(s)
    evict(s, web)
    stop(s, web)
    reported: dict[str, Any] = {"reason": "Evicted", **status}
    web.fails(**reported)
    s.stop_here()

    assert s.judge("EVICT-02").verdict is verdict


SOFT = {"evictionSoft": {"memory.available": "100Mi"}, "evictionHard": {"memory.available": "20Mi"}}


@pytest.mark.parametrize(
    ("kubernetes", "configuration", "timeout", "verdict"),
    [
        ("1.32", {}, 2, KEPT),
        ("1.32", {}, 60, BROKEN),
        ("1.26", {}, 60, KEPT),
        ("1.26", {}, 2, BROKEN),
        ("1.32", {**SOFT, "evictionMaxPodGracePeriod": 20}, 20, KEPT),
        ("1.32", {**SOFT, "evictionMaxPodGracePeriod": 90}, 60, KEPT),
        ("1.32", {**SOFT, "evictionMaxPodGracePeriod": 20}, 2, BROKEN),
        ("1.26", {**SOFT, "evictionMaxPodGracePeriod": 90}, 90, KEPT),
        ("1.32", {**SOFT, "evictionMaxPodGracePeriod": -1}, 60, KEPT),
        ("1.32", {**SOFT, "evictionMaxPodGracePeriod": -1}, 2, BROKEN),
    ],
)
def test_grace_of_an_eviction(
    kubernetes: str, configuration: dict[str, Any], timeout: int, verdict: Verdict
) -> None:
    """EVICT-03: the threshold, the maximum and the version decide."""
    s = configured_node(kubernetes, **configuration)
    web = run(s, grace=60)
    press(s)
    evict(s, web)
    stop(s, web, timeout)
    s.stop_here()

    assert s.judge("EVICT-03").verdict is verdict


@pytest.mark.parametrize("wrong", ["", "stays", "untold"])
def test_records_of_an_evicted_pod_go(wrong: str) -> None:
    """EVICT-05: within a minute, and with their ends reported."""
    s = configured_node()
    web = run(s)
    evict(s, web)
    stop(s, web)
    lost = {"name": "c1", "state": {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}}
    reported: dict[str, Any] = {"containerStatuses": [lost]} if wrong == "untold" else {}
    web.fails("Evicted", **reported)
    if wrong != "stays":
        s.remove(web.c1)
    s.wait(100).stop_here()

    assert s.judge("EVICT-05").verdict is (BROKEN if wrong else KEPT)


@pytest.mark.parametrize(("restarted", "again"), [(False, False), (False, True), (True, False), (True, True)])
def test_evicted_pod_stays_ended(*, restarted: bool, again: bool) -> None:
    """EVICT-07: neither this kubelet nor the next one starts it."""
    s = configured_node()
    web = run(s)
    evict(s, web)
    stop(s, web)
    web.fails("Evicted")
    if restarted:
        killed(s.wait(1))
        started(s.wait(1))
    if again:
        s.wait(1).run_sandbox(web.pod, 1)
    s.wait(10).stop_here()

    assert s.judge("EVICT-07").verdict is (BROKEN if again else KEPT)


@pytest.mark.parametrize("wrong", ["", "stays", "neighbour"])
def test_pod_above_its_limits_goes(wrong: str) -> None:
    """EVICT-08: it goes, and no other."""
    s = configured_node()
    volumes = [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}]
    web, other = run(s, volumes=volumes), run(s, "other", containers=LIMITED)
    use(s, other, ephemeral_storage="500Mi")
    use(s, web, volume_data="2Gi")
    if wrong != "stays":
        evict(s, other if wrong else web)
    s.wait(30).stop_here()

    assert s.judge("EVICT-08").verdict is (BROKEN if wrong else KEPT)


@pytest.mark.parametrize(("says_after", "verdict"), [(10.5, KEPT), (3.0, BROKEN), (None, BROKEN)])
def test_kill_is_awaited_so_long(says_after: float | None, verdict: Verdict) -> None:
    """WORK-20: no longer than it may take, and no less."""
    s = configured_node()
    web = run(s)
    press(s)
    evict(s, web)
    s.begin("StopContainer", {"container_id": web.c1.id, "timeout": "2"})
    if says_after is not None:
        s.wait(says_after)
        event(s, web.pod, "ExceededGracePeriod", kind="Warning")
    s.wait(40).stop_here()

    assert s.judge("WORK-20").verdict is verdict


@detects("WORK-20", begin=configured_node, made=(False, True))
def test_kill_goes_on_all_the_same(s: TraceBuilder, *, made: bool) -> None:
    """WORK-20: a kill that is no longer awaited goes on, and nothing is made in the pod."""
    web = run(s)
    press(s)
    evict(s, web)
    call = s.begin("StopContainer", {"container_id": web.c1.id, "timeout": "2"})
    s.wait(10.5)
    event(s, web.pod, "ExceededGracePeriod", kind="Warning")
    s.exited(web.c1, 137, seen=False)
    s.wait(1).end("StopContainer", call)
    if made:
        s.run_container(web.pod, web.sandbox, attempt=1)
    s.stop_sandbox(web.sandbox)
    s.wait(40).stop_here()


@pytest.mark.parametrize(
    ("mark", "stays", "verdict"), [(True, True, KEPT), (False, True, BROKEN), (True, False, BROKEN)]
)
def test_disruption_is_marked(*, mark: bool, stays: bool, verdict: Verdict) -> None:
    """COND-08: from the terminal status on."""
    s = configured_node()
    web = run(s)
    evict(s, web)
    stop(s, web)
    web.fails("Evicted", mark=mark)
    web.fails("Evicted", mark=mark and stays)
    s.stop_here()

    assert s.judge("COND-08").verdict is verdict


@pytest.mark.parametrize(("version", "verdict"), [("1.27", NOT_EXERCISED), ("1.28", BROKEN)])
def test_preemption_is_marked_later(version: str, verdict: Verdict) -> None:
    """COND-08: the end of a pod that was preempted has no mark before 1.28."""
    s = configured_node(version)
    web = run(s)
    evict(s, web, "Preempting")
    stop(s, web)
    web.fails("Preempting", mark=False)
    s.stop_here()

    assert s.judge("COND-08").verdict is verdict
