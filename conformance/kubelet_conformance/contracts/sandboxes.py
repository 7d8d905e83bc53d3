"""Sandboxes of a pod: which ones stand, why the newest is replaced, and what keeps a kubelet from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.contract.words import call, deleted, done, failed, pod_set, pod_unset, status
from kubelet_conformance.trace.bodies import RunPodSandboxRequest, StatusReply

if TYPE_CHECKING:
    from kubelet_conformance.contract.words import Pattern
    from kubelet_conformance.trace.manifests import Metadata
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Pod, Sandbox

__all__ = (
    "BLIND",
    "FINISHED",
    "GONE",
    "NOT_READY",
    "asked_sandbox",
    "full_names",
    "network_mode",
    "run_of",
    "runs_containers",
    "standing",
    "wants_to_run",
    "why_replaced",
)

BLIND: Pattern = failed("ListPodSandbox", "ListContainers")
"""The kubelet cannot see what is at the runtime."""


def _not_ready(m: Moment) -> bool:
    reply = m.response(StatusReply).status
    return reply is None or not all(condition.status for condition in reply.conditions)


NOT_READY: Pattern = failed("Status").either(done("Status").where(_not_ready, "runtime or network not ready"))
"""The runtime says that it, or the pod network, is not ready."""
FINISHED: Pattern = status().where(lambda m: m.status is not None and m.status.terminal, "it is terminal")
"""A terminal phase is written: the pod is rejected, evicted or done."""


def _goes(m: Moment) -> bool:
    return m.manifest is not None and m.manifest.metadata.deletion_timestamp is not None


GONE: Pattern = pod_set().where(_goes, "it is being deleted").either(pod_unset(), deleted(), FINISHED)
"""Nobody wants the pod to run any more."""


def asked_sandbox(m: Moment) -> RunPodSandboxRequest:
    """What a RunPodSandbox asks for."""
    return m.request(RunPodSandboxRequest)


def full_names(meta: Metadata, node: str | None) -> tuple[tuple[str, str], ...]:
    """The namespace and the names that this pod may have; static pods are called <name>-<node>."""
    namespace = meta.namespace or "default"
    return (namespace, meta.name), (namespace, f"{meta.name}-{(node or '').lower()}")


def run_of(meta: Metadata, node: str | None) -> Pattern:
    """A RunPodSandbox for the pod with this metadata."""
    names = full_names(meta, node)

    def fits(m: Moment) -> bool:
        asked = asked_sandbox(m).config.metadata
        return (asked.namespace, asked.name) in names

    return call("RunPodSandbox").where(fits, f"it is for {meta.name}")


def standing(pod: Pod) -> list[Sandbox]:
    """The sandboxes that the runtime still has, oldest first."""
    return [sandbox for sandbox in pod.sandboxes if sandbox.state != "removed"]


def network_mode(pod: Pod) -> str:
    """The network namespace that the manifest asks for."""
    return "NODE" if pod.spec is not None and pod.spec.host_network else "POD"


def runs_containers(pod: Pod) -> bool:
    """Some container of it runs, as far as the trace tells."""
    return any(container.state == "running" for container in pod.every_container())


def wants_to_run(pod: Pod) -> bool:
    """It always restarts, was born in the trace, is wanted, and nobody asked it to go."""
    alive = pod.born and pod.wanted and pod.termination is None and not pod.finished
    return alive and pod.spec is not None and pod.restart_policy == "Always"


def why_replaced(pod: Pod) -> str | None:
    """Why the pod needs another sandbox than those that stand; None where it needs none (27.1)."""
    stand = standing(pod)
    if not stand:
        return "it has none"
    newest = stand[-1]
    if newest.state != "ready":
        return "the newest is not ready"
    if sum(sandbox.state == "ready" for sandbox in stand) > 1:
        return "more than one is ready"
    config, record = newest.config, newest.record
    if config is not None and config.linux.security_context.namespace_options.network != network_mode(pod):
        return "its network namespace is another one"
    if network_mode(pod) == "POD" and record is not None and record.network and not record.network.ip:
        return "it has no IP"
    return None
