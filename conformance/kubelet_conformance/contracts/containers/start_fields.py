"""START and WORK: what labels and annotations preserve over a kubelet restart, and the pace of a crash loop.

START: the environment that a container is created with, its user and its resources.
"""

import re
from collections.abc import Mapping

from kubelet_conformance.contract import Container, Exit, Moment, Pod
from kubelet_conformance.contract.applicability import CRI, PODS, ByVersion
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import call, event, expects
from kubelet_conformance.contracts.containers.start import noted_graces
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts.backoff import RETRY_JITTER, after_the_delay, most_delay
from kubelet_conformance.contracts.facts.pod import will_not_run_again
from kubelet_conformance.contracts.facts.timing import RETRY, RETRY_SLACK
from kubelet_conformance.contracts.runtime.expected import as_expected
from kubelet_conformance.trace.format.bodies import ContainerConfig
from kubelet_conformance.trace.format.labels import Annotation, Label
from kubelet_conformance.trace.format.manifests import ContainerSpec
from kubelet_conformance.trace.format.records import Event, Expect

_MESSAGE = (Annotation.TERMINATION_MESSAGE_PATH, Annotation.TERMINATION_MESSAGE_POLICY)
_NEEDED = (Annotation.HASH, *_MESSAGE)


@contract("START-06", on=call("CreateContainer"), needs=(CRI, PODS))
def container_carries_its_state(m: Moment, pod: Pod) -> Findings:
    """What a kubelet must know of a container after a restart stands in its labels and annotations: whose it
    is, hash, restart count, termination message, grace, and its preStop hook.
    """
    if pod.spec is None:
        return None
    is_given = pod.spec.termination_grace_period_seconds is not None
    wrong = _lacking(containers.asked(m), pod, noted_graces(m, pod.spec) if is_given else ())
    return KEPT if wrong is None else broken(wrong, pod.set_seq)


def _lacking(config: ContainerConfig, pod: Pod, graces: tuple[str, ...]) -> str | None:
    """What the container's labels and annotations lack first."""
    name, labels, found = config.metadata.name, config.labels, config.annotations
    whose = {
        Label.POD_NAME: pod.name,
        Label.POD_NAMESPACE: pod.namespace,
        Label.POD_UID: pod.uid,
        Label.CONTAINER_NAME: name,
    }
    if not whose.items() <= labels.items():
        key = next(key for key, value in whose.items() if labels.get(key) != value)
        return f"label {key} of {name} is {labels.get(key)!r}, expected {whose[key]!r}"
    for key in _NEEDED:
        if not found.get(key):
            return f"{name} has no annotation {key}"
    if found.get(Annotation.RESTART_COUNT) != str(config.metadata.attempt):
        counted = found.get(Annotation.RESTART_COUNT)
        return f"{Annotation.RESTART_COUNT} of {name} is {counted}, its attempt {config.metadata.attempt}"
    if graces and found.get(Annotation.POD_GRACE) not in graces:
        return f"{Annotation.POD_GRACE} of {name} is {found.get(Annotation.POD_GRACE)}, expected {graces[0]}"
    spec = pod.container_spec(name)
    hook = spec.lifecycle.pre_stop if spec is not None else None
    if hook is not None and not found.get(Annotation.PRE_STOP_HANDLER):
        return f"{name} has a preStop hook and no annotation {Annotation.PRE_STOP_HANDLER}"
    return None


def _comes_again(pod: Pod, container: Container, ended: Exit | None) -> bool:
    """An app container that ended in this way is created again, at once or after a back-off."""
    if ended is None or ended.commanded or ended.code is None or not containers.in_place(container):
        return False
    if container.kind != "app" or will_not_run_again(pod, container.name, ended.code):
        return False
    spec = container.spec
    return spec is not None and spec.restart_policy is None and pod.restart_policy != "Never"


@contract("WORK-16", on=containers.OWN_END, needs=(CRI, PODS), versions=RETRY_JITTER)
def crash_loop_is_looked_at_again(m: Moment, pod: Pod, container: Container) -> Findings:
    """A pod whose container waits in its restart back-off is synced again every 10 to 15 s, so that the
    container is created 16 s after the back-off at the latest; from 1.35 on it is synced when that is over,
    later by no more than half of it.
    """
    if not _comes_again(pod, container, m.exit):
        return None
    delay = most_delay(m, container.name)
    if not delay or containers.waits_for_sidecars(container):
        return None
    return answered(
        by=containers.start_of(container.name),
        within=delay + after_the_delay(m, delay),
        unless=containers.HELD_UP.either(containers.SIDECAR_ENDS),
        text=f"{container.name} is created again after a back-off of {delay:g} s",
    )


_CANNOT_START = event("BackOff", "ErrImageNeverPull", "Failed", "FailedMount", "InspectFailed")
"""The event by which a sync reports that a container could not be started."""
_IN_BETWEEN = ByVersion({"<=1.34": True, ">=1.35": False})
"""Whether a pod is synced while a container of it waits in its back-off."""


@crash_loop_is_looked_at_again.clause("reported", on=event("BackOff"))
def each_look_has_an_event(m: Moment, pod: Pod) -> Findings:
    """Up to 1.34 each such sync writes an event, of this container or of one whose turn is earlier, until
    it is created.
    """
    record = m.record
    if not isinstance(record, Event) or not _IN_BETWEEN.get(m.kubernetes):
        return None
    if m.header.channels.events != "full" or record.type != "Warning":
        return None
    name = (record.container or "").partition("{")[2].rstrip("}")
    newest = pod.newest(name)
    if newest is None or newest.state != "exited" or not _comes_again(pod, newest, newest.exit):
        return None
    if not containers.to_watch(m):
        return None
    return answered(
        by=_CANNOT_START.either(containers.start_of(name)),
        within=RETRY + RETRY_SLACK,
        unless=containers.HELD_UP.either(
            call("StopPodSandbox")
        ),  # A static pod that is edited away is just killed.
        text=f"{name} waits in its back-off, and the pod is synced again",
    )


_REFERENCE = re.compile(r"\$(?:(\$)|\(([^()]*)\))")


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """The text with $(NAME) replaced where the name is known, and $$ by a dollar sign."""

    def value(match: re.Match[str]) -> str:
        dollar, name = match.groups()
        return dollar or known.get(name, match.group())

    return _REFERENCE.sub(value, text)


def _wrong(spec: ContainerSpec, given: Mapping[str, str], *, secret: bool) -> str | None:
    """The first declared variable that is missing or has another value than declared."""
    declared = {one.name for one in spec.env or ()}
    # A variable can refer to those before it, and to those of a whole config map or secret.
    known = {name: value for name, value in given.items() if spec.env_from and name not in declared}
    for one in spec.env or ():
        if one.name not in given:
            if one.value_from is not None and one.value_from.optional:
                continue
            return f"{one.name} is missing"
        if one.value_from is None and not secret:
            named = {name for dollar, name in _REFERENCE.findall(one.value) if not dollar}
            expected = _expanded(one.value, known)
            # What is not known here may be a variable of a service, which no manifest shows.
            if named <= known.keys() and given[one.name] != expected:
                return f"{one.name} is {given[one.name]!r}, expected {expected!r}"
        known[one.name] = given[one.name]
    return None


@contract("START-09", on=call("CreateContainer"), needs=(CRI, PODS))
def environment_is_complete(m: Moment, pod: Pod) -> Findings:
    """A container is created with every variable that it declares, references to those before it replaced.

    Where a config map or secret is missing that it cannot do without, it is not created.
    """
    config = containers.asked(m)
    spec = pod.container_spec(config.metadata.name)
    if spec is None or not spec.env or pod.spec_changed_t is not None:
        return None
    given = {one.key: one.value for one in config.envs}
    names = [one.name for one in spec.env]
    if len(set(names)) < len(names):
        return None
    wrong = _wrong(spec, given, secret=m.header.redacted)
    return broken(f"the variable {wrong}, in {spec.name}", pod.set_seq) if wrong else KEPT


@contract("START-15", on=expects("START-15"), needs=(CRI, PODS))
def container_is_given_what_its_spec_says(m: Moment, expect: Expect) -> Findings:
    """Variables, mounts, users and amounts are as a scenario expects; without them nothing is made."""
    return as_expected(m, expect)
