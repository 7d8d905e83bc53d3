"""CONFIG: manifest URLs, mirror pods in snapshots, silent sources, and pods that come back."""

from collections.abc import Iterator

from msgspec import field

from kubelet_conformance.contract import Finding, Manifest, Moment, Note, Pattern, Pod
from kubelet_conformance.contract.applicability import CRI, PODS, ByVersion, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import (
    call,
    done,
    exited,
    kubelet,
    pod_set,
    pod_unset,
    sandbox_died,
)
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.kills import explained, to_be_explained
from kubelet_conformance.contracts.facts.sandbox import sandbox_asked
from kubelet_conformance.contracts.facts.static_pod import is_sent_for, sent_static
from kubelet_conformance.contracts.facts.timing import FILE_POLL, KUBELET_START, REACTION, RETRY, RETRY_SLACK
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.trace.format.records import PodChange
from kubelet_conformance.trace.world.kubelet_view import kubelet_view
from kubelet_conformance.trace.world.views import Latest

_READING = 1.0
"""How long one reading of the manifest URL takes."""
_NOTICED = FILE_POLL + REACTION
"""The kubelet has read the URL again after this."""


class _Url(Note):
    """What the manifest URL answers now, where the answer has no pods."""

    t: float | None = None
    seq: int = 0


_ANSWER = Pattern(frozenset({"http"}))


@contract("CONFIG-13", on=call("StopContainer"), needs=(CRI, PODS), clause="kept")
def bad_answer_of_the_url_changes_nothing(m: Moment, pod: Pod) -> Findings:
    """An answer of the manifest URL that cannot be used, or equals the last one, leaves its pods
    running.
    """
    url = m.node.note(_Url)
    if pod.source != "http" or url.t is None or explained(m):
        return None
    return to_be_explained(m, f"there is a reason to stop {pod.name} after an answer that changes nothing")


@bad_answer_of_the_url_changes_nothing.clause("runs-on", on=_ANSWER.either(LIFE_ENDS))
def pods_of_the_url_run_on(m: Moment) -> Findings:
    """The pods of the URL have run on for longer than it takes to read it."""
    url = m.node.note(_Url)
    long = url.t is not None and m.t - url.t > FILE_POLL + _READING
    if m.keys[0] == "http":
        url.t, url.seq = m.t, m.seq
    if not long:
        return None
    every = m.world.containers.values()
    runs = any(c.state == "running" and c.pod and c.pod.source == "http" and c.pod.wanted for c in every)
    return KEPT if runs else None


@observer(on=pod_set().either(pod_unset()))
def _answer_is_about_pods(m: Moment) -> None:
    """Pods that change show that the answer can be used."""
    if isinstance(m.record, PodChange) and m.record.source == "http":
        m.node.note(_Url).t = None


@contract("CONFIG-14", on=pods.NEW_STATIC_POD, needs=(CRI, PODS))
def every_pod_of_a_list_runs(m: Moment) -> Findings:
    """A manifest URL may answer with one pod or a list of pods: every one of them is started."""
    pod = pods.new_pod(m)
    if pod is None or pod.source != "http" or not pods.can_start(m, pod) or pods.host_ports(m):
        return None
    return pods.starts(pod, _NOTICED, f"pod {pod.name} of the manifest URL is started")


judges_waits(every_pod_of_a_list_runs)


@contract("CONFIG-15", on=pod_set(), needs=(CRI, PODS))
def mirror_is_not_run(m: Moment, manifest: Manifest) -> Findings:
    """A change of a mirror pod starts nothing of its own."""
    if not pods.is_mirror(m) or not m.node.kubelet_up:
        return None
    uid = manifest.metadata.uid
    return answered(
        by=LIFE_ENDS,
        unless=pod_set().where(lambda n: n.manifest is not None and n.manifest.metadata.uid == uid),
        not_before=call("RunPodSandbox").where(lambda n: sandbox_asked(n).metadata.uid == uid),
        whole_node=True,
        text=f"no sandbox is run for mirror pod {manifest.metadata.name}",
    )


@contract("CONFIG-12", on=pods.API_BACK, needs=(CRI, PODS), clause="kept")
def outage_removes_no_pod(m: Moment) -> Findings:
    """While the API server cannot be reached its last snapshot stays in force: no pod is killed for that."""
    away, started = m.node.note(_Away).t, m.node.started_t
    if away is None or m.t - away < KUBELET_START or not m.node.kubelet_up or started is None:
        return None
    if started > away:
        return None
    every = m.world.containers.values()
    runs = (c for c in every if c.state == "running" and c.started_t is not None and c.started_t < away)
    return KEPT if any(c.pod is not None and c.pod.source == "api" for c in runs) else None


class _Away(Note):
    """Since when the API server has been away, its return included."""

    t: float | None = None


@outage_removes_no_pod.clause("no-kill", on=call("StopContainer"))
def pod_is_not_killed_in_an_outage(m: Moment, pod: Pod) -> Findings:
    """No container is stopped because the API server is away."""
    known = kubelet_view(m)
    if pod.source != "api" or known.api_away_t is None or explained(m):
        return None
    return to_be_explained(m, f"there is a reason to stop {pod.name} while the API server cannot be reached")


@observer(on=pods.FAULT, last=True)
def _reach_changes(m: Moment) -> None:
    """Record whether the API server can be reached."""
    m.node.note(_Away).t = kubelet_view(m).api_away_t


_FORGOTTEN_ONES_GO = ByVersion({"<=1.21": True, ">=1.27": True})
"""Housekeeping ends a worker that was not informed of its pod's removal (WORK-27)."""


class _Deferred(Note):
    """Static pods that were removed before every source had sent."""

    pods: list[Pod] = []


@contract("CONFIG-17", on=pod_unset(), needs=(CRI, PODS), clause="waits")
def kill_waits_for_all_sources(m: Moment, pod: Pod) -> Findings:
    """A pod that leaves its source before a kubelet that starts has received every source is killed, but
    only then.
    """
    known, node = kubelet_view(m), m.node
    if sent_static(m) is None or not pod.static or known.api_away_t is None:
        return None
    if not node.kubelet_up or node.started_t is None or known.api_away_t > node.started_t:
        return None
    if not any(c.state == "running" and c.born for c in pod.every_container()):
        return None
    node.note(_Deferred).pods.append(pod)
    return answered(
        by=pods.API_BACK,
        not_before=call("StopContainer", "StopPodSandbox").where(pods.of(pod)),
        unless=pod_set()
        .where(is_sent_for(pod))
        .either(exited().where(pods.of(pod)), sandbox_died().where(pods.of(pod))),  # It may end on its own.
        whole_node=True,
        text=f"the API server has sent its pods, and {pod.name} stays until then,",
    )


@kill_waits_for_all_sources.clause("comes", on=pods.API_BACK)
def deferred_kill_comes(m: Moment) -> Iterator[Finding]:
    """The pod is killed when every source has sent."""
    deferred = m.node.note(_Deferred)
    held, deferred.pods = deferred.pods, []
    if not _FORGOTTEN_ONES_GO.get(m.kubernetes):
        return
    for pod in held:
        for container in pod.every_container():
            if container.state == "running" and not pod.wanted and not container.stopping:
                yield answered(
                    by=call("StopContainer").where(pods.about(container)),
                    within=KUBELET_START + RETRY,
                    unless=pods.FAULT.either(
                        pod_set().where(is_sent_for(pod)), exited().where(pods.about(container))
                    ),
                    whole_node=True,
                    text=f"container {container.name} of {pod.name}, which left its source, is stopped",
                )


@observer(on=kubelet("started"))
def _another_kubelet_starts(m: Moment) -> None:
    """A kubelet that starts does not receive pods that are gone."""
    m.node.note(_Deferred).pods = []


class _Again(Note):
    """Static pods that come back, under the same UID, while they are being terminated."""

    uids: Latest[str, int] = field(default_factory=Latest[str, int])


@contract("WORK-22", on=call("RunPodSandbox"), needs=(CRI, PODS), versions=since("1.23"), clause="after")
def pod_comes_again_after_its_end(m: Moment, pod: Pod) -> Findings:
    """A static pod that comes back, under the same UID, while it is being terminated is started again
    once the old one has ended, and not before.
    """
    again = m.node.note(_Again).uids
    if pod.uid not in again:
        return None
    if any(c.state == "running" for c in pod.every_container()):
        return broken(f"{pod.name} is started again while its old containers run", again[pod.uid])
    if any(s.state == "ready" and not s.stopped for s in pod.sandboxes):
        return broken(f"{pod.name} is started again before its old sandbox was stopped", again[pod.uid])
    del again[pod.uid]
    return KEPT


@pod_comes_again_after_its_end.clause("comes", on=done("StopPodSandbox"))
def pod_comes_again(m: Moment, pod: Pod) -> Findings:
    """The new instance is started soon after the old one has ended."""
    if pod.uid not in m.node.note(_Again).uids or m.sandbox is not pod.sandbox:
        return None
    if any(c.state == "running" and c.sandbox is not m.sandbox for c in pod.every_container()):
        return None
    return answered(
        by=call("RunPodSandbox").where(pods.of(pod)),
        within=RETRY + RETRY_SLACK,
        unless=pods.FAULT.either(pod_unset().where(is_sent_for(pod))),
        whole_node=True,
        text=f"{pod.name}, which came back, is started again",
    )


@observer(on=pod_set().either(pod_unset(), kubelet("started")))
def _wanted_again(m: Moment) -> None:
    """Record which pods come back."""
    again, pod = m.node.note(_Again).uids, m.pod
    if m.keys[0] == "kubelet:started":
        again.clear()
    elif pod is None or not pod.static or not pod.uid or pod.finished:
        return
    elif m.manifest is None:
        again.pop(pod.uid, None)
    elif pod.termination is not None and not pod.wanted and _ends_under(pod, m):
        again[pod.uid] = m.seq


def _ends_under(pod: Pod, m: Moment) -> bool:
    """The pod that is sent has the UID of one whose containers still run."""
    running = any(c.state == "running" for c in pod.every_container())
    return running and m.node.kubelet_up and m.manifest is not None and m.manifest.metadata.uid == pod.uid


@contract("CONFIG-18", on=pod_set(), needs=(CRI, PODS), versions=since("1.23"))
def same_uid_comes_again(m: Moment, pod: Pod, manifest: Manifest) -> Findings:
    """A pod whose UID comes back to its source while the pod is being terminated ends first: nothing of it is
    started again in its old sandbox.
    """
    if not pod.static or pod.wanted or pod.termination is None:
        return None
    if not pod.uid or manifest.metadata.uid != pod.uid or not m.node.kubelet_up:
        return None
    sandbox = pod.sandbox
    if sandbox is None or not any(c.state == "running" for c in pod.every_container()):
        return None
    return answered(
        by=done("StopPodSandbox").where(lambda n: n.sandbox is sandbox),
        not_before=call("CreateContainer", "StartContainer").where(lambda n: n.sandbox is sandbox),
        unless=pods.FAULT,
        whole_node=True,
        text=f"the old sandbox of {pod.name} is stopped",
    )
