"""What must hold between the fields of a pod as a whole."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, cast

from kubelet_reference import pods
from kubelet_reference.config.rule_words import containers, is_label_value, is_qualified_name, unique

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lightkube.models.core_v1 import Pod, Toleration

    from kubelet_reference.config.problems import Place
    from kubelet_reference.config.rule_words import Rule

__all__ = ("POD_RULES", "is_address", "metadata")

_ANNOTATION_BYTES_MAX = 256 << 10
_NAMESERVERS_MAX, _SEARCHES_MAX, _SEARCH_CHARS_MAX = 3, 32, 2048
_ID_MAX = 2**31 - 1
_OF_THE_HOST = ("hostNetwork", "hostPID", "hostIPC")
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


def metadata(pod: Pod, place: Place) -> None:
    """Labels and annotations have qualified names as keys; annotations take 256 KiB at most."""
    meta = pod.metadata
    labels = cast("Mapping[str, str]", (meta and meta.labels) or {})  # pyright: ignore[reportUnknownMemberType]
    annotations = cast("Mapping[str, str]", (meta and meta.annotations) or {})  # pyright: ignore[reportUnknownMemberType]
    _keys(labels, place.field("labels"))
    _keys(annotations, place.field("annotations"), any_case=True)
    for name, value in labels.items():
        if not is_label_value(value):
            place.field("labels").field(name).expected("the value of a label, at most 63 characters", value)
    if sum(len(name) + len(value) for name, value in annotations.items()) > _ANNOTATION_BYTES_MAX:
        place.field("annotations").wrong(f"expected at most {_ANNOTATION_BYTES_MAX} characters in all")


def _keys(found: Mapping[str, str], place: Place, *, any_case: bool = False) -> None:
    for name in found:
        if not is_qualified_name(name.lower() if any_case else name):
            place.field(name).wrong("expected a qualified name as key")


def some_containers(pod: Pod, place: Place) -> None:
    """A pod has at least one app container."""
    if not pods.containers(pod):
        place.field("containers").wrong("expected at least one container")


def no_ephemeral_containers(pod: Pod, place: Place) -> None:
    """Ephemeral containers join a pod that runs; a manifest cannot have any (STATIC-25)."""
    if pods.ephemeral_containers(pod):
        place.field("ephemeralContainers").wrong("not allowed in a manifest")


def no_api_references(pod: Pod, place: Place) -> None:
    """A pod from a manifest can use neither resource claims nor cluster trust bundles (STATIC-22)."""
    if pods.spec(pod).resourceClaims:
        place.field("resourceClaims").wrong("not allowed in a manifest")
    for i, volume in enumerate(pods.spec(pod).volumes or ()):
        for j, source in enumerate((volume.projected and volume.projected.sources) or ()):
            if source.clusterTrustBundle:
                bundle = place.field("volumes").item(i).field("projected").field("sources").item(j)
                bundle.field("clusterTrustBundle").wrong("not allowed in a manifest")


def unique_container_names(pod: Pod, place: Place) -> None:
    """No two containers of a pod have the same name, whatever their kind."""
    unique((where.field("name"), one.name) for one, where in containers(pod, place))


def node_selector(pod: Pod, place: Place) -> None:
    """A node is selected by labels."""
    selector = cast("Mapping[str, str]", pods.spec(pod).nodeSelector or {})  # pyright: ignore[reportUnknownMemberType]
    at = place.field("nodeSelector")
    _keys(selector, at)
    for name, value in selector.items():
        if not is_label_value(value):
            at.field(name).expected("the value of a label, at most 63 characters", value)


def readiness_gates(pod: Pod, place: Place) -> None:
    """A readiness gate names a condition by a qualified name."""
    for i, gate in enumerate(pods.spec(pod).readinessGates or ()):
        if not is_qualified_name(gate.conditionType):
            at = place.field("readinessGates").item(i).field("conditionType")
            at.expected("a qualified name", gate.conditionType)


def tolerations(pod: Pod, place: Place) -> None:
    """A toleration without a key tolerates all; one that only asks for a key has no value."""
    for i, one in enumerate(pods.spec(pod).tolerations or ()):
        _toleration(one, place.field("tolerations").item(i))


def _toleration(one: Toleration, place: Place) -> None:
    if one.key and not is_qualified_name(one.key):
        place.field("key").expected("a qualified name", one.key)
    if not one.key and one.operator != "Exists":
        place.field("operator").expected("Exists where there is no key", one.operator)
    if one.operator == "Exists" and one.value:
        place.field("value").wrong("not allowed with the operator Exists")
    if one.tolerationSeconds is not None and one.effect != "NoExecute":
        place.field("effect").expected("NoExecute with tolerationSeconds", one.effect)


def dns(pod: Pod, place: Place) -> None:
    """Without a policy the pod brings its own nameservers, three at most; searches are bounded too."""
    spec, config = pods.spec(pod), pods.spec(pod).dnsConfig
    at = place.field("dnsConfig")
    servers = (config and config.nameservers) or ()
    searches = (config and config.searches) or ()
    if spec.dnsPolicy == "None" and not servers:
        at.field("nameservers").wrong("expected at least one with the policy None")
    if len(servers) > _NAMESERVERS_MAX:
        at.field("nameservers").wrong(f"expected at most {_NAMESERVERS_MAX}, got {len(servers)}")
    for i, server in enumerate(servers):
        if not is_address(server):
            at.field("nameservers").item(i).expected("an IP address", server)
    if len(searches) > _SEARCHES_MAX:
        at.field("searches").wrong(f"expected at most {_SEARCHES_MAX}, got {len(searches)}")
    if len(" ".join(searches)) > _SEARCH_CHARS_MAX:
        at.field("searches").wrong(f"expected at most {_SEARCH_CHARS_MAX} characters in all")
    for i, option in enumerate((config and config.options) or ()):
        if not option.name:
            at.field("options").item(i).field("name").wrong("missing")


def namespaces_of_the_host(pod: Pod, place: Place) -> None:
    """Processes are shared within the pod or with the host; own users exclude the host's namespaces."""
    spec = pods.spec(pod)
    if spec.hostPID and spec.shareProcessNamespace:
        place.field("shareProcessNamespace").wrong("not allowed with hostPID")
    if spec.hostUsers is False:
        for name in _OF_THE_HOST:
            if getattr(spec, name):
                place.field(name).wrong("not allowed with hostUsers false")


def sysctls(pod: Pod, place: Place) -> None:
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


def groups(pod: Pod, place: Place) -> None:
    """A supplemental group is a number of up to 31 bits."""
    security = pods.spec(pod).securityContext
    at = place.field("securityContext").field("supplementalGroups")
    for i, group in enumerate((security and security.supplementalGroups) or ()):
        if not 0 <= group <= _ID_MAX:
            at.item(i).expected(f"a number from 0 to {_ID_MAX}", group)


def spread(pod: Pod, place: Place) -> None:
    """A topology is named once for each answer to what cannot be satisfied."""
    found = pods.spec(pod).topologySpreadConstraints or ()
    at = place.field("topologySpreadConstraints")
    unique((at.item(i), f"{one.topologyKey} {one.whenUnsatisfiable}") for i, one in enumerate(found))


def is_address(text: str) -> bool:
    """Whether it is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


POD_RULES: tuple[Rule, ...] = (
    some_containers,
    no_ephemeral_containers,
    no_api_references,
    unique_container_names,
    node_selector,
    readiness_gates,
    tolerations,
    dns,
    namespaces_of_the_host,
    sysctls,
    groups,
    spread,
)
