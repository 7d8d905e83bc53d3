"""Rules of the house, in an area of their own."""

from kubelet_conformance.contract import (
    CRI,
    KEPT,
    PODS,
    Findings,
    Moment,
    Pod,
    bodies,
    broken,
    call,
    contract,
)


@contract(
    "TOY-1", on=call("RunPodSandbox"), needs=(CRI, PODS), level="MUST", source="operations handbook, 3.1"
)
def logs_are_found_by_uid(m: Moment, pod: Pod) -> Findings:
    """The name of a pod's log directory ends with the pod's UID, by which the log shipper finds it."""
    folder = m.request(bodies.RunPodSandboxRequest).config.log_directory
    if not folder.endswith(f"_{pod.uid}"):
        return broken(f"expected a log directory that ends with _{pod.uid}, got {folder!r}")
    return KEPT
