"""What must hold in the security contexts of a pod and of its containers."""

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.rules import containers


def whole_proc(pod: Pod, place: FieldPath) -> None:
    """A container sees all of /proc only where its users are not the host's (KEP-4265)."""
    for one, where in containers(pod, place):
        context = one.securityContext
        if context and context.procMount == "Unmasked" and pods.spec(pod).hostUsers is not False:
            where.field("securityContext").field("procMount").wrong("only allowed with hostUsers false")


def profiles(pod: Pod, place: FieldPath) -> None:
    """A seccomp or AppArmor profile of the node's is named, and no other is."""
    contexts: list[tuple[object, FieldPath]] = [
        (pods.spec(pod).securityContext, place.field("securityContext")),
        *((one.securityContext, where.field("securityContext")) for one, where in containers(pod, place)),
    ]
    for context, where in contexts:
        for kind in ("seccompProfile", "appArmorProfile"):
            profile = getattr(context, kind, None)
            if profile is not None:
                at = where.field(kind).field("localhostProfile")
                if profile.type == "Localhost" and not profile.localhostProfile:
                    at.wrong("missing")
                if profile.type != "Localhost" and profile.localhostProfile is not None:
                    at.wrong(f"not allowed with the type {profile.type}")
