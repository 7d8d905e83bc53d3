"""GC: limits on dead containers, containers that never ran, and garbage collections that fail."""

from kubelet_conformance.contract import Container, Moment, Note, Pod
from kubelet_conformance.contract.applicability import CRI, EVERY_EVENT, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, event, exited, failed, happened
from kubelet_conformance.contracts.facts.pod import FAULT, TERMINATION_ASKED, about
from kubelet_conformance.contracts.facts.timing import GC_PERIOD
from kubelet_conformance.contracts.garbage.containers import GC_SLACK, REMOVE, lives_on, most_in_all
from kubelet_conformance.trace.format.bodies import CreateContainerReply, CreateContainerRequest


def _dead(m: Moment) -> list[Container]:
    """The dead containers of all pods that are not terminated, the oldest first."""
    every = (c for c in m.world.containers.values() if c.pod is not None and lives_on(c.pod))
    found = [c for c in every if c.state in {"exited", "created"} and c.created_t is not None]
    return sorted(found, key=lambda c: c.created_t or 0.0)


@contract("GC-03", on=REMOVE, needs=(CRI, PODS))
def oldest_of_all_goes_first(m: Moment, container: Container) -> Findings:
    """Where more dead containers are there than may stay, the oldest of all are removed, each container
    keeping one for as long as that is possible.
    """
    most = most_in_all(m)
    if most < 0 or container.pod is None or not lives_on(container.pod):
        return None
    if container is not container.pod.newest(container.name):
        return None
    dead = _dead(m)
    if container not in dead or len(dead) <= most:
        return None
    alone = [c for c in dead if c.pod is not None and c is c.pod.newest(c.name)]
    if alone[0] is container:
        return KEPT
    text = f"{alone[0].name} of {alone[0].pod.name if alone[0].pod else ''} is older than {container.name}"
    return broken(f"{text}, which is removed", alone[0].create)


@oldest_of_all_goes_first.clause("goes", on=exited())
def too_many_do_not_stay(m: Moment) -> Findings:
    """The next garbage collection leaves at most as many dead containers as may stay."""
    most = most_in_all(m)
    if most < 0 or not m.node.kubelet_up or m.container is None or len(_dead(m)) < most:
        return None
    return answered(
        by=REMOVE,
        within=GC_PERIOD + GC_SLACK,
        unless=FAULT,
        whole_node=True,
        text=f"one of more than {most} dead containers is removed",
    )


@contract("GC-08", on=done("CreateContainer"), needs=(CRI, PODS))
def container_that_never_ran_goes(m: Moment, pod: Pod) -> Findings:
    """Of a container's instances one that was created and never started is removed like any dead one.

    The newest of those that do not run stays.
    """
    if not pod.born:
        return None
    new = m.world.containers.get(m.response(CreateContainerReply).container_id)
    every = pod.containers.get(m.request(CreateContainerRequest).config.metadata.name, [])
    dead = [one for one in every if one is not new and one.state in {"created", "exited"}]
    if len(dead) <= 1 or not lives_on(pod) or not m.node.kubelet_up:
        return None
    return [
        answered(
            by=REMOVE.where(about(older)),
            within=GC_PERIOD + GC_SLACK,
            unless=TERMINATION_ASKED.either(
                call("RunPodSandbox"), happened("removed").where(about(dead[-1]))
            ),
            text=f"attempt {older.attempt} of {older.name}, which never ran, is removed",
        )
        for older in dead[:-1]
        if older.state == "created" and older.start_failed
    ]


class _Rounds(Note):
    """Since when containers cannot be listed."""

    failing: bool = False


@contract("GC-11", on=failed("ListContainers"), needs=(CRI, EVERY_EVENT))
def failed_gc_has_an_event(m: Moment) -> Findings:
    """A failed garbage collection is reported by an event of the node, ContainerGCFailed."""
    rounds = m.node.note(_Rounds)
    if rounds.failing or not m.node.kubelet_up:
        return None
    rounds.failing = True
    return answered(
        by=event("ContainerGCFailed"),
        within=GC_PERIOD + GC_SLACK,
        unless=done("ListContainers").either(FAULT),
        whole_node=True,
        text="an event ContainerGCFailed is written while containers cannot be listed",
    )


@observer(on=done("ListContainers"))
def _list_is_read(m: Moment) -> None:
    m.node.note(_Rounds).failing = False
