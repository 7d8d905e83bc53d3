"""Dynamic resources: prepared before a pod's sandbox, given to its containers, unprepared after their end."""

from kubelet_conformance.contract import Moment, Note, Pod, PodSpec
from kubelet_conformance.contract.applicability import CRI, EVENTS, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, event, expects, failed
from kubelet_conformance.contracts.facts.container import asked
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, to_run
from kubelet_conformance.contracts.facts.sandbox import FINISHED, GONE
from kubelet_conformance.contracts.facts.timing import REACTION, RESYNC, RETRY, RETRY_SLACK
from kubelet_conformance.contracts.runtime.expected import as_expected, judges_waits
from kubelet_conformance.trace.format.bodies import ClaimsReply

GATE = "DynamicResourceAllocation"
_FAILED_TO_PREPARE = "FailedPrepareDynamicResources"


class _Plugin(Note):
    """Whether the trace records calls to resource plugins at all."""

    is_recorded: bool = False


class _Resources(Note):
    """The prepared claims of a pod."""

    devices: dict[str, list[str]] = {}
    """By the claim's name, the CDI names of its devices."""
    failed_seq: int = 0


_ENDED = done("NodePrepareResources", "NodeUnprepareResources").either(failed("NodePrepareResources"))


@observer(on=_ENDED)
def _plugin_calls_are_recorded(m: Moment) -> None:
    """Record how a call to a plugin ended."""
    m.node.note(_Plugin).is_recorded = True
    memory = m.pod.note(_Resources) if m.pod is not None else None
    if memory is None:
        return
    if m.reply.error is not None:
        memory.failed_seq = m.seq
    elif m.call.rpc == "NodePrepareResources":
        memory.devices.update({one.name: one.cdi_devices for one in m.response(ClaimsReply).claims})
    else:
        memory.devices.clear()


def _of_its_own(m: Moment, pod: Pod) -> bool:
    """The pod has claims that no other pod has: whose calls are its own."""
    others = (one.claims for one in m.world.pods.values() if one is not pod)
    return bool(pod.claims) and all(pod.claims.isdisjoint(claims) for claims in others)


def _unready(pod: Pod) -> str | None:
    """A claim of the pod that is not prepared."""
    ready = pod.note(_Resources).devices
    return next((name for _, name in sorted(pod.claims) if name not in ready), None)


@contract("SYNC-18", on=call("RunPodSandbox"), needs=(CRI, PODS), versions=since("1.26"), gate=GATE)
def resources_come_before_the_sandbox(m: Moment, pod: Pod) -> Findings:
    """A pod's dynamic resources are prepared before its sandbox is run.

    If that fails an event reports it, and no sandbox is run. A container gets the devices that it claims.
    """
    if not pod.born or not m.node.note(_Plugin).is_recorded or not _of_its_own(m, pod):
        return None
    claim = _unready(pod)
    if claim is not None:
        return broken(
            f"the sandbox is run, and the claim {claim} is not prepared", pod.note(_Resources).failed_seq
        )
    return KEPT


# Only the harness that provided the plugin knows whether plugins are called at all.
resources_come_before_the_sandbox.clause("prepared", on=expects("SYNC-18"))(as_expected)


@resources_come_before_the_sandbox.clause("reported", on=failed("NodePrepareResources"))
def failed_preparation_is_reported(m: Moment) -> Findings:
    """A failure to prepare resources is reported by an event."""
    if not to_run(m) or m.header.channels.events == "none":
        return None
    return answered(
        by=event(_FAILED_TO_PREPARE),
        not_before=call("RunPodSandbox"),
        within=REACTION,
        unless=GONE,
        text="an event reports that resources could not be prepared",
    )


@resources_come_before_the_sandbox.clause("devices", on=call("CreateContainer"))
def container_gets_its_devices(m: Moment, pod: Pod) -> Findings:
    """A container is created with the devices of its claims."""
    config = asked(m)
    spec = pod.container_spec(config.metadata.name)
    if pod.spec is None or spec is None or not spec.resources.claims:
        return None
    names = {one.name: one.resource_claim_name or "" for one in pod.spec.resource_claims or ()}
    ready, given = pod.note(_Resources).devices, {one.name for one in config.cdi_devices}
    due = {device for one in spec.resources.claims for device in ready.get(names.get(one.name, ""), [])}
    if not due:
        return None
    missing = due - given
    return broken(f"{spec.name} is created without its device {min(missing)}") if missing else KEPT


@contract(
    "SANDBOX-25",
    on=failed("NodePrepareResources"),
    needs=(CRI, PODS, EVENTS),
    versions=since("1.26"),
    gate=GATE,
)
def failed_preparation_is_tried_again(m: Moment) -> Findings:
    """While a pod's resources cannot be prepared it gets no sandbox, and that is tried again."""
    if not to_run(m):
        return None
    return answered(
        by=call("NodePrepareResources"),
        not_before=call("RunPodSandbox"),
        within=RESYNC,
        unless=GONE,
        text="the preparation is tried again",
    )


def _runs_something(pod: Pod) -> str | None:
    return next((one.name for one in pod.every_container() if one.state == "running"), None)


@contract(
    "TERM-27",
    on=call("NodeUnprepareResources"),
    needs=(CRI, PODS, STATUS),
    versions=since("1.26"),
    gate=GATE,
)
def resources_are_given_back_last(_: Moment, pod: Pod) -> Findings:
    """A pod's dynamic resources are unprepared after its containers have stopped.

    Its terminal status comes only after that.
    """
    if not pod.born:
        return None
    running = _runs_something(pod)
    return broken(f"resources are unprepared, and {running} runs") if running else KEPT


judges_waits(resources_are_given_back_last)


@resources_are_given_back_last.clause("status", on=FINISHED)
def terminal_status_comes_after_that(m: Moment, pod: Pod) -> Findings:
    """No terminal status is written while the pod has prepared resources."""
    if not pod.born or pod.finished or not m.node.note(_Plugin).is_recorded:
        return None
    held = pod.note(_Resources).devices
    if not _of_its_own(m, pod) or not held:
        return None
    return broken(f"a terminal status is written, and the claim {min(held)} is still prepared")


@resources_are_given_back_last.clause("back", on=TERMINATION_ASKED)
def resources_are_given_back(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """The resources of a pod that is being terminated are unprepared."""
    if not pod.born or pod.termination is not None or not m.node.kubelet_up:
        return None
    if not _of_its_own(m, pod) or not pod.note(_Resources).devices:
        return None
    return answered(
        by=done("NodeUnprepareResources"),
        within=spec.grace_seconds + RETRY + RETRY_SLACK,
        unless=failed("StopContainer", "StopPodSandbox", "NodeUnprepareResources"),
        text="its resources are unprepared",
    )
