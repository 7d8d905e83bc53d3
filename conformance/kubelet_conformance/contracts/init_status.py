"""INIT: how init containers show in a pod's status."""

from __future__ import annotations

from collections.abc import Iterator

from kubelet_conformance.contract import Container, ContainerStatus, Exit, Moment, Pod, PodStatus
from kubelet_conformance.contract.frame import KEPT, Finding, Findings, broken, contract, observer
from kubelet_conformance.contract.needs import PODS, STATUS
from kubelet_conformance.contract.versions import ByVersion
from kubelet_conformance.contract.words import exited, failed, status
from kubelet_conformance.contracts.former_lives import has_come_back
from kubelet_conformance.contracts.instances import failing_start, regular_inits, sidecars

_STAYS_INITIALIZED = ByVersion({"<=1.26": False, ">=1.28": True})
"""Whether Initialized stays True once an app container has run, whatever its init containers do."""


_UNSEEN_FAILURES = frozenset(
    {"CreateContainerConfigError", "ErrImageNeverPull", "ImageInspectError", "InvalidImageName"}
)
"""Why a container could not be started, where no failed call shows that it was tried for this pod."""


def _initialized(m: Moment, pod: Pod, now: PodStatus) -> bool | None:
    """What the Initialized condition must say; None where the app containers only ran before."""
    apps = now.container_statuses or ()
    if _STAYS_INITIALIZED.at(m.kubernetes):
        if [told for told in apps if told.state.running or told.state.terminated]:
            return True
        if [told for told in apps if told.last_state.terminated]:
            return None
    ready = {told.name: told.ready for told in _inits_told(pod, now)}
    return all(ready.get(spec.name, False) for spec in regular_inits(pod))


def _inits_told(pod: Pod, now: PodStatus) -> list[ContainerStatus]:
    return [told for told in now.init_container_statuses or () if pod.kind_of(told.name) == "init"]


@contract("INIT-15", on=status(), needs=(PODS, STATUS), versions=_STAYS_INITIALIZED)
def ready_by_exit_code(_: Moment, pod: Pod, status: PodStatus) -> Iterator[Finding]:
    """A regular init container that ended is ready when its exit code is 0.

    Initialized is True when all are ready, and until then False with reason ContainersNotInitialized.
    """
    for told in _inits_told(pod, status):
        ended = told.state.terminated
        if ended is not None:
            if told.ready != (ended.exit_code == 0):
                yield broken(f"{told.name} exited with {ended.exit_code} and has ready {told.ready}")
            else:
                yield KEPT


@ready_by_exit_code.clause("condition", on=status())
def _(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    condition = status.condition("Initialized") if status else None
    if condition is None or status.phase == "Succeeded":
        return None
    if not regular_inits(pod) or sidecars(pod):
        return None
    expected = _initialized(m, pod, status)
    if expected is None:
        return None
    if (condition.status == "True") != expected:
        return broken(f"Initialized is {condition.status}, expected {expected}")
    if not expected and condition.reason != "ContainersNotInitialized":
        return broken(f"Initialized has reason {condition.reason!r}, expected ContainersNotInitialized")
    return KEPT


class _Failed:
    """The containers of a pod that could not be made: what failed is told until they are."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.initialized = False
        """Its init containers were through once: why its app containers did not start then is told as well,
        until they do (reason_cache.go), though another sandbox begins with the init containers again.
        """


@contract("INIT-16", on=status(), needs=(PODS, STATUS))
def apps_wait_for_initializing(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Until the init containers are through, app containers that never ran wait for PodInitializing."""
    if status.terminal or not pod.born:
        return None
    inits = _inits_told(pod, status)
    if all(told.state.terminated and told.state.terminated.exit_code == 0 for told in inits):
        return None
    tried = {*pod.containers, *pod.note(_Failed).names}
    apps = [told for told in status.container_statuses or () if told.name not in tried]
    for told in apps:
        if not told.container_id and has_come_back(m, pod):
            continue  # Reasons are kept by the pod's UID, longer than its statuses.
        reason = told.state.waiting.reason if told.state.waiting else "none"
        if pod.note(_Failed).initialized and (
            reason in _UNSEEN_FAILURES or _was_put_off(pod, told.name, reason)
        ):
            continue
        if reason != "PodInitializing":
            return broken(f"{told.name} waits for {reason}, expected PodInitializing")
    return KEPT if apps else None


def _was_put_off(pod: Pod, name: str, reason: str) -> bool:
    """Its image could not be pulled for another container of the pod, and the back-off of that is its own."""
    spec = pod.container_spec(name)
    pulls = pod.pulls.get(spec.image) if spec is not None else None
    return reason == "ImagePullBackOff" and pulls is not None and bool(pulls.failed_seq)


@observer(on=failed("CreateContainer", "PullImage"))
def _(m: Moment) -> None:
    if m.pod is not None:
        m.pod.note(_Failed).names.add(failing_start(m))


@observer(on=exited())
def _takes_in_the_last_init(m: Moment, container: Container, ended: Exit) -> None:
    """Take in that the last init container completed: app containers may be tried from here on."""
    pod = m.pod
    if pod is None or ended.code != 0:
        return
    if [spec.name for spec in regular_inits(pod)][-1:] == [container.name]:
        pod.note(_Failed).initialized = True


@contract("INIT-17", on=status(), needs=(PODS, STATUS))
def statuses_in_order(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Init container statuses stand in the order of the spec, app container statuses sorted by name."""
    if pod.spec is None:
        return None
    spec = [one.name for one in pod.spec.init_containers or ()]
    inits = [one.name for one in status.init_container_statuses or ()]
    apps = [one.name for one in status.container_statuses or ()]
    if inits != [name for name in spec if name in inits]:
        return broken(f"the init statuses are {inits}, the spec has {spec}", pod.set_seq)
    if apps != sorted(apps):
        return broken(f"the app statuses are {apps}, expected them sorted by name", pod.set_seq)
    return KEPT if len(inits) > 1 or len(apps) > 1 else None
