"""STATIC: name and UID of a static pod, and what the annotations of its sandbox say."""

from typing import Any

import msgspec
from msgspec import field

from kubelet_conformance.contract import Manifest, Moment, Note, Pod, PodStatus
from kubelet_conformance.contract.applicability import CRI, PODS, STORED_STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, expects, pod_set, pod_unset, status
from kubelet_conformance.contracts.facts import static_pod as static_pods
from kubelet_conformance.contracts.facts.kubelet import is_of_another_version, sees_its_runtime
from kubelet_conformance.contracts.facts.pod import FAULT, may_not_refer, of
from kubelet_conformance.contracts.facts.sandbox import sandbox_asked
from kubelet_conformance.contracts.facts.status import may_be_older
from kubelet_conformance.contracts.facts.timing import FILE_POLL, REACTION, RETRY, RETRY_SLACK
from kubelet_conformance.contracts.runtime.expected import as_expected
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.trace.format.records import Expect, PodChange
from kubelet_conformance.trace.world.in_flight import since_when_at_work
from kubelet_conformance.trace.world.kubelet_view import informed_by
from kubelet_conformance.trace.world.views import Latest


@contract("STATIC-01", on=call("RunPodSandbox"), needs=(CRI, PODS))
def static_pod_is_named_after_its_node(m: Moment) -> Findings:
    """A static pod is called <manifest's name>-<node's name in lower case>, in namespace default unless its
    manifest says otherwise.
    """
    config, node = sandbox_asked(m), m.header.node
    if not static_pods.is_static(config) or not node or m.world.node_is_another:
        return None
    name = config.metadata.name
    if not name.endswith(f"-{node.lower()}"):
        return broken(f"static pod {name} is not named after its node {node}")
    return KEPT if m.pod is not None and m.pod.static else None


class _Version:
    """The manifest that a static pod's name stands for now."""

    def __init__(self, content: Any, before: str, t: float, seq: int) -> None:  # noqa: ANN401 - a JSON value
        self.content = content
        self.uid = ""
        """The name of its sandbox."""
        self.before = before
        """The UID under the manifest before it."""
        self.t = t
        self.seq = seq
        self.life = 0
        """The kubelet instance that gave the UIDs, where it is of another version than the one before."""


class _Versions(Note):
    """By namespace and name."""

    now: Latest[static_pods.FullName, _Version] = field(
        default_factory=Latest[static_pods.FullName, _Version]
    )


@contract("STATIC-02", on=call("RunPodSandbox"), needs=(CRI, PODS), clause="uid")
def uid_follows_the_content(m: Moment) -> Findings:
    """A static pod without a UID of its own gets one that follows from its content: another one with each
    edit, and the same one as long as nothing is edited.
    """
    config = sandbox_asked(m)
    meta = config.metadata
    version = m.node.note(_Versions).now.get((meta.namespace, meta.name))
    if version is None or not static_pods.is_static(config):
        return None
    if is_of_another_version(m) and version.life != m.node.lives:
        version.life, version.uid, version.before = m.node.lives, "", ""  # It is computed otherwise.
    set_seq = m.pod.set_seq if m.pod is not None and not m.pod.wanted else 0
    if meta.uid != version.before and 0 < set_seq < version.seq:
        version.before = meta.uid  # The kubelet was delayed, and runs the version before the edit.
        return None
    if version.uid and version.uid != meta.uid:
        text = f"static pod {meta.name} has UID {meta.uid} now, and was {version.uid} with the same manifest"
        return broken(text, version.seq)
    if meta.uid == version.before:
        # What was in progress for the old version may come just after the edit is received.
        begun_t = m.t if m.pod is None else since_when_at_work(m.pod, m.t)
        edited = begun_t - informed_by(m, version.t) >= REACTION
        return broken(f"{meta.name} keeps its UID {meta.uid} though edited", version.seq) if edited else None
    again, version.uid = bool(version.uid), meta.uid
    return KEPT if again or version.before else None


@observer(on=pod_set().either(pod_unset()))
def _manifest_is_sent(m: Moment) -> None:
    """Record manifests."""
    name = static_pods.sent_static(m)
    if name is None or not isinstance(m.record, PodChange):
        return
    versions = m.node.note(_Versions).now
    if m.manifest is None or m.manifest.metadata.uid:
        versions.pop(name, None)
        return
    content, old = msgspec.json.decode(m.record.pod), versions.get(name)
    if old is None or old.content != content:
        versions[name] = _Version(content, (old.uid or old.before) if old is not None else "", m.t, m.seq)


@uid_follows_the_content.clause("edit", on=pod_set())
def edited_pod_is_another_pod(m: Moment, manifest: Manifest) -> Findings:
    """An edit ends the old pod and starts another one."""
    old, name = m.replaced, static_pods.sent_static(m)
    if old is None or name is None or manifest.metadata.uid or old.spec is None:
        return None
    if not any(c.state == "running" for c in old.every_container()) or not sees_its_runtime(m):
        return None
    if any(not hook.end_t for c in old.every_container() for hook in c.hooks):
        return None
    if m.pod is not None and m.pod.restart_policy != "Always" and m.pod.sandboxes:
        return None  # An earlier version comes again, and may have ended for good.
    uid = old.uid

    def is_new(n: Moment) -> bool:
        meta = sandbox_asked(n).metadata
        return (meta.namespace, meta.name) == name and meta.uid != uid

    def is_sent_again(n: Moment) -> bool:
        return static_pods.sent_static(n) == name

    return answered(
        by=call("RunPodSandbox").where(is_new),
        within=FILE_POLL + old.spec.grace_seconds + 2 * (RETRY + RETRY_SLACK),
        unless=FAULT.either(
            pod_set().where(is_sent_again),
            pod_unset().where(is_sent_again),
            static_pods.HOLDS_UP.where(of(old)),
        ),
        not_before=call("CreateContainer")
        .where(of(old))
        .where(lambda n: since_when_at_work(old, n.t) - m.t > REACTION),
        whole_node=True,
        text=f"another sandbox is run for the edited pod {name[1]}",
    )


@contract("STATIC-03", on=call("RunPodSandbox"), needs=(CRI, PODS))
def sandbox_shows_the_source_of_its_pod(m: Moment, pod: Pod) -> Findings:
    """A pod's sandbox is annotated with the pod's source and the time it was first seen; a static pod's also
    with the hash of its manifest, which is its UID where the manifest has none.
    """
    config = sandbox_asked(m)
    if not pod.source or pod.manifest is None:
        return None
    found = config.annotations
    wrong = ""
    if found.get(static_pods.SOURCE) != pod.source:
        wrong = f"{static_pods.SOURCE} is {found.get(static_pods.SOURCE)!r}, expected {pod.source}"
    elif not found.get(static_pods.SEEN):
        wrong = f"there is no {static_pods.SEEN}"
    elif bool(found.get(static_pods.HASH)) is not pod.static:
        wrong = f"{static_pods.HASH} is {found.get(static_pods.HASH)!r}"
    elif pod.static and not pod.manifest.metadata.uid and found[static_pods.HASH] != config.metadata.uid:
        wrong = f"{static_pods.HASH} is {found[static_pods.HASH]}, the UID {config.metadata.uid}"
    return broken(wrong, pod.set_seq) if wrong else KEPT


@contract("STATIC-05", on=status(), needs=(CRI, PODS, STORED_STATUS))
def static_pod_is_pending_at_first(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """The first status of a static pod none of whose app containers was started has phase Pending."""
    if not pod.static or not pod.born or pod.status is not None or may_be_older(m, pod):
        return None
    # A start that failed may have taken place.
    if any(c.started_t is not None or c.start is not None for c in pod.of_kind("app")):
        return None
    if any(c.ended for c in pod.of_kind("init")):
        return None  # The pod may have failed before there was a mirror to write that to.
    return KEPT if status.phase == "Pending" else broken(f"the first phase is {status.phase!r}")


@contract("STATIC-06", on=call("RunPodSandbox"), needs=(CRI, PODS))
def only_manifests_make_static_pods(m: Moment) -> Findings:
    """A static pod is run only for a manifest that counts: hidden files and subfolders do not."""
    config, pod = sandbox_asked(m), m.pod
    if not static_pods.is_static(config) or not m.header.from_start:
        return None
    meta = config.metadata
    gone_t = m.node.note(_Gone).t.get((meta.namespace, meta.name))
    if pod is not None and pod.set_t is not None:
        is_gone = pod.termination is not None and pod.termination.t == gone_t
        if pod.wanted or pod.sandboxes or not is_gone:
            return KEPT
    if gone_t is not None and m.t <= informed_by(m, gone_t) + REACTION:
        return None  # Its kubelet has not received the removal.
    return broken(f"static pod {config.metadata.name} is run, and no manifest that counts holds it")


class _Gone(Note):
    """When static pods were removed from their source, by namespace and name."""

    t: Latest[static_pods.FullName, float] = field(default_factory=Latest[static_pods.FullName, float])


@observer(on=pod_unset())
def _manifest_goes(m: Moment) -> None:
    """Record removals."""
    name = static_pods.sent_static(m)
    if name is not None:
        m.node.note(_Gone).t[name] = m.t


@contract("STATIC-22", on=pod_set(), needs=(CRI, PODS), versions=since("1.32"))
def manifest_with_claims_is_refused(m: Moment) -> Findings:
    """A manifest with resource claims is refused, from 1.34 on one that refers to any object of the API."""
    name = static_pods.sent_static(m)
    if name is None or not isinstance(m.record, PodChange):
        return None
    refers = m.manifest is not None and may_not_refer(m, m.manifest)
    if not refers and b'"resourceClaims"' not in bytes(m.record.pod):
        return None

    def is_run(n: Moment) -> bool:
        meta = sandbox_asked(n).metadata
        return (meta.namespace, meta.name) == name

    return answered(
        by=LIFE_ENDS.either(pod_unset().where(lambda n: static_pods.sent_static(n) == name)),
        not_before=call("RunPodSandbox").where(is_run),
        whole_node=True,
        text=f"pod {name[1]} is not run",
    )


@contract("STATIC-26", on=expects("STATIC-26"), needs=(PODS,))
def invalid_manifest_is_not_run(m: Moment, expect: Expect) -> Findings:
    """Of the manifests that a scenario writes those that the API allows are run, and no others."""
    return as_expected(m, expect)
