"""PROBE: network probes of a pod, and variables in the commands of exec probes."""

import re
from urllib.parse import urljoin, urlsplit

from kubelet_conformance.contract import Answered, Container, Moment, Note, Pod, Predicate
from kubelet_conformance.contract.applicability import CRI, EVENTS, EVERY_EVENT, PODS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, event
from kubelet_conformance.contracts.facts import probe_and_hook_requests as requests
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, is_on
from kubelet_conformance.contracts.facts.probe import probes_of
from kubelet_conformance.contracts.facts.timing import REACTION
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.contracts.sandbox.config import never_updated
from kubelet_conformance.trace.format.bodies import ExecSyncRequest
from kubelet_conformance.trace.format.manifests import ContainerSpec
from kubelet_conformance.trace.format.records import Event, Probe

_OK, _REDIRECT, _BAD = 200, 300, 400
_LOOPBACK = ("127.", "localhost", "::1")
_STATUS_IN_TEXT = re.compile(r"HTTP probe failed with statuscode: \d+")
_TIMED_OUT = re.compile(r"time(d )?out|deadline exceeded", re.IGNORECASE)
_REFERENCE = re.compile(r"\$(?:\$|\(([^()$]*)\))")


def _asker(m: Moment, handler: str) -> requests.Asked | None:
    """The one probe that sent the request; None where it is not certain."""
    record, pod = requests.request_at(m), m.pod
    if record is None or record.handler != handler or pod is None or not m.node.kubelet_up:
        return None
    asked = requests.asked_by(pod, record)
    return asked[0] if len(asked) == 1 and not asked[0].is_hook else None


def _reports(one: requests.Asked, start: str) -> Predicate:
    def reports(m: Moment) -> bool:
        message = m.record.message.lower() if isinstance(m.record, Event) else ""
        return is_on(one.spec.name)(m) and message.startswith(f"{one.what} probe {start}")

    return reports


def _has_failed(one: requests.Asked, what: str) -> Answered:
    return answered(
        by=event("Unhealthy").where(_reports(one, "failed")),
        within=REACTION,
        unless=TERMINATION_ASKED,
        text=f"the {one.what} probe of {one.spec.name}, {what}, has failed",
    )


def _is_of_the_answer(m: Moment) -> bool:
    """On a real machine an answer may come too late for a kubelet that waited for a processor."""
    message = m.record.message if isinstance(m.record, Event) else ""
    return m.header.clock != "wall" or _TIMED_OUT.search(message) is None


def _has_not_failed(one: requests.Asked, what: str) -> Answered:
    return answered(
        by=requests.REQUEST.where(requests.is_of(one)),
        unless=TERMINATION_ASKED,
        not_before=event("Unhealthy").where(_reports(one, "failed")).where(_is_of_the_answer),
        text=f"the {one.what} probe of {one.spec.name}, {what}, does not fail",
    )


def _leads_away(record: Probe) -> bool:
    onward = urljoin(record.url, record.location)
    return urlsplit(onward).hostname != urlsplit(record.url).hostname


@contract("PROBE-16", on=requests.REQUEST, needs=(CRI, PODS, EVERY_EVENT), clause="status")
def status_of_http_decides(m: Moment) -> Findings:
    """An httpGet probe succeeds with a status from 200 to 399 and fails with any other, and without an
    answer. A redirect to another host is not followed: it is a success with a ProbeWarning.
    """
    record, one = requests.request_at(m), _asker(m, "httpGet")
    if record is None or one is None:
        return None
    status = requests.answered_with(record)
    if not _OK <= status < _BAD:
        return _has_failed(one, f"answered with {record.outcome}")
    if status >= _REDIRECT and record.location and not _leads_away(record):
        return None  # The answer at the end of the redirects decides.
    return _has_not_failed(one, f"answered with {status}")


judges_waits(status_of_http_decides)


@status_of_http_decides.clause("redirect", on=requests.REQUEST)
def redirect_away_is_reported(m: Moment) -> Findings:
    """A ProbeWarning event reports the redirect to another host."""
    record, one = requests.request_at(m), _asker(m, "httpGet")
    if record is None or one is None or not _REDIRECT <= requests.answered_with(record) < _BAD:
        return None
    if not record.location or not _leads_away(record):
        return None
    return answered(
        by=event("ProbeWarning").where(_reports(one, "warning")),
        within=REACTION,
        unless=TERMINATION_ASKED,
        text=f"a ProbeWarning says that the {one.what} probe of {one.spec.name} was redirected",
    )


class _Said(Note):
    """The server's response to the HTTP probe that failed last."""

    text: str = ""
    seq: int = 0


@contract("PROBE-17", on=event("Unhealthy"), needs=(CRI, PODS, EVENTS), versions=since("1.21"))
def body_of_a_failure_is_not_reported(_: Moment, pod: Pod, event: Event) -> Findings:
    """The event of a failed HTTP probe contains the status and nothing of the server's response."""
    said = pod.note(_Said)
    if said.text and said.text in event.message:
        return broken("the event repeats the server's response", said.seq)
    found = _STATUS_IN_TEXT.search(event.message)
    if found is None:
        return None
    rest = event.message[found.end() :]
    return broken(f"after the status the event has {rest!r}") if rest else KEPT


@observer(on=requests.REQUEST)
def _what_was_said(m: Moment) -> None:
    """Remember what came with a status of 400 or more."""
    record = requests.request_at(m)
    if record is not None and m.pod is not None and requests.answered_with(record) >= _BAD:
        said = m.pod.note(_Said)
        said.text, said.seq = record.text, m.seq


@contract("PROBE-18", on=requests.REQUEST, needs=(CRI, PODS, EVERY_EVENT))
def connection_is_enough(m: Moment) -> Findings:
    """A tcpSocket probe succeeds where a connection can be opened, and fails where none can."""
    record, one = requests.request_at(m), _asker(m, "tcpSocket")
    if record is None or one is None:
        return None
    return (_has_not_failed if record.outcome == "open" else _has_failed)(one, f"to a port {record.outcome}")


@contract("PROBE-19", on=requests.REQUEST, needs=(CRI, PODS, EVERY_EVENT), versions=since("1.24"))
def serving_is_healthy(m: Moment) -> Findings:
    """A gRPC probe succeeds when the health service answers SERVING, and with nothing else."""
    record, one = requests.request_at(m), _asker(m, "grpc")
    if record is None or one is None:
        return None
    healthy = record.outcome == "SERVING"
    return (_has_not_failed if healthy else _has_failed)(one, f"answered with {record.outcome}")


judges_waits(serving_is_healthy)


def _is_meant(m: Moment, record: Probe) -> Findings:
    """A host that is no pod's address must be named by a probe."""
    probes = [one for one in requests.askers_anywhere(m, record) if not one.is_hook]
    if not probes or not requests.is_nobodys(m, record.host) or _may_be_the_nodes(m, record):
        return None
    if any(requests.named_host(one.handler) == record.host for one in probes):
        return KEPT
    return broken(f"a probe goes to {record.host}, which is no pod's address")


def _may_be_the_nodes(m: Moment, record: Probe) -> bool:
    """A pod that asks is in the node's network, and no status has reported its address yet."""
    unreported = (pod for pod in m.world.pods.values() if pod.status is None or not pod.status.pod_ip)
    hosted = (pod for pod in unreported if pod.spec is not None and pod.spec.host_network)
    return not record.host.startswith(_LOOPBACK) and any(requests.asked_by(pod, record) for pod in hosted)


class _Redirected(Note):
    """The addresses to which servers of a pod have redirected requests."""

    urls: set[str] = set()


@contract("PROBE-20", on=requests.REQUEST, needs=(CRI, PODS))
def pod_itself_is_asked(m: Moment) -> Findings:
    """Probes over the network go to the pod's address unless they name a host, and to the port that they
    name by number or by its name in the container. Those over HTTP have the headers that they name.
    """
    record, pod = requests.request_at(m), m.pod
    if record is None:
        return None
    if pod is None:
        return _is_meant(m, record)
    asked = requests.asked_by(pod, record)
    if record.url in pod.note(_Redirected).urls:
        return None
    if not asked and any(requests.named_host(one.handler) for one in requests.askers_anywhere(m, record)):
        return None  # Another pod's names this one's address.
    if not asked and never_updated(pod):
        return broken(f"no probe or hook of the pod asks {record.url or record.port}", pod.set_seq)
    return KEPT if any(not one.is_hook and not requests.named_host(one.handler) for one in asked) else None


judges_waits(pod_itself_is_asked)


@observer(on=requests.REQUEST, last=True)
def _redirects(m: Moment) -> None:
    """Remember where redirects lead."""
    record = requests.request_at(m)
    if record is not None and m.pod is not None and record.location:
        m.pod.note(_Redirected).urls.add(urljoin(record.url, record.location))


@contract("PROBE-21", on=call("ExecSync"), needs=(CRI, PODS))
def environment_is_put_into_a_command(m: Moment, container: Container) -> Findings:
    """In the command of an exec probe a reference to a variable that the container's env gives a value is
    replaced by it, and nothing else is.
    """
    request = m.request(ExecSyncRequest)
    spec = container.spec
    if spec is None or request.timeout == 0:
        return None
    commands = [probe.exec.command for _, probe in probes_of(spec) if probe.exec is not None]
    if not any("$" in word for command in commands for word in command):
        return None
    if _is_uncertain(spec, commands, secret=m.header.redacted):
        return None
    expected = [[_expanded(word, spec) for word in command] for command in commands]
    if request.cmd in expected:
        return KEPT if request.cmd not in commands or _has_literals(request.cmd) else None
    return broken(f"expected one of {expected}, got {request.cmd}")


def _is_uncertain(spec: ContainerSpec, commands: list[list[str]], *, secret: bool) -> bool:
    """A reference names a variable whose value comes from elsewhere, is secret, or holds a reference."""
    sources = {one.name for one in spec.env or () if secret or one.value_from is not None or "$" in one.value}
    names = {found[1] for command in commands for word in command for found in _REFERENCE.finditer(word)}
    return not sources.isdisjoint(names)


def _has_literals(command: list[str]) -> bool:
    return any("$" in word for word in command)


def _expanded(word: str, spec: ContainerSpec) -> str:
    values = {one.name: one.value for one in spec.env or ()}

    def value(found: re.Match[str]) -> str:
        name: str | None = found[1]
        return "$" if name is None else values.get(name, found[0])

    return _REFERENCE.sub(value, word)
