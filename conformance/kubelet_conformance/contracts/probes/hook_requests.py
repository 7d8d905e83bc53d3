"""HOOK: hooks that do not run a command: HTTP requests, sleeps, and kinds that cannot be run."""

from urllib.parse import urlsplit

from kubelet_conformance.contract import Answered, Container, Moment, Pattern, Pod, Predicate, Sandbox
from kubelet_conformance.contract.applicability import CRI, EVERY_EVENT, PODS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import call, done, event, exited, status
from kubelet_conformance.contracts.facts import probe_and_hook_requests as requests
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, about, hook_command, is_on
from kubelet_conformance.contracts.facts.timing import REACTION, RELIST, ROUNDING, TOGETHER
from kubelet_conformance.contracts.probes.hooks import EVENT_SLACK
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format.bodies import StopContainerRequest
from kubelet_conformance.trace.format.records import Probe

_BAD = 400
_FAILED = {"post_start": "FailedPostStartHook", "pre_stop": "FailedPreStopHook"}
_GRACE_MIN = 2
"""Seconds that a container has to end even when its hook has taken all the time there was."""


def _hook(m: Moment) -> requests.Asked | None:
    """The one hook that sent the request; None where it is not certain."""
    record, pod = requests.request_at(m), m.pod
    if record is None or pod is None or not m.node.kubelet_up:
        return None
    asked = requests.asked_by(pod, record)
    return asked[0] if len(asked) == 1 and asked[0].is_hook else None


def _is_running(name: str) -> Predicate:
    def says(m: Moment) -> bool:
        every = m.status.every_container if m.status is not None else ()
        return any(one.name == name and one.state.running is not None for one in every)

    return says


@contract("HOOK-08", on=requests.REQUEST, needs=(CRI, PODS), clause="host")
def hook_asks_its_own_pod(m: Moment) -> Findings:
    """An httpGet hook goes to its pod's address unless it names a host, to the port that it names by number
    or by name, and any answer is a success.
    """
    record = requests.request_at(m)
    if record is None:
        return None
    if m.pod is not None:
        one = _hook(m)
        return KEPT if one is not None and not requests.named_host(one.handler) else None
    asked = requests.askers_anywhere(m, record)
    if not asked or not all(one.is_hook for one in asked) or not requests.is_nobodys(m, record.host):
        return None
    if any(requests.named_host(one.handler) == record.host for one in asked):
        return KEPT
    return broken(f"a hook goes to {record.host}, which is no pod's address")


judges_waits(hook_asks_its_own_pod)


@hook_asks_its_own_pod.clause("any-answer", on=requests.REQUEST)
def any_answer_is_a_success(m: Moment, pod: Pod) -> Findings:
    """The HTTP status does not matter."""
    record, one = requests.request_at(m), _hook(m)
    container = requests.running(pod, one.spec.name) if one is not None else None
    if record is None or one is None or container is None or requests.answered_with(record) < _BAD:
        return None
    if one.what == "post_start":
        by: Pattern = status().where(_is_running(container.name)).either(call("CreateContainer"))
    else:
        by = call("StopContainer").where(about(container))
    return answered(
        by=by,
        within=RELIST + REACTION,
        unless=TERMINATION_ASKED.either(exited().where(about(container))),
        not_before=event(_FAILED[one.what]).where(is_on(container.name)),
        text=f"the hook of {container.name}, answered with {record.outcome}, is a success",
    )


@contract("HOOK-09", on=requests.REQUEST, needs=(CRI, PODS), versions=since("1.26"), clause="again")
def plain_answer_is_asked_for(m: Moment) -> Findings:
    """An HTTPS hook that is answered in plain HTTP is sent once more as such, without its credentials; a
    LifecycleHTTPFallback event reports it.
    """
    one = _hook(m) if _is_plain(requests.request_at(m)) else None
    if one is None:
        return None
    return answered(
        by=requests.REQUEST.where(requests.is_of(one)).where(_is_http),
        within=TOGETHER,
        unless=TERMINATION_ASKED,
        text=f"the hook of {one.spec.name} is sent in plain HTTP",
    )


def _is_plain(record: Probe | None) -> bool:
    return record is not None and record.outcome == "plain"


def _is_http(m: Moment) -> bool:
    record = requests.request_at(m)
    return record is not None and urlsplit(record.url).scheme == "http"


@plain_answer_is_asked_for.clause("reported", on=requests.REQUEST)
def fallback_is_reported(m: Moment) -> Findings:
    """A LifecycleHTTPFallback event reports that the hook was sent in plain HTTP."""
    one = _hook(m) if _is_plain(requests.request_at(m)) else None
    if one is None or m.header.channels.events == "none":
        return None
    return answered(
        by=event("LifecycleHTTPFallback").where(is_on(one.spec.name)),
        within=EVENT_SLACK,
        text="LifecycleHTTPFallback is sent",
    )


@plain_answer_is_asked_for.clause("bare", on=requests.REQUEST)
def credentials_are_left_out(m: Moment) -> Findings:
    """A request in plain HTTP has no credentials."""
    record, one = requests.request_at(m), _hook(m)
    if record is None or one is None or not _is_http(m):
        return None
    action = one.handler.http_get or {}
    if str(action.get("scheme") or "HTTP").upper() != "HTTPS":
        return None
    return broken("the credentials of an HTTPS hook are sent in plain HTTP") if record.authorized else KEPT


def _must_fail(name: str, why: str) -> Answered:
    return answered(
        by=event("FailedPostStartHook").where(is_on(name)),
        within=EVENT_SLACK,
        unless=TERMINATION_ASKED,
        text=f"the postStart hook of {name}, {why}, fails",
    )


@contract("HOOK-10", on=done("StartContainer"), needs=(CRI, PODS, EVERY_EVENT))
def hook_without_an_address_fails(_: Moment, pod: Pod, sandbox: Sandbox, container: Container) -> Findings:
    """An httpGet hook that names no host fails while its pod has no address."""
    handler = container.spec.lifecycle.post_start if container.spec is not None else None
    if handler is None or handler.http_get is None or requests.named_host(handler):
        return None
    if pod.spec is None or pod.spec.host_network or pod.termination is not None:
        return None
    if sandbox.ip or sandbox.status_t is None:
        return None
    return _must_fail(container.name, "whose pod has no address")


@contract("HOOK-12", on=done("StartContainer"), needs=(CRI, PODS, EVERY_EVENT))
def socket_is_no_hook(_: Moment, pod: Pod, container: Container) -> Findings:
    """A tcpSocket hook cannot be run: it fails."""
    handler = container.spec.lifecycle.post_start if container.spec is not None else None
    if handler is None or handler.tcp_socket is None or handler.exec or handler.http_get or handler.sleep:
        return None
    if pod.termination is not None:
        return None
    return _must_fail(container.name, "a tcpSocket")


@contract(
    "HOOK-11",
    on=call("StopContainer"),
    needs=(CRI, PODS),
    versions=since("1.29"),
    gate="PodLifecycleSleepAction",
)
def sleep_hook_is_slept_through(m: Moment, pod: Pod, container: Container) -> Findings:
    """A preStop hook that sleeps delays the stop by so many seconds, within the grace, and they are taken off
    the grace.
    """
    spec = container.spec
    handler = spec.lifecycle.pre_stop if spec is not None else None
    if handler is None or handler.sleep is None or not pod.born:
        return None
    asked, started = pod.termination, m.node.started_t or 0.0
    if asked is None or asked.grace is None or asked.t < started or container.state != "running":
        return None
    if container.kind == "sidecar" or container.stops or (container.started_t or 0.0) > asked.t:
        return None
    grace, seconds = asked.grace, handler.sleep.seconds
    passed, timeout = m.t - asked.t, m.request(StopContainerRequest).timeout
    if passed < min(grace, seconds) - ROUNDING:
        return broken(
            f"the stop comes {passed:.1f} s after the deletion, the hook sleeps {seconds} s", asked.seq
        )
    if timeout > max(_GRACE_MIN, grace - min(grace, seconds)) + ROUNDING:
        return broken(f"the stop leaves {timeout} s, the grace was {grace} s and the hook took {seconds} s")
    return KEPT


@contract("HOOK-13", on=call("StopContainer"), needs=(CRI, PODS))
def hook_is_delivered_at_least_once(m: Moment, pod: Pod, container: Container) -> Findings:
    """A preStop hook that the kubelet's end has cut short is run again before the container is stopped."""
    began = m.node.started_t
    command = hook_command(container, "pre_stop")
    if command is None or began is None or not container.born:
        return None
    if pod.termination is None or not pod.wanted or container.state != "running":
        return None
    runs = [hook for hook in container.hooks if hook.cmd == command]
    cut = [hook for hook in runs if hook.call.t < began and hook.exit_code is None and not hook.failed]
    if not cut or any(hook.call.t < began and hook.exit_code is not None for hook in runs):
        return None
    if any(hook.call.t >= began for hook in runs):
        return KEPT
    return broken(
        f"the preStop hook of {container.name} was cut short and is not run again", cut[-1].call.seq
    )
