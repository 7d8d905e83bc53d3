"""STATIC: a folder of manifests that is missing."""

from collections.abc import Iterator

from kubelet_conformance.contract import Finding, Moment
from kubelet_conformance.contract.applicability import CRI, PODS
from kubelet_conformance.contract.definition import Findings, answered, contract
from kubelet_conformance.contract.patterns import call, exited, kubelet, pod_set
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.timing import FILE_POLL, KUBELET_START, REACTION
from kubelet_conformance.trace.world.kubelet_view import kubelet_view


@contract("STATIC-08", on=kubelet("started"), needs=(CRI, PODS), clause="seen")
def missing_folder_counts_as_seen(m: Moment) -> Iterator[Finding]:
    """A missing folder of manifests counts as an empty one: housekeeping runs and kills containers of pods
    that no source has.
    """
    known = kubelet_view(m)
    if not known.missing or known.api_away_t is not None or known.lacks_node:
        return
    for container in m.world.containers.values():
        pod = container.pod
        if pod is None or pod.wanted or not container.born or container.state != "running":
            continue
        yield answered(
            by=call("StopContainer").where(pods.about(container)),
            within=KUBELET_START,
            unless=pods.FAULT.either(exited().where(pods.about(container)), pod_set().where(pods.of(pod))),
            whole_node=True,
            text=f"container {container.name}, whose pod no source has, is stopped",
        )


@missing_folder_counts_as_seen.clause("picked-up", on=pods.NEW_STATIC_POD)
def folder_that_appears_is_read(m: Moment) -> Findings:
    """Once the folder appears its manifests are run, within the time in which it is listed."""
    pod, made_t = pods.new_pod(m), kubelet_view(m).made_t
    if pod is None or pod.source != "file" or made_t is None or m.t - made_t > FILE_POLL:
        return None
    if not pods.can_start_once_received(m, pod) or pods.host_ports(m):
        return None
    return pods.starts(pod, FILE_POLL + REACTION, f"static pod {pod.name} is started")
