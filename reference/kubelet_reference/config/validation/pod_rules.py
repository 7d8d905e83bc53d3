"""What must hold between the fields of a pod as a whole."""

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.rules import Rule, containers, is_qualified_name, none_of, unique

_NAMESERVERS_MAX, _SEARCHES_MAX, _SEARCH_CHARS_MAX = 3, 32, 2048
_OF_THE_HOST = ("hostNetwork", "hostPID", "hostIPC")
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


def some_containers(pod: Pod, place: FieldPath) -> None:
    """A pod has at least one app container."""
    if not pods.containers(pod):
        place.field("containers").wrong("expected at least one container")


def only_for_the_api(pod: Pod, place: FieldPath) -> None:
    """What a manifest cannot have.

    Ephemeral containers join a pod that runs (STATIC-25). Resource claims are objects of the API server
    (STATIC-22). Gates hold a pod back from a node, and a pod from a manifest has one from the start.
    """
    none_of(pods.spec(pod), ("ephemeralContainers", "resourceClaims", "schedulingGates"), place)


def unique_container_names(pod: Pod, place: FieldPath) -> None:
    """No two containers of a pod have the same name, whatever their kind."""
    unique((where.field("name"), one.name) for one, where in containers(pod, place))


def readiness_gates(pod: Pod, place: FieldPath) -> None:
    """A readiness gate names a condition by a qualified name."""
    for i, gate in enumerate(pods.spec(pod).readinessGates or ()):
        if not is_qualified_name(gate.conditionType):
            at = place.field("readinessGates").item(i).field("conditionType")
            at.expected("a qualified name", gate.conditionType)


def dns(pod: Pod, place: FieldPath) -> None:
    """Without a policy the pod brings its own nameservers, three at most; searches are bounded too."""
    spec, config = pods.spec(pod), pods.spec(pod).dnsConfig
    at = place.field("dnsConfig")
    servers = (config and config.nameservers) or ()
    searches = (config and config.searches) or ()
    if spec.dnsPolicy == "None" and not servers:
        at.field("nameservers").wrong("expected at least one with the policy None")
    if len(servers) > _NAMESERVERS_MAX:
        at.field("nameservers").wrong(f"expected at most {_NAMESERVERS_MAX}, got {len(servers)}")
    if len(searches) > _SEARCHES_MAX:
        at.field("searches").wrong(f"expected at most {_SEARCHES_MAX}, got {len(searches)}")
    if len(" ".join(searches)) > _SEARCH_CHARS_MAX:
        at.field("searches").wrong(f"expected at most {_SEARCH_CHARS_MAX} characters in all")
    for i, option in enumerate((config and config.options) or ()):
        if not option.name:
            at.field("options").item(i).field("name").wrong("missing")


def host_names(pod: Pod, place: FieldPath) -> None:
    """A host name that overrides all others belongs to a network of the pod's own (KEP-4762)."""
    spec = pods.spec(pod)
    for name in ("hostNetwork", "setHostnameAsFQDN"):
        if spec.hostnameOverride is not None and getattr(spec, name):
            place.field("hostnameOverride").wrong(f"not allowed with {name}")


def namespaces_of_the_host(pod: Pod, place: FieldPath) -> None:
    """Processes are shared within the pod or with the host; own users exclude the host's namespaces."""
    spec = pods.spec(pod)
    if spec.hostPID and spec.shareProcessNamespace:
        place.field("shareProcessNamespace").wrong("not allowed with hostPID")
    if spec.hostUsers is False:
        for name in _OF_THE_HOST:
            if getattr(spec, name):
                place.field(name).wrong("not allowed with hostUsers false")


def sysctls(pod: Pod, place: FieldPath) -> None:
    """Each sysctl is set once, and none of a namespace that is the host's."""
    spec = pods.spec(pod)
    found = (spec.securityContext and spec.securityContext.sysctls) or ()
    at = place.field("securityContext").field("sysctls")
    unique((at.item(i).field("name"), one.name.replace("/", ".")) for i, one in enumerate(found))
    for i, one in enumerate(found):
        name = one.name.replace("/", ".")
        if spec.hostNetwork and name.startswith("net."):
            at.item(i).field("name").wrong("not allowed with hostNetwork")
        if spec.hostIPC and name.startswith(_IPC_SYSCTLS):
            at.item(i).field("name").wrong("not allowed with hostIPC")


POD_RULES: tuple[Rule, ...] = (
    some_containers,
    only_for_the_api,
    unique_container_names,
    readiness_gates,
    dns,
    host_names,
    namespaces_of_the_host,
    sysctls,
)
