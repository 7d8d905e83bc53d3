"""Namespaces, users and privileges of sandboxes and containers, and the check for root."""

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Capabilities, Pod, PodSecurityContext, SeccompProfile, SecurityContext

from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer

_MASKED_PATHS = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
_READ_ONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_NO_SECURITY, _NO_POD_SECURITY = SecurityContext(), PodSecurityContext()


def namespaces(pod: Pod) -> cri.NamespaceOption:
    """Which namespaces the pod shares with the node or among its containers (SANDBOX-15)."""
    spec = pods.spec(pod)
    pid = cri.NODE if spec.hostPID else cri.POD if spec.shareProcessNamespace else cri.CONTAINER
    return cri.NamespaceOption(
        network=cri.NODE if spec.hostNetwork else cri.POD,
        pid=pid,
        ipc=cri.NODE if spec.hostIPC else cri.POD,
    )


def sandbox_security(pod: Pod) -> cri.LinuxSandboxSecurityContext:
    """The security context of a pod's sandbox."""
    of_pod = _of_pod(pod)
    every = (*pods.init_containers(pod), *pods.containers(pod))
    return cri.LinuxSandboxSecurityContext(
        namespace_options=namespaces(pod),
        run_as_user=_number(of_pod.runAsUser),
        run_as_group=_number(of_pod.runAsGroup),
        supplemental_groups=_groups(of_pod),
        privileged=any(_of_container(one).privileged for one in every),
        seccomp=cri.SecurityProfile(profile_type=cri.SecurityProfile.RuntimeDefault),
    )


def container_security(
    pod: Pod, container: AnyContainer, image: cri.Image, target_id: str, root_dir: str
) -> cri.LinuxContainerSecurityContext:
    """The security context of a container.

    Without a user in the spec it runs as the image's user, or as root if the image names none. `target_id` is
    the container whose processes an ephemeral container sees (EPH-07), "" if there is none.
    """
    own, options = _of_container(container), namespaces(pod)
    if target_id:
        options.pid, options.target_id = cri.TARGET, target_id
    context = cri.LinuxContainerSecurityContext(
        namespace_options=options,
        capabilities=_capabilities(own.capabilities) if own.capabilities else None,
        privileged=bool(own.privileged),
        run_as_group=_number(_first(own.runAsGroup, _of_pod(pod).runAsGroup)),
        readonly_rootfs=bool(own.readOnlyRootFilesystem),
        supplemental_groups=_groups(_of_pod(pod)),
        no_new_privs=own.allowPrivilegeEscalation is False,
        masked_paths=_MASKED_PATHS,
        readonly_paths=_READ_ONLY_PATHS,
        seccomp=_seccomp(own.seccompProfile or _of_pod(pod).seccompProfile, root_dir),
    )
    _set_user(context, _user(pod, container), image)
    return context


def root_problem(pod: Pod, container: AnyContainer, image: cri.Image) -> str:
    """Why the container may not run by runAsNonRoot, "" if it may (IMAGE-22)."""
    if not _first(_of_container(container).runAsNonRoot, _of_pod(pod).runAsNonRoot):
        return ""
    user = _user(pod, container)
    if user is not None:
        return "" if user else "container's runAsUser breaks non-root policy"
    if image.HasField("uid"):
        return "" if image.uid.value else "container has runAsNonRoot and image will run as root"
    if image.username:
        return (
            f"container has runAsNonRoot and image has non-numeric user ({image.username}), "
            "cannot verify user is non-root"
        )
    return "container has runAsNonRoot and image will run as root"


def _set_user(context: cri.LinuxContainerSecurityContext, user: int | None, image: cri.Image) -> None:
    if user is not None:
        context.run_as_user.value = user
    elif image.HasField("uid") or not image.username:
        context.run_as_user.value = image.uid.value
    else:
        context.run_as_username = image.username


def _of_pod(pod: Pod) -> PodSecurityContext:
    return pods.spec(pod).securityContext or _NO_POD_SECURITY


def _of_container(container: AnyContainer) -> SecurityContext:
    return container.securityContext or _NO_SECURITY


def _user(pod: Pod, container: AnyContainer) -> int | None:
    return _first(_of_container(container).runAsUser, _of_pod(pod).runAsUser)


def _first(own: int | None, of_pod: int | None) -> int | None:
    """The container's setting, else the pod's; flags are numbers too."""
    return of_pod if own is None else own


def _number(value: int | None) -> cri.Int64Value | None:
    return None if value is None else cri.Int64Value(value=value)


def _groups(of_pod: PodSecurityContext) -> list[int]:
    groups = list(of_pod.supplementalGroups or ())
    return groups if of_pod.fsGroup is None else [of_pod.fsGroup, *groups]


def _capabilities(wanted: Capabilities) -> cri.Capability:
    return cri.Capability(add_capabilities=wanted.add or (), drop_capabilities=wanted.drop or ())


def _seccomp(profile: SeccompProfile | None, root_dir: str) -> cri.SecurityProfile:
    if profile is None:
        return cri.SecurityProfile(profile_type=cri.SecurityProfile.Unconfined)
    own = profile.localhostProfile
    return cri.SecurityProfile(
        profile_type=cri.SecurityProfile.ProfileType.Value(profile.type),
        localhost_ref=f"{root_dir}/seccomp/{own}" if own else "",
    )
