"""METRIC: the kubelet's counters, compared with the calls of the trace."""

import re
from collections import Counter, deque
from collections.abc import Iterator

from kubelet_conformance.contract import Finding, Moment, Pattern
from kubelet_conformance.contract.applicability import CRI, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, failed, kubelet
from kubelet_conformance.contracts.facts.status import START_ERRORS
from kubelet_conformance.trace.format.bodies import CreateContainerRequest
from kubelet_conformance.trace.format.records import Metrics

SCRAPED = Pattern(frozenset({"metrics"}))
PODS_STARTED = "kubelet_started_pods_total"
PODS_FAILED = "kubelet_started_pods_errors_total"
STARTED = "kubelet_started_containers_total"
FAILED = "kubelet_started_containers_errors_total"
_TYPES = {
    "app": "container",
    "init": "init_container",
    "sidecar": "init_container",
    "ephemeral": "ephemeral_container",
}
_CODES = START_ERRORS - {"CrashLoopBackOff"}
"""Why a start that was tried may have failed: one that the back-off refuses was not tried."""
_ANSWER_SECONDS = 0.5
"""A process gathers its counters one after the other, and its answer has been seen to take 0.1 s."""
_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})?")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class _Counted:
    """The calls of this kubelet instance to the runtime."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """The kubelet starts: its counters begin at 0."""
        self.sandboxes = 0
        self.failed = 0
        self.unwanted = 0
        """Sandboxes that failed, and may have done so for a pod that was to go."""
        self.tried: Counter[str] = Counter()
        """Containers that were to be made, by type."""
        self.missed: Counter[str] = Counter()
        """Containers that could not be made or started, by type."""
        self.ran: Counter[str] = Counter()
        """Containers that were started, by type."""
        self.looked: deque[float] = deque(maxlen=100)
        """When images were looked for lately, which each try begins with."""


def _samples(m: Moment, name: str) -> Iterator[tuple[dict[str, str], float]]:
    """The samples of one counter, with their labels."""
    for sample, value in m.record.values.items() if isinstance(m.record, Metrics) else ():
        found = _SAMPLE.fullmatch(sample)
        if found is not None and found[1] == name:
            yield dict(_LABEL.findall(found[2] or "")), value


def _sum(m: Moment, name: str, kind: str = "") -> float | None:
    """The value of a counter, for one type of containers if one is named; None where it is absent."""
    found = list(_samples(m, name))
    if not found:
        return None
    return sum(value for labels, value in found if not kind or labels.get("container_type") == kind)


@contract("METRIC-01", on=SCRAPED, needs=(CRI, PODS))
def sandboxes_are_counted(m: Moment) -> Findings:
    """Each try to create a sandbox counts as a started pod, each failed one as an error too.

    What fails for a pod that is to go is no error.
    """
    counted, started, errors = m.node.note(_Counted), _sum(m, PODS_STARTED), _sum(m, PODS_FAILED)
    if started is None or errors is None or not m.header.from_start or not counted.sandboxes:
        return None
    # A try that fails before RunPodSandbox counts twice, and leaves no call.
    calls = started - counted.sandboxes
    if calls < 0:
        return broken(f"{PODS_STARTED} is {started:g}, RunPodSandbox was called {counted.sandboxes} times")
    least = counted.failed - counted.unwanted + calls
    if not least <= errors <= counted.failed + calls:
        return broken(f"{PODS_FAILED} is {errors:g}, {counted.failed} of {started:g} sandboxes failed")
    return KEPT


@observer(on=kubelet("started"))
def _kubelet_starts(m: Moment) -> None:
    m.node.note(_Counted).begin()


@observer(on=call("RunPodSandbox").either(failed("RunPodSandbox")))
def _sandbox_is_tried(m: Moment) -> None:
    counted = m.node.note(_Counted)
    if m.keys[0].startswith("call"):
        counted.sandboxes += 1
        return
    counted.failed += 1
    pod = m.pod
    counted.unwanted += pod is None or pod.termination is not None or bool(pod.finished) or not pod.wanted


@contract("METRIC-02", on=SCRAPED, needs=(CRI, PODS))
def starts_are_counted(m: Moment) -> Iterator[Finding]:
    """Each try to start a container counts by its type, each failed one by its type and well-known reason.

    A start that the back-off refuses is no try.
    """
    if not m.header.from_start or _sum(m, STARTED) is None:
        return
    for labels, _ in _samples(m, FAILED):
        if labels.get("code") not in _CODES:
            yield broken(f"{FAILED} has the code {labels.get('code')!r}")
    for kind in sorted(set(_TYPES.values())):
        yield from _of_type(m, kind)


def _of_type(m: Moment, kind: str) -> Iterator[Finding]:
    counted = m.node.note(_Counted)
    started, errors = _sum(m, STARTED, kind) or 0, _sum(m, FAILED, kind) or 0
    tried, missed, ran = counted.tried[kind], counted.missed[kind], counted.ran[kind]
    if not tried and not started:
        return
    # What is tried just now may be pulling its image, be made, be started, or run its hook.
    going = any(pod.calls_open for pod in m.world.pods.values())
    # A process goes on while it answers, and a refused pull has no call of its own.
    late = sum(m.t - t <= _ANSWER_SECONDS for t in counted.looked) if m.header.clock == "wall" else 0
    if started < tried or errors < missed:
        reported = f"{started:g} starts and {errors:g} failures of type {kind} by the metrics"
        yield broken(f"{reported}, at least {tried} and {missed} by the calls")
    elif started - errors > ran + late and not going:
        yield broken(
            f"{started - errors:g} starts of type {kind} went well by the metrics, {ran} by the calls"
        )
    else:
        yield KEPT


@observer(on=done("ImageStatus"))
def _image_is_looked_for(m: Moment) -> None:
    m.node.note(_Counted).looked.append(m.t)


@observer(
    on=call("CreateContainer").either(failed("CreateContainer", "StartContainer"), done("StartContainer"))
)
def _start_is_tried(m: Moment) -> None:
    counted = m.node.note(_Counted)
    if m.call.rpc == "CreateContainer":
        name = m.request(CreateContainerRequest).config.metadata.name
        kind = m.pod.kind_of(name) if m.pod is not None else "unknown"
    else:
        kind = m.container.kind if m.container is not None else "unknown"
    of_type = _TYPES.get(kind)
    if of_type is None:
        return
    tally = {"call": counted.tried, "fail": counted.missed, "done": counted.ran}[m.keys[0][:4]]
    tally[of_type] += 1
