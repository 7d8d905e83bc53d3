"""SIDECAR: what the probes of a sidecar delay, and what they do not."""

from kubelet_conformance.contract import Container, Moment, Note, Pattern, Pod, PodSpec
from kubelet_conformance.contract.applicability import CRI, PODS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, exited, pod_set
from kubelet_conformance.contracts.containers.sidecar_end import ahead_of, grace_is_used_up, holding_up
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts.backoff import restart_bound
from kubelet_conformance.contracts.facts.kills import failing_probe, is_ended_for_a_reason, is_killed_already
from kubelet_conformance.contracts.facts.pod import at_its_end, stop_asked, to_run
from kubelet_conformance.contracts.facts.probe import PROBES, exec_probes, probe_at, runs_of, runs_probe
from kubelet_conformance.contracts.facts.timing import REACTION, ROUNDING
from kubelet_conformance.contracts.tables.container import INITS, InitSeen
from kubelet_conformance.contracts.tables.stop import MINIMUM_GRACE
from kubelet_conformance.trace.format.bodies import StopContainerRequest

_ON = since("1.29")


def _sidecar(m: Moment) -> Container | None:
    """The moment's container, if it is a sidecar that this contract may judge."""
    container = m.container
    if container is None or container.kind != "sidecar" or not containers.to_watch(m):
        return None
    if not containers.in_place(container):
        return None
    return container


def _has_hooks(container: Container) -> bool:
    spec = container.spec
    return spec is None or spec.lifecycle.post_start is not None or spec.lifecycle.pre_stop is not None


def _comes_next(container: Container) -> str | None:
    """What is created after this sidecar, if nothing after it has been created yet."""
    if container.pod is None or container.sandbox is None:
        return None
    return containers.first_missing(container.pod, container.name, container.sandbox)


def _progress(container: Container, *others: Pattern) -> Pattern | None:
    """What must not happen: that one of `others` is created, or that the pod goes on without this sidecar."""
    following = _comes_next(container)
    patterns = [*others, *([containers.creation_of(following)] if following is not None else [])]
    return patterns[0].either(*patterns[1:]) if patterns else None


def _goes(m: Moment) -> bool:
    return m.pod is not None and is_ended_for_a_reason(m, m.pod)


@contract("SIDECAR-04", on=done("StartContainer"), needs=(CRI, PODS), versions=_ON)
def waits_for_the_first_startup_probe(m: Moment) -> Findings:
    """Each instance of a sidecar has its startup probe run; until then it is neither stopped nor followed."""
    container = _sidecar(m)
    probe = exec_probes(container).get("startup") if container is not None else None
    if container is None or probe is None or _has_hooks(container):
        return None
    return answered(
        by=runs_probe(container, probe),
        within=probe.initial_delay_seconds + 2 * probe.period_seconds + REACTION,
        unless=containers.CALLED_OFF.either(exited(), pod_set(), containers.stop_of(container).where(_goes)),
        not_before=_progress(container, containers.stop_of(container)),
        text=f"the startup probe of sidecar {container.name} is run, and waited for",
    )


@contract("SIDECAR-05", on=PROBES, needs=(CRI, PODS), versions=_ON)
def failed_startup_makes_it_again(m: Moment, pod: Pod) -> Findings:
    """A sidecar whose startup probe failed is stopped and created again, before anything after it."""
    probed, container = probe_at(m), _sidecar(m)
    if probed is None or container is None or probed.name != "startup":
        return None
    given_up = probed.outcome == "failure" and probed.reached
    seen = InitSeen("running", pod.restart_policy, sidecar=True, given_up=given_up)
    if INITS.decide(seen) != "stop and start":
        return None
    if container.state != "running" or is_killed_already(m, container) or _has_hooks(container):
        return None
    return answered(
        by=containers.stop_of(container),
        within=REACTION,
        unless=containers.CALLED_OFF.either(exited()),
        not_before=_progress(container),
        text=f"sidecar {container.name} is stopped after its startup probe failed",
    )


@failed_startup_makes_it_again.clause("made-again", on=done("StopContainer"))
def _(m: Moment) -> Findings:
    """A sidecar that was stopped for its startup probe is created again before anything after it."""
    container = _sidecar(m)
    if container is None or runs_of(container, "startup", m).published is not False:
        return None
    return answered(
        by=containers.start_of(container.name),
        within=restart_bound(m, container.name),
        unless=containers.HELD_UP.either(exited()),
        not_before=_progress(container),
        text=f"sidecar {container.name} is created again after its startup probe failed",
    )


@contract("SIDECAR-15", on=call("StopContainer"), needs=(CRI, PODS), versions=_ON)
def single_restart_has_no_turn(m: Moment, pod: Pod, spec: PodSpec, container: Container) -> Findings:
    """A sidecar that is stopped to be created again waits for no other container: it has its whole grace."""
    if container.kind != "sidecar" or not to_run(m):
        return None
    if at_its_end(pod) or not containers.in_place(container) or not container.born or _has_hooks(container):
        return None
    ahead = ahead_of(pod, container.name)
    if not ahead or container.state != "running" or any(stop_asked(one) for one in ahead):
        return None  # With the others being stopped, its pod may be killed for a reason of the node's.
    allowed = {spec.grace_seconds, *(reason.seconds for reason in failing_probe(pod, container))}
    timeout = m.request(StopContainerRequest).timeout
    if all(abs(timeout - max(MINIMUM_GRACE, grace)) > ROUNDING for grace in allowed):
        names = " and ".join(one.name for one in ahead)
        return broken(
            f"sidecar {container.name} has timeout {timeout} of {max(allowed)}, as if it waited for {names}",
            container.started_seq,
        )
    return KEPT


class _FailsAtTheEnd(Note):
    """When a probe of the sidecar failed that would have it killed, while its pod is terminated."""

    seq: int = 0


@contract("SIDECAR-25", on=call("StopContainer"), needs=(CRI, PODS), versions=_ON)
def probes_kill_nothing_in_the_end(m: Moment, pod: Pod, container: Container) -> Findings:
    """A sidecar whose probe fails while its pod is terminated is not stopped for that, only in its turn."""
    if container.kind != "sidecar" or pod.termination is None:
        return None
    seq = container.note(_FailsAtTheEnd).seq
    if not seq:
        return None
    if container.stopping:
        return broken(f"sidecar {container.name} is stopped once more while it is being stopped", seq)
    ahead = holding_up(pod, container.name, m.t)
    if ahead and not grace_is_used_up(pod, m.t):
        names = " and ".join(one.name for one in ahead)
        return broken(f"sidecar {container.name} is stopped after its probe failed, while {names} runs", seq)
    return KEPT


@observer(on=PROBES)
def _fails(m: Moment) -> None:
    """Record failing probes."""
    probed = probe_at(m)
    if probed is None or m.pod is None or m.pod.termination is None or probed.name == "readiness":
        return
    if probed.outcome == "failure" and probed.reached:
        probed.container.note(_FailsAtTheEnd).seq = m.seq
