"""The PodSandboxConfig of a pod: its names, host name, DNS, ports, sysctls and log directory."""

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.resources import sandbox_resources
from kubelet_reference.cri.labels import sandbox_annotations, sandbox_labels
from kubelet_reference.kuberuntime.container.security import sandbox_security
from kubelet_reference.util.settings import Settings

_SWAP = str.maketrans("./", "/.")


def dotted(name: str) -> str:
    """The name with dots between its parts, as the runtime takes it (SANDBOX-24).

    "net/ipv4/ip_forward" and "net.ipv4.ip_forward" name the same parameter: the first separator decides the
    spelling. In either one the other character belongs to a part's own name: "net/ipv4/conf/eno2.100/tag" is
    "net.ipv4.conf.eno2/100.tag".
    """
    separators = (char for char in name if char in "./")
    return name.translate(_SWAP) if next(separators, "") == "/" else name


HOSTNAME_MAX = 63
"""Longest host name that the kernel takes."""


def sandbox_config(pod: Pod, attempt: int, settings: Settings) -> cri.PodSandboxConfig:
    """The config of the pod's sandbox number `attempt`.

    The same pod and attempt give the same config each time: it goes with every container too (SANDBOX-17).
    """
    return cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(
            name=pods.name(pod), uid=pods.uid(pod), namespace=pods.namespace(pod), attempt=attempt
        ),
        hostname="" if pods.host_network(pod) else hostname(pod),
        log_directory=log_directory(pod, settings),
        dns_config=_dns(pod),
        port_mappings=_port_mappings(pod),
        labels=sandbox_labels(pod),
        annotations=sandbox_annotations(pod),
        linux=cri.LinuxPodSandboxConfig(
            security_context=sandbox_security(pod),
            sysctls=_sysctls(pod),
            overhead=cri.LinuxContainerResources(),
            resources=sandbox_resources(pod),
        ),
    )


def hostname(pod: Pod) -> str:
    """The pod's own host name: that of its spec or its name, cut to what a kernel takes (SANDBOX-13)."""
    return (pods.spec(pod).hostname or pods.name(pod))[:HOSTNAME_MAX].rstrip("-.")


def log_directory(pod: Pod, settings: Settings) -> str:
    """The folder of the pod's logs (SANDBOX-12)."""
    return f"{settings.pod_logs_dir}/{pods.namespace(pod)}_{pods.name(pod)}_{pods.uid(pod)}"


def _port_mappings(pod: Pod) -> list[cri.PortMapping]:
    """The ports of app containers; those of init containers are not mapped (SANDBOX-14)."""
    return [
        cri.PortMapping(
            protocol=cri.Protocol.Value(port.protocol or "TCP"),
            container_port=port.containerPort,
            host_port=port.hostPort or 0,
            host_ip=port.hostIP or "",
        )
        for container in pods.containers(pod)
        for port in container.ports or ()
    ]


def _dns(pod: Pod) -> cri.DNSConfig:
    """The pod's own DNS settings; there is no cluster DNS here to add."""
    wanted = pods.spec(pod).dnsConfig
    if wanted is None:
        return cri.DNSConfig()
    options = [f"{one.name}:{one.value}" if one.value else one.name or "" for one in wanted.options or ()]
    return cri.DNSConfig(servers=wanted.nameservers or (), searches=wanted.searches or (), options=options)


def _sysctls(pod: Pod) -> dict[str, str]:
    context = pods.spec(pod).securityContext
    wanted = (context.sysctls if context else None) or ()
    return {dotted(one.name): one.value for one in wanted}
