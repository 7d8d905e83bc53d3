"""Rules of the house, in an area of their own."""

from string import hexdigits

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
    done,
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


@contract(
    "TOY-2",
    on=done("RunPodSandbox"),
    needs=(CRI,),
    level="MUST",
    binds="runtime",
    source="operations handbook, 3.2",
)
def sandbox_ids_are_file_names(m: Moment) -> Findings:
    """The id of a sandbox has only hexadecimal digits, as the log shipper names files by it."""
    name = m.response(bodies.RunPodSandboxReply).pod_sandbox_id
    if not set(name) <= set(hexdigits):
        return broken(f"expected hexadecimal digits, got {name!r}")
    return KEPT
