"""PROBE: the effects of exec probe results: kills, readiness, events."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, ContainerStatus, Finding, Moment, Note, Pod
from kubelet_conformance.contract.applicability import (
    CRI,
    EVERY_EVENT,
    EVERY_STATUS,
    PODS,
    STATUS,
    ByVersion,
    since,
)
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, kept_if
from kubelet_conformance.contract.patterns import call, event, exited, pod_set, status
from kubelet_conformance.contracts.facts import probe as probes
from kubelet_conformance.contracts.facts.container import is_hashed_otherwise
from kubelet_conformance.contracts.facts.kills import explained, is_killed_already, to_be_explained
from kubelet_conformance.contracts.facts.kubelet import is_of_another_version
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, about, is_first_of_this_life, is_on
from kubelet_conformance.contracts.facts.static_pod import is_sent_for
from kubelet_conformance.contracts.facts.status import (
    AGAIN,
    is_held_up,
    is_late,
    shows_other_changes,
    shows_probes_only,
)
from kubelet_conformance.contracts.facts.timing import API_POLL, KUBELET_START, REACTION
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format.records import Event

_KILLING: tuple[probes.Name, ...] = ("liveness", "startup")


def _reported(m: Moment) -> list[tuple[ContainerStatus, Container]]:
    """The status of each running container that was created in the trace."""
    if m.status is None or m.pod is None:
        return []
    found: list[tuple[ContainerStatus, Container]] = []
    for one in m.status.every_container:
        container = m.world.containers.get(one.runtime_id) if one.state.running is not None else None
        if container is not None and container.born:
            found.append((one, container))
    return found


@contract("PROBE-02", on=status(), needs=(CRI, PODS, STATUS))
def container_is_not_ready_at_first(m: Moment) -> Iterator[Finding]:
    """Each instance of a container begins as not ready and, with a startup probe, as not started; the first
    success of its own probe changes that.
    """
    for one, container in _reported(m):
        by_name = probes.exec_probes(container)
        for name, says in (("readiness", one.ready), ("startup", bool(one.started))):
            if name not in by_name:
                continue
            if says and not probes.ever_succeeded(container, name):
                if _workers_are_to_come(m, container) or probes.probes_have_ended(m):
                    continue
                if probes.may_have_a_former_worker(m, container):
                    continue
                if name == "startup" and probes.counts_as_started(m):
                    continue
                said = "ready" if name == "readiness" else "started"
                text = f"{one.name} is shown as {said}, and its {name} probe has never succeeded"
                yield broken(text, container.started_seq)
            else:
                yield KEPT


def _workers_are_to_come(m: Moment, container: Container) -> bool:
    """The kubelet has just come back: its first status of a pod is made before its probes have workers."""
    began = m.node.started_t
    if began is None or (container.started_t or 0.0) >= began:
        return False
    return m.t - began < KUBELET_START or is_first_of_this_life(m)


@contract("PROBE-06", on=call("StopContainer"), needs=(CRI, PODS), clause="kill")
def failures_in_a_row_count(m: Moment, container: Container) -> Findings:
    """Only as many failures in a row as failureThreshold says make a probe fail, and as many successes in a
    row as successThreshold says make it succeed; the opposite result begins the count anew.
    """
    if explained(m, probes=False):
        return None
    by_name = probes.exec_probes(container)
    names: list[probes.Name] = [name for name in _KILLING if name in by_name]
    if not names:
        return None
    tallies = [probes.runs_of(container, name, m) for name in names]
    if any(runs.published is False for runs in tallies):
        return KEPT
    reported = ", ".join(
        f"the {name} probe failed {0 if runs.last else runs.count} of {by_name[name].failure_threshold} times"
        for name, runs in zip(names, tallies, strict=True)
    )
    return to_be_explained(m, f"there is a reason to stop container {container.name} ({reported} in a row)")


@failures_in_a_row_count.clause("ready", on=AGAIN)
def readiness_flips_at_its_threshold(m: Moment) -> Iterator[Finding]:
    """Readiness changes with a result that came often enough."""
    pod = m.pod
    old = {one.name: one for one in pod.status.every_container} if pod is not None and pod.status else {}
    for one, container in _reported(m):
        before, readiness = old.get(one.name), probes.exec_probes(container).get("readiness")
        if before is None or readiness is None or before.runtime_id != one.runtime_id:
            continue
        runs = probes.runs_of(container, "readiness", m)
        if before.ready is one.ready or runs.published is None:
            continue
        if runs.published is one.ready or m.t - runs.ended_t <= API_POLL:
            yield KEPT
        elif not probes.probes_have_ended(m):
            text = f"{one.name} is shown as {'' if one.ready else 'not '}ready, its probe says otherwise"
            yield broken(text, runs.published_seq)


@contract("PROBE-09", on=probes.PROBES, needs=(CRI, PODS))
def failed_startup_kills(m: Moment, pod: Pod) -> Findings:
    """A startup probe that has failed as often in a row as its threshold says gets its container killed."""
    probed = probes.probe_at(m)
    if probed is None or probed.name != "startup" or not probed.reached or probed.outcome != "failure":
        return None
    container = probed.container
    if pod.termination is not None:
        return None
    if container.state != "running" or is_killed_already(m, container):
        return None
    return probes.is_killed(container, "after its startup probe failed")


@contract("PROBE-10", on=probes.PROBES, needs=(CRI, PODS), clause="lives")
def unready_container_lives_on(m: Moment) -> Findings:
    """A readiness probe that fails never gets its container killed."""
    probed = probes.probe_at(m)
    if probed is None or probed.name != "readiness" or probed.outcome != "begins":
        return None
    return KEPT if probed.before.published is False and probed.runs.last is False else None


@unready_container_lives_on.clause("no-kill", on=call("StopContainer"))
def readiness_kills_nobody(m: Moment, container: Container) -> Findings:
    """The container is not stopped for that result."""
    readiness = probes.runs_of(container, "readiness", m)
    if readiness.published is not False or not without_reason(m):
        return None
    text = f"there is a reason to stop {container.name} beside its failing readiness probe"
    return to_be_explained(m, text, readiness.published_seq)


def without_reason(m: Moment) -> bool:
    """Nothing that the trace shows, the container's probes included, explains that it is stopped."""
    container = m.container
    return container is not None and not explained(m, probes=False) and not _fails(m, container)


def _fails(m: Moment, container: Container) -> bool:
    return any(probes.runs_of(container, name, m).published is False for name in _KILLING)


@contract("PROBE-11", on=status(), needs=(CRI, PODS, STATUS))
def container_that_does_not_run_is_not_ready(m: Moment) -> Iterator[Finding]:
    """An app container with a readiness probe that does not run is not ready."""
    before = m.pod.status.by_name if m.pod is not None and m.pod.status is not None else {}
    for one in m.status.container_statuses or () if m.status is not None else ():
        spec = m.pod.container_spec(one.name) if m.pod is not None else None
        if one.state.running is not None or spec is None or spec.readiness_probe is None:
            continue
        if not (one.ready and is_late(before.get(one.name), one)):
            yield broken(f"{one.name} does not run and is shown as ready") if one.ready else KEPT


@contract("PROBE-13", on=TERMINATION_ASKED, needs=(CRI, PODS), versions=since("1.22"))
def liveness_ends_with_the_deletion(m: Moment, pod: Pod) -> Iterator[Finding]:
    """Once a pod is being terminated, its liveness and startup probes are executed no more; readiness probes
    are.
    """
    if pod.termination is not None or not m.node.kubelet_up or not pod.born:
        return
    if pod.static and m.keys[0] != "pod:remove":
        return  # Only its mirror goes.
    begun = m.t
    for container in pod.every_container():
        if container.state != "running" or not container.born:
            continue
        ends = exited().where(about(container))
        comes_back = pod_set().where(is_sent_for(pod))
        for name, probe in probes.exec_probes(container).items():
            # A worker that waits for a list has not begun with the end.
            late = probes.runs_probe(container, probe).where(
                lambda n: n.t - begun > REACTION and not is_held_up(n)
            )
            if name == "readiness" and probes.runs_of(container, "readiness", m).total > 0:
                yield answered(
                    by=probes.runs_probe(container, probe),
                    within=probe.period_seconds + REACTION,
                    unless=ends.either(call("StopPodSandbox"), comes_back),
                    text=f"the readiness probe of {container.name} goes on while it is stopped",
                )
            elif name != "readiness" and container.kind != "sidecar":  # See SIDECAR-25.
                yield answered(
                    by=ends.either(call("RemoveContainer", "StopPodSandbox")),
                    unless=comes_back,
                    not_before=late,
                    text=f"container {container.name} ends and is not probed for {name}",
                )


@contract("PROBE-22", on=probes.PROBED.either(call("ExecSync")), needs=(CRI, PODS, EVERY_EVENT))
def each_failure_is_reported(m: Moment, pod: Pod) -> Findings:
    """Each failed execution gives a Warning event Unhealthy on its container."""
    probed = probes.probe_at(m)
    if probed is None or probed.outcome != "failure" or pod.termination is not None:
        return None
    return answered(
        by=event("Unhealthy").where(is_on(probed.container.name)).where(_is_warning),
        within=REACTION,
        unless=TERMINATION_ASKED,
        text=f"an Unhealthy event on {probed.container.name} reports the failed {probed.name} probe",
    )


def _is_warning(m: Moment) -> bool:
    return isinstance(m.record, Event) and m.record.type == "Warning"


@contract("PROBE-24", on=status(), needs=(CRI, PODS, STATUS))
def container_without_probe_is_ready(m: Moment) -> Iterator[Finding]:
    """A container without a readiness probe is ready as soon as it runs and has started."""
    for one, container in _reported(m):
        if container.kind not in {"app", "sidecar"} or container.spec is None:
            continue
        if container.spec.readiness_probe is not None or container.spec.startup_probe is not None:
            continue
        yield kept_if(one.ready, f"{one.name} runs, has no readiness probe and is shown as not ready")


_READY_AFTER_START = ByVersion({"<=1.34": False, ">=1.35": True})
_LONG_BEFORE = 10.0
"""How long before the kubelet's start a container must have started for its readiness to be kept."""


@contract("PROBE-25", on=status(), needs=(CRI, PODS, EVERY_STATUS), versions=_READY_AFTER_START)
def readiness_after_a_kubelet_restart(m: Moment) -> Iterator[Finding]:
    """Up to 1.34 a kubelet that starts again shows a container with a readiness probe as not ready until the
    probe has succeeded again; from 1.35 it stays ready.
    """
    node, kept = m.node, _READY_AFTER_START.at(m.kubernetes)
    if node.lives < 2 or node.started_t is None or probes.probes_have_ended(m):  # noqa: PLR2004 - it started again
        return
    for one, container in _reported(m):
        was = _was_ready(m, one)
        if was is None and is_first_of_this_life(m):
            container.note(_Unprobed).reported_seq = m.seq
        if was is None or "readiness" not in probes.exec_probes(container):
            continue
        started = container.started_t
        if started is None or started > node.started_t - (_LONG_BEFORE if kept else 0.0):
            continue
        runs = probes.runs_of(container, "readiness", m)
        has_kept = kept and m.pod is not None and not m.pod.static  # A manifest file has no readiness.
        if has_kept and was and runs.published is not False and probes.ever_succeeded(container, "readiness"):
            yield kept_if(one.ready, f"{one.name} is not ready any more after the kubelet's restart")
        elif one.ready and _has_no_worker_yet(m, one, container, was=was):
            container.note(_Unprobed).reported_seq = m.seq
        elif not kept and runs.published is None and not _is_replaced(m, container):
            yield kept_if(not one.ready, f"{one.name} is ready, and was not probed since the restart")


class _Unprobed(Note):
    """The latest status that showed the container before its probe had a worker in this kubelet instance."""

    reported_seq: int = 0


def _has_no_worker_yet(m: Moment, one: ContainerStatus, container: Container, *, was: bool) -> bool:
    """The probe has no worker yet: this is the kubelet's first status of the pod, or as good as that."""
    if is_first_of_this_life(m):
        return not was or is_of_another_version(m) or shows_other_changes(m, one.name)
    last = m.pod.status_seq if m.pod is not None else 0
    return was and last == container.note(_Unprobed).reported_seq and shows_probes_only(m)


def _is_replaced(m: Moment, container: Container) -> bool:
    """The kubelet's first sync kills the container before it is probed: for its sandbox, or its hash."""
    is_dead = container.sandbox is None or container.sandbox.state != "ready"
    return is_dead or is_hashed_otherwise(m, container)


def _was_ready(m: Moment, now: ContainerStatus) -> bool | None:
    """How the status before showed the same instance."""
    for one in m.pod.status.every_container if m.pod is not None and m.pod.status else ():
        if one.runtime_id == now.runtime_id:
            return one.ready
    return None


class _Late(Note):
    """A failure of an older instance that came when this one ran already."""

    t: float | None = None
    seq: int = 0


@contract("PROBE-26", on=probes.PROBES, needs=(CRI, PODS), clause="lives")
def late_result_hits_nobody_else(m: Moment, pod: Pod) -> Findings:
    """A result that comes when its container is gone leaves the next instance alone."""
    probed = probes.probe_at(m)
    if probed is None or probed.name == "readiness":
        return None
    newest = pod.newest(probed.container.name)
    if newest is None or newest.state != "running":
        return None
    late = newest.note(_Late)
    if newest is not probed.container:
        if probed.outcome == "failure":
            late.t, late.seq = m.t, m.seq
        return None
    return KEPT if late.t is not None and probed.outcome == "begins" and not probed.before.total else None


judges_waits(late_result_hits_nobody_else)


@late_result_hits_nobody_else.clause("no-kill", on=call("StopContainer"))
def new_instance_is_not_killed(m: Moment, container: Container) -> Findings:
    """The container is not stopped for that result."""
    late = container.note(_Late).t
    if late is None or not without_reason(m):
        return None
    return to_be_explained(
        m, f"there is a reason to stop {container.name} beside a late failure of the one before"
    )
