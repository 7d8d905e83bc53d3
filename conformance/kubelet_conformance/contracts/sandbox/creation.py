"""SANDBOX: when a pod sandbox is created, and when it is replaced or kept."""

from collections import deque
from collections.abc import Iterator

from msgspec import field

from kubelet_conformance.contract import Answered, Finding, Manifest, Moment, Note, Pattern, Pod, Sandbox
from kubelet_conformance.contract.applicability import CRI, EVENTS, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import (
    call,
    done,
    event,
    failed,
    happened,
    newly_reported,
    pod_set,
    sandbox_died,
)
from kubelet_conformance.contracts.facts import sandbox as sandboxes
from kubelet_conformance.contracts.facts.pod import (
    NOBODY,
    REFUSED,
    TERMINATION_ASKED,
    is_refused,
    of,
    refusal_may_be_unseen,
    to_run,
)
from kubelet_conformance.contracts.facts.status import is_held_up
from kubelet_conformance.contracts.facts.timing import FILE_POLL, REACTION, RETRY, RETRY_SLACK
from kubelet_conformance.contracts.status.events import printed_error
from kubelet_conformance.trace.format.bodies import ListPodSandboxReply, ListPodSandboxRequest, SandboxRequest
from kubelet_conformance.trace.format.records import Event, PodChange

_VANISHED_REMEMBERED = 1_000


class _Asked(Note):
    """Whether a RunPodSandbox call for the pod may have created a sandbox."""

    run: bool = False


@contract("SANDBOX-01", on=call("RunPodSandbox"))
def first_sandbox_is_attempt_zero(m: Moment, pod: Pod) -> Findings:
    """A new pod gets one sandbox, which names it (name, namespace, UID) and is attempt 0.

    Without volumes and claims it comes within 20 s. The kubelet uses no sandbox that was not reported to it.
    """
    if not pod.born:
        return None
    pod.note(_Asked).run = True
    if pod.sandboxes:
        return None
    meta = sandboxes.sandbox_asked(m).metadata
    if meta.attempt != 0 and not is_held_up(m):
        return broken(f"the first sandbox of {pod.name} is attempt {meta.attempt}, expected 0", pod.set_seq)
    if pod.manifest is not None and (meta.name, meta.namespace) != (pod.name, pod.namespace):
        return broken(
            f"the sandbox is called {meta.namespace}/{meta.name}, the pod {pod.namespace}/{pod.name}"
        )
    return KEPT


def _waits_for_nothing(manifest: Manifest) -> bool:
    """Nothing but the runtime keeps the pod from its sandbox."""
    spec, known = manifest.spec, manifest.status
    gone = manifest.metadata.deletion_timestamp is not None or (known is not None and known.terminal)
    needs = spec.volumes or spec.resource_claims or spec.runtime_class_name is not None
    return not gone and not needs


def _is_new(m: Moment, names: tuple[tuple[str, str], ...]) -> bool:
    return m.pod is None and m.replaced is None and m.world.names.keys().isdisjoint(names)


@first_sandbox_is_attempt_zero.clause("soon", on=pod_set())
def new_pod_gets_a_sandbox(m: Moment, manifest: Manifest) -> Findings:
    """RunPodSandbox follows soon."""
    node = m.node
    if not m.world.past_known or not node.kubelet_up or node.relisted_t is None:
        return None
    names = sandboxes.full_names(manifest.metadata, m.header.node)
    if node.listing_failed or not _is_new(m, names) or not _waits_for_nothing(manifest):
        return None
    static = isinstance(m.record, PodChange) and m.record.source != "api"
    if refusal_may_be_unseen(m, "file" if static else "api") or (static and is_refused(m, manifest)):
        return None

    def is_this(n: Moment) -> bool:
        return n.pod is not None and (n.pod.namespace, n.pod.name) in names

    return answered(
        by=sandboxes.run_of(names),
        within=RETRY + RETRY_SLACK + (FILE_POLL if static else 0),
        unless=sandboxes.GONE.either(REFUSED).where(is_this).either(sandboxes.BLIND, sandboxes.NOT_READY),
        text=f"a sandbox is run for {manifest.metadata.name}",
        whole_node=True,
    )


@first_sandbox_is_attempt_zero.clause("its own", on=done("PodSandboxStatus"))
def sandbox_in_use_was_made_or_found(m: Moment) -> Findings:
    """A kubelet asks only for sandboxes that were reported to it: by the reply of RunPodSandbox or by a
    listing.
    """
    if not m.node.born:
        return None
    if m.sandbox is None:
        return broken(
            "the kubelet asks for a sandbox that no RunPodSandbox and no listing has reported to it"
        )
    return KEPT if m.sandbox.born and m.sandbox.status_t is None else None


@first_sandbox_is_attempt_zero.clause("nothing else", on=call("StopPodSandbox"))
def sandbox_to_stop_was_made_or_found(m: Moment) -> Findings:
    """A kubelet stops only sandboxes that were reported to it (K8S-32935)."""
    if not m.node.born or m.sandbox is not None:
        return None
    if m.request(SandboxRequest).pod_sandbox_id in m.node.note(_Vanished).ids:
        return None
    return broken("the kubelet stops a sandbox that no RunPodSandbox and no listing has reported to it")


class _Vanished(Note):
    """The sandboxes whose records went, the latest ones: a kill that was begun before may still name them."""

    ids: deque[str] = field(default_factory=lambda: deque(maxlen=_VANISHED_REMEMBERED))


@observer(on=happened("removed").either(done("RemovePodSandbox")))
def _a_record_vanished(m: Moment, sandbox: Sandbox) -> None:
    m.node.note(_Vanished).ids.append(sandbox.id)


@observer(on=failed("RunPodSandbox"))
def _nothing_was_made(m: Moment, pod: Pod) -> None:
    """A RunPodSandbox that failed without any effect made none."""
    if not m.reply.effect:
        pod.note(_Asked).run = False


@first_sandbox_is_attempt_zero.clause("asked for", on=newly_reported("sandbox"))
def listed_sandbox_was_asked_for(m: Moment) -> Iterator[Finding]:
    """A sandbox of a pod that appears in the trace was requested by RunPodSandbox."""
    for news in m.sandboxes_reported:
        record = news.record
        pod = m.world.pods.get(record.metadata.uid)
        if news.known is not None or pod is None or not pod.born or pod.set_t is None:
            continue
        if not pod.note(_Asked).run:
            yield broken(
                f"{pod.name} has sandbox {record.id[:12]}, which no RunPodSandbox requested", pod.set_seq
            )


@contract("SANDBOX-02", on=call("RunPodSandbox"))
def sandbox_is_run_only_where_one_is_needed(m: Moment, pod: Pod) -> Findings:
    """Another sandbox is run exactly when one is needed; its attempt is that of the newest plus 1, or 0.

    It is needed if the pod has none, the newest is not ready, more than one is ready, the network namespace
    changed, or it has no IP.
    """
    if not pod.born:
        return None
    stand, attempt = sandboxes.standing(pod), sandboxes.sandbox_asked(m).metadata.attempt
    made = stand[-1].run.seq if stand and stand[-1].run else None
    if sandboxes.why_replaced(pod) is None:
        return broken(f"sandbox {stand[-1].id[:12]} is ready, and another one is run", made)
    expected = stand[-1].attempt + 1 if stand else 0
    if attempt != expected and not is_held_up(m):
        return broken(f"the sandbox is attempt {attempt}, expected {expected}", made)
    return KEPT


def _needs_others(pod: Pod) -> bool:
    """A runtime class that is not there, or a device that is not ready, may keep it from its sandbox."""
    return pod.spec is not None and bool(pod.spec.runtime_class_name or pod.spec.resource_claims)


@sandbox_is_run_only_where_one_is_needed.clause("replaced", on=done("StopPodSandbox").where(to_run))
def dead_sandbox_is_replaced(_: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """When the dead sandbox of a pod that always restarts was stopped, its replacement is run."""
    if sandbox is not pod.sandbox:
        return None
    if sandbox.died_t is None or sandbox.stopped or pod.restart_policy != "Always" or _needs_others(pod):
        return None
    if any(stop.failed for one in pod.every_container() for stop in one.stops):
        return None
    return answered(
        by=call("RunPodSandbox"),
        within=REACTION,
        unless=TERMINATION_ASKED.either(sandboxes.FINISHED, failed("StopPodSandbox")),
        text="the dead sandbox is replaced",
    )


def _is_killed(pod: Pod, within: float, why: str, *, or_not: Pattern = NOBODY) -> Answered:
    return answered(
        by=call("StopContainer", "StopPodSandbox", "ExecSync", "RunPodSandbox").where(of(pod)),
        within=within,
        unless=sandboxes.BLIND.either(sandboxes.GONE.where(of(pod)), or_not),
        text=f"the pod {pod.name} is killed, {why}",
        whole_node=True,
    )


@sandbox_is_run_only_where_one_is_needed.clause("noticed", on=sandbox_died())
def dead_sandbox_is_noticed(m: Moment, pod: Pod) -> Findings:
    """When the sandbox dies the pod is killed at once."""
    if not to_run(m) or pod.calls_open or not m.node.kubelet_up or m.node.listing_failed:
        return None
    return _is_killed(pod, REACTION, "whose sandbox died,")


@sandbox_is_run_only_where_one_is_needed.clause("address", on=done("PodSandboxStatus"))
def sandbox_without_address_is_replaced(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """When a ready sandbox is read to have no IP, and should have one, the pod is killed at the next sync."""
    read = sandbox.record
    if read is None or read.network is None or read.network.ip:
        return None
    if sandbox is not pod.sandbox or not to_run(m) or pod.calls_open or m.node.listing_failed:
        return None
    if pod.restart_policy != "Always" or sandboxes.why_replaced(pod) != "it has no IP":
        return None
    return _is_killed(pod, RETRY + RETRY_SLACK, "whose sandbox has no IP,", or_not=TERMINATION_ASKED)


@sandbox_is_run_only_where_one_is_needed.clause("several", on=done("PodSandboxStatus"))
def several_sandboxes_are_replaced(m: Moment, pod: Pod) -> Findings:
    """When two sandboxes are read to be ready, the pod is killed at the next sync."""
    if len(pod.sandboxes) < 2:  # noqa: PLR2004 - a single one is no more than one
        return None
    if not to_run(m) or pod.calls_open or m.node.listing_failed:
        return None
    if pod.restart_policy != "Always" or sandboxes.why_replaced(pod) != "more than one is ready":
        return None
    if any(sandboxes.is_ready(one) and sandboxes.may_be_stopped(one) for one in pod.sandboxes):
        return None
    return _is_killed(pod, RETRY + RETRY_SLACK, "which has two ready sandboxes,", or_not=TERMINATION_ASKED)


def _lists_sandboxes_anew(m: Moment) -> bool:
    is_new = m.call.rpc == "ListPodSandbox" and not m.reply.same
    return is_new and m.request(ListPodSandboxRequest).everything


@sandbox_is_run_only_where_one_is_needed.clause(
    "vanished", on=newly_reported("list").where(_lists_sandboxes_anew)
)
def vanished_sandbox_is_replaced(m: Moment) -> Iterator[Finding]:
    """When a listing shows that the sandbox has vanished, another one is run at once."""
    listed = {record.id for record in m.response(ListPodSandboxReply).items}
    for sandbox in m.world.sandboxes.values():
        pod = sandbox.pod
        if sandbox.id in listed or pod is None or pod.sandbox is not sandbox or sandbox.stops:
            continue
        if pod.calls_open:
            continue
        if sandbox.ready_t is None or sandbox.ready_t > m.call.t or not sandboxes.wants_to_run(pod):
            continue
        if _needs_others(pod):
            continue
        yield answered(
            by=call("RunPodSandbox").where(of(pod)),
            within=REACTION,
            unless=sandboxes.BLIND.either(sandboxes.GONE.where(of(pod))),
            text=f"another sandbox is run for {pod.name}, whose sandbox has vanished,",
            whole_node=True,
        )


@contract("SANDBOX-04", on=call("RunPodSandbox"))
def old_sandbox_is_stopped_first(_: Moment, pod: Pod) -> Findings:
    """Before a replacement is run, every container and every known sandbox of the pod was stopped.

    StopPodSandbox has succeeded for sandboxes that are not ready, too.
    """
    stand = sandboxes.standing(pod) if pod.born else []
    if not stand:
        return None
    for sandbox in stand:
        if not any(stop.is_done for stop in sandbox.stops):
            return broken(
                f"sandbox {sandbox.id[:12]} was not stopped before another one was run", sandbox.run
            )
    for container in pod.every_container():
        if container.state == "running" and container.start:
            return broken(f"container {container.name} still runs in the old sandbox", container.start.seq)
    return KEPT


@contract("SANDBOX-09", on=event("SandboxChanged"), needs=(CRI, EVENTS))
def replacement_is_reported(_: Moment, pod: Pod) -> Findings:
    """An event SandboxChanged reports a replacement, never a pod's first sandbox."""
    if not pod.born:
        return None
    first = pod.sandboxes[0] if len(pod.sandboxes) == 1 else None
    fine = first is not None and first.state == "ready" and sandboxes.why_replaced(pod) is None
    if not pod.sandboxes or (first is not None and first.attempt == 0 and fine):
        return broken("SandboxChanged is sent for the pod's first sandbox", pod.set_seq)
    return KEPT


@contract("SANDBOX-10", on=failed("RunPodSandbox"), needs=(CRI, PODS))
def failed_sandbox_is_retried(m: Moment) -> Findings:
    """A sandbox that could not be run is tried again within 16 s for as long as the pod is desired."""
    if not to_run(m):
        return None
    return answered(
        by=call("RunPodSandbox"),
        within=RETRY + RETRY_SLACK,
        unless=TERMINATION_ASKED.either(
            sandboxes.FINISHED, sandboxes.READ_AS_READY, call("PullImage", "CreateContainer")
        ),
        text="RunPodSandbox is tried again",
    )


class _Refusal(Note):
    """The error with which the runtime has just refused to run a sandbox of the pod, as gRPC prints it."""

    text: str = ""
    t: float = 0.0


@observer(on=call("RunPodSandbox"))
def _sandbox_is_tried(_: Moment, pod: Pod) -> None:
    pod.note(_Refusal).text = ""


@observer(on=failed("RunPodSandbox"))
def _sandbox_is_refused(m: Moment, pod: Pod) -> None:
    refusal = pod.note(_Refusal)
    refusal.text, refusal.t = printed_error(m.reply), m.t


@failed_sandbox_is_retried.clause("text", on=event("FailedCreatePodSandBox"))
def event_has_the_error_of_the_runtime(m: Moment, pod: Pod, event: Event) -> Findings:
    """The event of the failure has the runtime's error with its code."""
    refusal = pod.note(_Refusal)
    text, refusal.text = refusal.text, ""
    if not text or m.t - refusal.t > REACTION:
        return None
    # Where secrets are digests, so are errors.
    is_right = m.header.redacted or text in event.message
    return KEPT if is_right else broken(f"the event says {event.message!r}, expected {text!r}")
