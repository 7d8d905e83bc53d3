"""SANDBOX: when a pod sandbox is made, replaced and stopped, and what it is asked to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.contract.frame import KEPT, answered, broken, contract
from kubelet_conformance.contract.needs import CRI, PODS
from kubelet_conformance.contract.words import call, failed
from kubelet_conformance.contracts.situations import TERMINATION_ASKED, to_run
from kubelet_conformance.contracts.timing import RETRY, RETRY_SLACK
from kubelet_conformance.trace.bodies import RunPodSandboxRequest

if TYPE_CHECKING:
    from kubelet_conformance.contract.frame import Findings
    from kubelet_conformance.trace.moment import Moment


@contract("SANDBOX-01", on=call("RunPodSandbox"))
def first_sandbox_is_attempt_zero(m: Moment) -> Findings:
    """The first sandbox of a new pod names the pod (name, namespace, UID) and is attempt 0."""
    pod = m.pod
    if pod is None or not pod.born or pod.sandboxes:
        return None
    meta = m.request(RunPodSandboxRequest).config.metadata
    if meta.attempt != 0:
        return broken(f"the first sandbox of {pod.name} is attempt {meta.attempt}, expected 0", pod.set_seq)
    if pod.manifest is not None and (meta.name, meta.namespace) != (pod.name, pod.namespace):
        return broken(
            f"the sandbox is called {meta.namespace}/{meta.name}, the pod {pod.namespace}/{pod.name}"
        )
    return KEPT


@contract("SANDBOX-04", on=call("RunPodSandbox"))
def old_sandbox_is_stopped_first(m: Moment) -> Findings:
    """Before a replacement is run, every container of the pod has been stopped and StopPodSandbox has succeeded
    for every known sandbox of the pod, those that are not ready included.
    """
    pod = m.pod
    if pod is None or not pod.born:
        return None
    standing = [sandbox for sandbox in pod.sandboxes if sandbox.state != "removed"]
    if not standing:
        return None
    for sandbox in standing:
        run_seq = sandbox.run.seq if sandbox.run else None
        if not sandbox.stopped:
            return broken(f"sandbox {sandbox.id[:12]} was not stopped before another one was run", run_seq)
    for container in pod.every_container():
        if container.state == "running" and container.start:
            return broken(f"container {container.name} still runs in the old sandbox", container.start.seq)
    return KEPT


@contract("SANDBOX-10", on=failed("RunPodSandbox"), needs=(CRI, PODS))
def failed_sandbox_is_retried(m: Moment) -> Findings:
    """A sandbox that could not be run is tried again within 16 s for as long as the pod is wanted."""
    if not to_run(m):
        return None
    return answered(
        by=call("RunPodSandbox"),
        within=RETRY + RETRY_SLACK,
        unless=TERMINATION_ASKED,
        text="RunPodSandbox is tried again",
    )
