"""PROBE: when exec probes are executed, how often, and with which request."""

from collections.abc import Iterator

from kubelet_conformance.contract import Answered, Container, Finding, Moment, Pod, Predicate
from kubelet_conformance.contract.applicability import CRI, PODS, ByVersion, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, kept_if
from kubelet_conformance.contract.patterns import call, done, exited, status
from kubelet_conformance.contracts.facts import probe as probes
from kubelet_conformance.contracts.facts.kills import is_killed_already
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, about, has_unseen_hook, runs_post_start
from kubelet_conformance.contracts.facts.status import has_ended_for_good
from kubelet_conformance.contracts.facts.timing import REACTION, RELIST, ROUNDING, TOGETHER
from kubelet_conformance.trace.format.bodies import ExecSyncRequest
from kubelet_conformance.trace.format.manifests import Probe

_BEGINS = call("ExecSync")
_GRID_SLACK = 0.5
"""How much too early an execution may appear: the ticker is exact, what it starts is not."""
_LATE_SLACK = 3.0
"""What a loaded machine may add to a probe period."""
_AT_ONCE = RELIST + REACTION
"""The container is seen to run, and a status is computed."""


_POST_START = call("ExecSync").where(runs_post_start)
"""A postStart hook holds up the sync of its pod: until it ends, no status informs the prober of a running
container.
"""


def _has_unseen_hook(pod: Pod) -> bool:
    """A postStart hook of the pod does not pass through the runtime."""
    return pod.spec is not None and any(has_unseen_hook(spec) for _, spec in pod.spec.entries.values())


def _to_watch(m: Moment) -> bool:
    pod = m.pod
    return pod is not None and pod.termination is None and not pod.finished and m.node.kubelet_up


@contract("PROBE-01", on=done("StartContainer"), needs=(CRI, PODS))
def every_probe_is_executed(m: Moment, container: Container) -> Iterator[Finding]:
    """Each probe of a container is executed by a worker of its own; until a startup probe has succeeded, it
    alone.
    """
    if not container.born or container.ended or not _to_watch(m) or container.kind not in {"app", "sidecar"}:
        return
    if m.pod is not None and _is_shown_as_ended(m.pod, container):
        return
    followed = probes.exec_probes(container)
    if m.pod is not None and _has_unseen_hook(m.pod):
        return
    if any(name == "startup" for name, _ in probes.probes_of(container.spec)):
        for later in ("liveness", "readiness"):
            followed.pop(later, None)
    if probes.may_have_a_former_worker(m, container) or (m.pod and _still_probed(m.pod, container)):
        return
    for name, probe in followed.items():
        yield _first_run(container, name, probe)


def _is_shown_as_ended(pod: Pod, container: Container) -> bool:
    """Its predecessor has ended for good, so that no status shows that it runs, which workers go by."""
    shown = pod.status.by_name.get(container.name) if pod.status is not None else None
    return shown is not None and has_ended_for_good(pod, shown)


def _still_probed(pod: Pod, container: Container) -> bool:
    """The worker waits for an execution in an instance before this one."""
    earlier = (c.probes.values() for c in pod.containers.get(container.name, ()) if c is not container)
    return any(one.call.id in pod.calls_open for probes in earlier for one in probes)


def _first_run(container: Container, name: probes.Name, probe: Probe) -> Answered:
    # Shortly after a kubelet's start the grid may begin up to one period later.
    return answered(
        by=probes.runs_probe(container, probe),
        within=probe.initial_delay_seconds + 2 * probe.period_seconds + RELIST + REACTION,
        unless=probes.no_more_probed(container).either(_POST_START),
        text=f"the {name} probe of {container.name} is executed",
    )


@contract("PROBE-03", on=_BEGINS, needs=(CRI, PODS))
def startup_probe_goes_first(m: Moment) -> Findings:
    """As long as its startup probe has not succeeded, no liveness or readiness probe of a container runs."""
    probed = probes.probe_at(m)
    if probed is None or probed.name == "startup" or "startup" not in probes.exec_probes(probed.container):
        return None
    if probes.counts_as_started(m):
        return None
    return kept_if(
        probes.ever_succeeded(probed.container, "startup"),
        f"the {probed.name} probe runs: its container has not started yet",
        probed.container.started_seq,
    )


@contract("PROBE-04", on=_BEGINS, needs=(CRI, PODS))
def probes_wait_for_the_initial_delay(m: Moment) -> Findings:
    """A container is not probed before initialDelaySeconds have passed since its start."""
    probed = probes.probe_at(m)
    if probed is None or not probed.probe.initial_delay_seconds or probed.before.total:
        return None
    started = probed.container.started_t
    if started is None:
        return None
    passed, delay = m.t - started, probed.probe.initial_delay_seconds
    if passed < delay - ROUNDING:
        text = f"the {probed.name} probe runs {passed:.1f} s after the start: its initial delay is {delay} s"
        return broken(text, probed.container.started_seq)
    return KEPT


@contract("PROBE-05", on=_BEGINS, needs=(CRI, PODS), clause="period")
def probes_keep_their_period(m: Moment) -> Findings:
    """A probe is executed every periodSeconds, as long as its container runs."""
    probed = probes.probe_at(m)
    if probed is None or not probed.before.total or probed.before.call is not None or probed.before.errors:
        return None
    before, period = probed.before, probed.probe.period_seconds
    gap, took = m.t - before.begun_t, before.tick_ended_t - before.begun_t
    if took >= period or took < 0 or before.off_grid:
        return None
    # A tick that comes late does not move those after it.
    if gap < period - _GRID_SLACK - before.late and probed.name != "readiness":
        return broken(f"the {probed.name} probe runs after {gap:.1f} s, its period is {period} s")
    return KEPT if gap <= period + _LATE_SLACK else None


@probes_keep_their_period.clause("goes-on", on=probes.PROBED)
def probes_go_on(m: Moment) -> Findings:
    """A good result is followed by the next execution."""
    probed = probes.probe_at(m)
    if probed is None or probed.outcome != "success" or probed.name == "startup" or not _to_watch(m):
        return None
    container = probed.container
    if container.state != "running" or container.stopping or _is_to_start_anew(m, container):
        return None
    return answered(
        by=probes.runs_probe(container, probed.probe),
        within=probed.probe.period_seconds + _LATE_SLACK,
        unless=probes.no_more_probed(container),
        text=f"the {probed.name} probe of {container.name} is executed again",
    )


def _is_to_start_anew(m: Moment, container: Container) -> bool:
    """The kubelet has just started, and takes the container for started until its second sync.

    From then on the startup probe has to succeed again before another probe is executed.
    """
    started_t = m.node.started_t
    if started_t is None or container.started_t is None or container.started_t >= started_t:
        return False
    has_startup_probe = any(name == "startup" for name, _ in probes.probes_of(container.spec))
    return has_startup_probe and m.t - started_t <= REACTION


@contract("PROBE-08", on=probes.PROBED, needs=(CRI, PODS), clause="failure")
def failed_probe_rests(m: Moment) -> Findings:
    """A probe that has failed as often as its threshold says is not executed again in that container; from
    1.28 neither is a startup probe that has succeeded.
    """
    probed = probes.probe_at(m)
    if probed is None or not probed.reached or probed.outcome != "failure" or probed.name == "readiness":
        return None
    container = probed.container
    if container.state != "running" or not _to_watch(m):
        return None
    return answered(
        by=exited().where(about(container)).either(done("StopContainer").where(about(container))),
        unless=TERMINATION_ASKED,
        not_before=probes.runs_probe(container, probed.probe),
        text=f"container {container.name} ends",
    )


_HOLD_AFTER_SUCCESS = ByVersion({"<=1.26": REACTION, ">=1.28": 0.0})
"""For how long after its success a startup probe may still be executed."""


@failed_probe_rests.clause("startup-success", on=probes.PROBES)
def successful_startup_probe_rests(m: Moment) -> Findings:
    """A startup probe that has succeeded is not executed again."""
    probed = probes.probe_at(m)
    allowed = _HOLD_AFTER_SUCCESS.get(m.kubernetes)
    if probed is None or probed.outcome != "begins" or allowed is None:
        return None
    startup = probes.runs_of(probed.container, "startup", m)
    if startup.published is not True:
        return None
    if probed.name != "startup":
        return KEPT if probed.before.total == 0 else None
    if m.t - probed.before.ended_t <= allowed:
        return None
    return broken("the startup probe runs again after its success", startup.published_seq)


@contract("PROBE-14", on=_BEGINS, needs=(CRI, PODS), clause="three")
def probe_without_result_is_tried_thrice(m: Moment) -> Findings:
    """A probe execution without a result is repeated at once, three times in all, and else left out."""
    probed = probes.probe_at(m)
    if probed is None or not probed.before.errors:
        return None
    if m.t - probed.before.ended_t > min(TOGETHER, probed.probe.period_seconds / 2):
        return None
    if m.t - probed.before.begun_t >= probed.probe.period_seconds - _GRID_SLACK - probed.before.late:
        return None  # The answers took so long that the next period has begun.
    if probed.before.errors % probes.PROBE_TRIES == 0 and probed.name != "readiness":
        return broken(
            f"the {probed.name} probe is tried more often than {probes.PROBE_TRIES} times in one period"
        )
    return KEPT


@probe_without_result_is_tried_thrice.clause("again", on=probes.PROBED)
def probe_without_result_is_tried_again(m: Moment) -> Findings:
    """The first execution without a result is repeated at once."""
    probed = probes.probe_at(m)
    if probed is None or probed.outcome != "error" or probed.runs.errors != 1 or not _to_watch(m):
        return None
    container = probed.container
    if container.state != "running" or container.stopping:
        return None
    return answered(
        by=probes.runs_probe(container, probed.probe),
        within=TOGETHER,
        unless=probes.no_more_probed(container),
        text=f"the {probed.name} probe of {container.name} is tried again at once",
    )


@contract("PROBE-15", on=_BEGINS, needs=(CRI, PODS), versions=since("1.20"), clause="timeout")
def probe_passes_its_timeout_on(m: Moment) -> Findings:
    """An exec probe gives the runtime its timeoutSeconds, and one that times out has failed."""
    probed = probes.probe_at(m)
    if probed is None:
        return None
    expected, got = probed.probe.timeout_seconds, m.request(ExecSyncRequest).timeout
    if got != expected:
        return broken(f"the {probed.name} probe has timeout {got}, expected {expected}")
    return KEPT


@probe_passes_its_timeout_on.clause("counts", on=probes.PROBED)
def probe_out_of_time_has_failed(m: Moment) -> Findings:
    """The last of as many failures in a row as the threshold says leads to a kill."""
    probed = probes.probe_at(m)
    if probed is None or not probed.reached or m.reply.error is None or probed.name == "readiness":
        return None
    container = probed.container
    if container.state != "running" or is_killed_already(m, container) or not _to_watch(m):
        return None
    return probes.is_killed(container, f"after its {probed.name} probe timed out")


@probe_passes_its_timeout_on.clause("not-ready", on=probes.PROBED)
def readiness_out_of_time_has_failed(m: Moment) -> Findings:
    """A readiness probe that timed out does not make its container ready."""
    probed = probes.probe_at(m)
    if probed is None or m.reply.error is None or probed.outcome != "failure" or probed.name != "readiness":
        return None
    container = probed.container
    if container.state != "running" or not _to_watch(m) or probed.runs.published:
        return None
    return answered(
        by=probes.runs_probe(container, probed.probe),
        unless=probes.no_more_probed(container),
        not_before=status().where(_is_ready(container)),
        text=f"container {container.name} is probed again",
    )


def _is_ready(container: Container) -> Predicate:
    def says(m: Moment) -> bool:
        every = m.status.every_container if m.status is not None else ()
        shown_ready = any(one.runtime_id == container.id and one.ready for one in every)
        return shown_ready and not probes.probes_have_ended(m)

    return says


def _is_put_off(m: Moment, probe: Probe) -> bool:
    """The kubelet had just started when it received the pod: first executions are spread over a period."""
    started_t, set_t = m.node.started_t, m.pod.set_t if m.pod is not None else None
    return started_t is None or set_t is None or set_t - started_t < probe.period_seconds


@contract("PROBE-23", on=done("StartContainer"), needs=(CRI, PODS), versions=ByVersion({"1.23..1.32": True}))
def readiness_is_asked_without_waiting(m: Moment, container: Container) -> Findings:
    """A started container that is not ready is probed for readiness at once, whatever the period."""
    if not container.born or not _to_watch(m):
        return None
    probe = probes.exec_probes(container).get("readiness")
    if probe is None or probe.initial_delay_seconds or probe.period_seconds <= _AT_ONCE:
        return None
    if _is_put_off(m, probe):
        return None
    if any(name == "startup" for name, _ in probes.probes_of(container.spec)):
        return None
    if m.pod is not None and _has_unseen_hook(m.pod):
        return None
    return answered(
        by=probes.runs_probe(container, probe),
        within=_AT_ONCE,
        unless=probes.no_more_probed(container).either(_POST_START),
        text=f"the readiness probe of {container.name} is executed at once",
    )


_ANEW = since("1.32")
"""A readiness run out of turn begins the period anew (prober/worker.go)."""


@readiness_is_asked_without_waiting.clause("anew", on=_BEGINS)
def period_begins_anew(m: Moment) -> Findings:
    """From 1.32 on the period begins anew with such a run: what is ready is probed again a period later.

    A run that was asked for while the one before was in progress follows it at once.
    """
    probed = probes.probe_at(m)
    if probed is None or probed.name != "readiness" or not _ANEW.get(m.kubernetes):
        return None
    before, period = probed.before, probed.probe.period_seconds
    if before.published is not True or before.call is not None or before.errors or period <= 2 * TOGETHER:
        return None
    if m.t - before.ended_t <= TOGETHER or before.off_grid:
        return None
    gap = m.t - before.begun_t
    if gap < period - _GRID_SLACK - before.late:
        return broken(f"what is ready is probed again after {gap:.1f} s, its period is {period} s")
    return KEPT


@contract("PROBE-27", on=_BEGINS, needs=(CRI, PODS))
def one_worker_executes_a_probe(m: Moment) -> Findings:
    """A probe has one worker: an execution does not begin while the one before is in progress."""
    probed = probes.probe_at(m)
    if probed is None or not probed.before.total:
        return None
    if probed.before.call is not None:
        return broken(f"two {probed.name} probes run at the same time", probed.before.call.seq)
    return KEPT
