"""STATIC: the mirror pods that stand for static pods at the API server."""

from kubelet_conformance.contract import Manifest, Moment, Note, Pod, PodStatus, Predicate, Sandbox
from kubelet_conformance.contract.applicability import CRI, EVERY_STATUS, PODS, STORED_STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, deleted, done, pod_set, pod_unset, status
from kubelet_conformance.contracts.facts import static_pod as static_pods
from kubelet_conformance.contracts.facts import timing
from kubelet_conformance.contracts.facts.kills import explained
from kubelet_conformance.contracts.facts.kubelet import api_is_away, is_of_another_version, sees_its_runtime
from kubelet_conformance.contracts.facts.pod import API_DELETE, FAULT, MIRROR, is_mirror, may_be_unknown, of
from kubelet_conformance.contracts.facts.sandbox import FINISHED, sandbox_asked
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.trace.format.records import ApiWrite, Deleted, PodChange
from kubelet_conformance.trace.world.kubelet_view import kubelet_view


@contract("STATIC-04", on=static_pods.CREATES_A_MIRROR, needs=(CRI, PODS, EVERY_STATUS))
def pods_of_files_tolerate_no_execute(m: Moment, write: ApiWrite) -> Findings:
    """A static pod from a file tolerates every NoExecute taint; one from a URL does not for that."""
    body = static_pods.body_of(write)
    pod = m.world.names.get(static_pods.name_of(body))
    if pod is None or not pod.static or pod.manifest is None:
        return None
    spec: static_pods.Json = body.get("spec") or {}
    wants: list[static_pods.Json] = spec.get("tolerations") or []
    blanket = any(
        one.get("operator") == "Exists" and one.get("effect") == "NoExecute" and not one.get("key")
        for one in wants
    )
    if pod.source == "file" and not blanket:
        return broken(f"the mirror of {pod.name} does not tolerate NoExecute taints", pod.set_seq)
    return KEPT


@contract("STATIC-11", on=static_pods.CREATES_A_MIRROR, needs=(CRI, PODS, EVERY_STATUS), clause="content")
def mirror_names_hash_and_node(m: Moment, write: ApiWrite) -> Findings:
    """Each static pod gets a mirror pod at the API server, which carries its hash and is owned by
    the node.
    """
    known = static_pods.learn_mirrors(m)
    body = static_pods.body_of(write)
    pod, got = (
        m.world.names.get(static_pods.name_of(body)),
        static_pods.metadata_of(body)["annotations"][MIRROR],
    )
    expected = known.hashes.get(pod.uid) if pod is not None and pod.uid else None
    is_clear = not m.world.nameless(
        *static_pods.name_of(body)
    )  # Else it may be of a version that was edited away.
    if expected is not None and got != expected and is_clear:
        return broken(f"the mirror has hash {got}, its static pod {expected}")
    owners: list[static_pods.Json] = static_pods.metadata_of(body).get("ownerReferences") or []
    if not any(one.get("kind") == "Node" and one.get("controller") for one in owners):
        return broken(f"the mirror of {static_pods.name_of(body)[1]} is not owned by its node")
    return KEPT


@mirror_names_hash_and_node.clause("made", on=call("RunPodSandbox"))
def each_static_pod_gets_a_mirror(m: Moment, pod: Pod) -> Findings:
    """A mirror pod is created when its static pod is started, unless there is one."""
    known, config = static_pods.learn_mirrors(m), sandbox_asked(m)
    if not static_pods.is_static(config) or not pod.born or pod.sandboxes:
        return None
    name = config.metadata.namespace, config.metadata.name
    made = known.latest.pop(name, None)
    if made is not None:
        hash_ = config.annotations.get(static_pods.HASH, "")
        if made[1] < m.node.started_seq and is_of_another_version(m):
            return None
        if made[0] != hash_:
            return broken(f"the mirror has hash {made[0]}, the pod {hash_}", made[1])
        return KEPT
    has_one = pod.mirror_uid or name in known.names.values() or name in known.unanswered
    if has_one or api_is_away(m) or kubelet_view(m).lacks_node:
        return None
    return answered(
        by=static_pods.CREATES_A_MIRROR.where(_is_called(name)),
        within=timing.RETRY + timing.RETRY_SLACK,
        unless=FAULT.either(pod_unset()),
        whole_node=True,
        text=f"a mirror pod of {name[1]} is created",
    )


def _is_called(name: static_pods.FullName) -> Predicate:
    def fits(m: Moment) -> bool:
        return isinstance(m.record, ApiWrite) and static_pods.name_of(static_pods.body_of(m.record)) == name

    return fits


@contract("STATIC-12", on=call("RunPodSandbox"), needs=(CRI, PODS, EVERY_STATUS))
def no_mirror_without_a_node(m: Moment) -> Findings:
    """While the node has no object of its own at the API server, no mirror pod is created."""
    config = sandbox_asked(m)
    if not static_pods.is_static(config) or not kubelet_view(m).node_gone:
        return None
    return answered(
        by=FAULT.either(LIFE_ENDS),
        unless=pod_unset(),
        not_before=static_pods.CREATES_A_MIRROR,
        whole_node=True,
        text="the node's object is there again",
    )


@no_mirror_without_a_node.clause("create", on=static_pods.CREATES_A_MIRROR)
def mirror_has_a_node(m: Moment) -> Findings:
    """No mirror pod is created for a node without an object."""
    return (
        broken("a mirror pod is created for a node without an object") if kubelet_view(m).node_gone else None
    )


@contract("STATIC-13", on=API_DELETE, needs=(CRI, PODS, EVERY_STATUS), clause="request")
def mirror_is_deleted_with_care(m: Moment, write: ApiWrite) -> Findings:
    """A mirror pod that is deleted or out of date is deleted with grace 0 and its UID as a precondition, and
    created again; its static pod's containers are not touched. One whose static pod is gone is deleted with
    grace 0, by its name alone.
    """
    static_pods.learn_mirrors(m)
    pod = static_pods.static_pod_of(m, write.uid or write.precondition or "")
    if pod is None:
        return None
    if write.grace != 0:
        return broken(f"a mirror pod is deleted with grace {write.grace}, expected 0")
    if not write.precondition and pod.wanted and not _has_just_come_back(m, pod):
        return broken("a mirror pod is deleted without its UID as a precondition")
    return KEPT


def _has_just_come_back(m: Moment, pod: Pod) -> bool:
    """The round of housekeeping that deletes the mirror may have begun before the manifest came back."""
    return m.t - pod.back_t <= timing.REACTION


@mirror_is_deleted_with_care.clause("again", on=pod_set().where(is_mirror))
def deleted_mirror_is_replaced(m: Moment, manifest: Manifest) -> Findings:
    """A mirror pod that a client deletes is deleted for good and created again."""
    meta = manifest.metadata
    if meta.deletion_timestamp is None or not sees_its_runtime(m):
        return None
    pod, uid = static_pods.static_pod_of(m, meta.uid), meta.uid
    if pod is None or not pod.wanted or pod.finished or api_is_away(m):
        return None

    def is_this(n: Moment) -> bool:
        return isinstance(n.record, ApiWrite) and uid in {n.record.uid, n.record.precondition}

    return answered(
        by=API_DELETE.where(is_this),
        within=timing.RETRY + timing.RETRY_SLACK,
        unless=FAULT.either(pod_unset(), FINISHED.where(of(pod))),
        not_before=call("StopContainer").where(_unexplained(pod)),
        whole_node=True,
        text=f"the mirror of {pod.name}, which a client deletes, is deleted for good",
    )


def _unexplained(pod: Pod) -> Predicate:
    return lambda m: m.pod is pod and not explained(m)


@mirror_is_deleted_with_care.clause("made-again", on=deleted())
def gone_mirror_is_made_again(m: Moment, pod: Pod) -> Findings:
    """A new mirror pod is created when the old one is gone."""
    if not pod.static or not pod.wanted or pod.finished or pod.termination is not None:
        return None
    if api_is_away(m) or not sees_its_runtime(m):
        return None
    return answered(
        by=static_pods.CREATES_A_MIRROR.where(_is_called((pod.namespace, pod.name))),
        # Where nothing else wakes its worker, the next resync does.
        within=90.0 + timing.RETRY_SLACK,
        unless=FAULT.either(pod_unset(), FINISHED.where(of(pod))),
        not_before=call("StopContainer").where(_unexplained(pod)),
        whole_node=True,
        text=f"a mirror pod of {pod.name} is created again",
    )


@contract(
    "STATIC-15", on=deleted(), needs=(CRI, PODS, STORED_STATUS), versions=since("1.22"), clause="not-before"
)
def mirror_outlives_its_containers(m: Moment, pod: Pod) -> Findings:
    """A mirror pod whose manifest is gone is deleted, but not before the static pod has ended."""
    if not pod.static or pod.termination is None or pod.wanted or not pod.born:
        return None
    if getattr(m.record, "uid", "") in pod.note(_ToGo).uids:
        return None  # Another client had it deleted.
    if pod.note(_MissedRemovals).of or may_be_unknown(pod, m.node):
        return None
    running = [c for c in pod.every_container() if c.state == "running"]
    if running:
        text = f"the mirror of {pod.name} is gone while {running[0].name} runs"
        return broken(text, pod.termination.seq, running[0].started_seq)
    return KEPT


@mirror_outlives_its_containers.clause("goes", on=done("StopPodSandbox"))
def orphaned_mirror_goes(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """The mirror pod is deleted soon after the static pod has ended."""
    if not pod.static or pod.wanted or not pod.mirror_uid or sandbox is not pod.sandbox:
        return None
    if sandbox.died_t is not None or any(s.is_done for s in sandbox.stops):
        return None  # It was stopped before, and the mirror may have been deleted since.
    if pod.mirror_uid == pod.note(_ToGo).gone:
        return None  # A kubelet that never received the pod deletes its mirror first.
    if m.world.names.get((pod.namespace, pod.name)) is not pod or not sees_its_runtime(m):
        return None
    if any(c.state == "running" for c in pod.every_container()) or api_is_away(m):
        return None
    return answered(
        by=deleted().where(lambda n: n.pod is pod or _is_mirror_of(pod, n)),
        within=timing.HOUSEKEEPING + timing.REACTION + timing.RETRY,
        unless=FAULT.either(pod_set()),
        whole_node=True,
        text=f"the mirror of {pod.name} is deleted",
    )


def _is_mirror_of(pod: Pod, m: Moment) -> bool:
    """The deleted object is the pod's mirror, even where nothing else is left of the pod."""
    return isinstance(m.record, Deleted) and m.record.uid == pod.mirror_uid


class _ToGo(Note):
    """The mirrors of a static pod whose deletion a client asked for, and the one that is gone, by UID."""

    uids: set[str] = set()
    gone: str = ""


@observer(on=deleted(), last=True)
def _mirror_is_gone(m: Moment, pod: Pod) -> None:
    """Record that the mirror is gone."""
    if isinstance(m.record, Deleted) and pod.static:
        pod.note(_ToGo).gone = m.record.uid


@observer(on=static_pods.MIRROR_IS_TO_GO, last=True)
def _mirror_is_to_go(m: Moment) -> None:
    """Record deletions that are not the kubelet's."""
    uid = m.manifest.metadata.uid if m.manifest is not None else ""
    pod = static_pods.static_pod_of(m, uid)
    if pod is not None:
        pod.note(_ToGo).uids.add(uid)


class _MissedRemovals(Note):
    """The pod was removed while a source was silent: its worker is informed once that source has sent."""

    of: bool = False


@observer(on=pod_unset())
def _removal_is_missed(m: Moment, pod: Pod) -> None:
    """Record removals that no worker is informed of."""
    if api_is_away(m):
        pod.note(_MissedRemovals).of = True


@contract("STATIC-16", on=status(), needs=(CRI, PODS, STORED_STATUS))
def status_goes_to_the_mirror(m: Moment, pod: Pod) -> Findings:
    """The status of a static pod is written to its mirror, under the mirror's UID."""
    uid = getattr(m.record, "uid", "")
    if not pod.static or not pod.uid:
        return None
    return broken(f"a status of static pod {pod.name} carries its own UID") if uid == pod.uid else KEPT


@status_goes_to_the_mirror.clause("patch", on=static_pods.API_WRITE)
def status_patch_names_the_mirror(m: Moment, write: ApiWrite) -> Findings:
    """No write of a status names the static pod's own UID."""
    if write.subresource != "status" or write.resource != "pods":
        return None
    pod = m.world.pods.get(write.precondition or write.uid)
    if pod is None or not pod.static:
        return None
    return broken(f"the status of static pod {pod.name} is written under its own UID")


@status_goes_to_the_mirror.clause("each", on=static_pods.CREATES_A_MIRROR)
def each_mirror_gets_the_status(m: Moment, write: ApiWrite) -> Findings:
    """Each new mirror gets the status, and not only the first one."""
    if write.code != static_pods.CREATED or not write.uid:
        return None
    uid, name = write.uid, static_pods.name_of(static_pods.body_of(write))
    pod = m.world.names.get(name)
    if pod is None or any(version is not pod for version in m.world.nameless(*name)):
        return None  # The manifest that it shows may be gone, and with it the status.
    changes = pod_unset().either(pod_set().where(lambda n: not is_mirror(n)))
    if pod.restart_policy != "Always":
        # What ended in the mirror before may forbid the status until there are new records (STATUS-10).
        changes = changes.either(static_pods.HOLDS_UP.where(of(pod)))

    def names_it(n: Moment) -> bool:
        wrote = n.record
        return getattr(wrote, "uid", "") == uid and not (
            isinstance(wrote, ApiWrite) and wrote.verb == "create"
        )

    return answered(
        by=static_pods.API_WRITE.either(status()).where(names_it),
        within=timing.STATUS_BATCH + timing.REACTION,
        unless=FAULT.either(changes),
        whole_node=True,
        text="the status is written to the new mirror",
    )


@contract("STATIC-17", on=FINISHED, needs=(CRI, PODS, EVERY_STATUS))
def finished_static_pod_keeps_its_mirror(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """A static pod that has finished keeps its mirror as long as its manifest is there."""
    if not pod.static or not pod.wanted or not status.terminal:
        return None
    if pod.finished or pod.termination is not None:
        return None

    def is_its_mirror(n: Moment) -> bool:
        record = n.record
        return isinstance(record, ApiWrite) and pod.mirror_uid in {record.uid, record.precondition}

    def is_its_manifest(n: Moment) -> bool:
        return (isinstance(n.record, PodChange) and n.record.source == pod.source) or is_mirror(n)

    return answered(
        by=LIFE_ENDS,
        unless=pod_unset().either(pod_set()).where(is_its_manifest),
        not_before=API_DELETE.where(is_its_mirror),
        whole_node=True,
        text=f"{pod.name} keeps its mirror",
    )
