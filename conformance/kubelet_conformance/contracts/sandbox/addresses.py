"""The addresses of a pod: which of them its containers get, and in which order they are shown."""

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import ip_address

from kubelet_conformance.contract import Finding, Moment, Note, Pattern, Pod, PodSpec, PodStatus, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract, kept_if, observer
from kubelet_conformance.contract.patterns import call, done, status
from kubelet_conformance.contracts.facts.container import asked
from kubelet_conformance.contracts.facts.disk import files
from kubelet_conformance.contracts.facts.sandbox import reported_ips
from kubelet_conformance.trace.format.bodies import Mount, PodSandboxStatusReply
from kubelet_conformance.trace.format.manifests import ContainerSpec

HOSTS = "/etc/hosts"
_POD_IP = "status.podIP"


@lru_cache(maxsize=1024)
def version_of(text: str) -> int | None:
    """4 or 6; None for what is no address."""
    try:
        return ip_address(text).version
    except ValueError:
        return None


class _Reported(Note):
    """Every address that a sandbox was ever read with, and those that its containers may get."""

    ips: set[str] = set()
    to_tell: set[str] = set()
    """The usable addresses; none where the sandbox had no address when it was last read, or an invalid
    one.
    """


_READ: Pattern = done("PodSandboxStatus")


@observer(on=_READ)
def _take_address(m: Moment, sandbox: Sandbox) -> None:
    ips = reported_ips(m.response(PodSandboxStatusReply).status)
    current = sandbox.note(_Reported)
    if ips and current.to_tell.issuperset(ips):
        return
    current.ips.update(ips)
    # One that has died since, and a sync whose own reading came late, know no address.
    is_known = bool(ips) and all(version_of(ip) is not None for ip in current.ips)
    current.to_tell = current.ips if is_known else set()


def _addresses(m: Moment) -> set[str]:
    """The addresses that the container's sandbox was read with; none unless all of them are known."""
    pod, sandbox = m.pod, m.sandbox
    if pod is None or sandbox is None or not sandbox.born or sandbox.status_t is None:
        return set()
    return set() if pod.spec is None or pod.spec.host_network else sandbox.note(_Reported).to_tell


def _ip_variables(m: Moment, spec: ContainerSpec) -> list[tuple[str, str]]:
    """The environment variables that must hold the pod's address, with their values; none where these are
    redacted.
    """
    if not spec.env or m.header.redacted:
        return []
    given = {one.key: one.value for one in asked(m).envs}
    sources = [(one.name, one.value_from.field_ref) for one in spec.env if one.value_from is not None]
    names = [name for name, ref in sources if ref is not None and ref.field_path == _POD_IP]
    return [(name, given.get(name, "")) for name in names]


@contract("SYNC-12", on=call("CreateContainer"), needs=(CRI, PODS))
def container_gets_the_address_of_its_sandbox(m: Moment, pod: Pod) -> Findings:
    """The address that a container finds in its environment is one that its sandbox was read with."""
    spec = pod.container_spec(asked(m).metadata.name)
    variables = _ip_variables(m, spec) if spec is not None else []
    current = _addresses(m) if variables else set[str]()
    if spec is None or not current:
        return None
    expected = f"the address of its sandbox is {min(current)}"
    return [
        KEPT if value in current else broken(f"{name} of {spec.name} is {value!r}, {expected}")
        for name, value in variables
    ]


def _old_addresses(m: Moment) -> set[str]:
    """The addresses of the pod's earlier sandboxes."""
    memory, pod = set[str](), m.pod
    for sandbox in pod.sandboxes if pod is not None else ():
        if sandbox is not m.sandbox:
            memory |= sandbox.note(_Reported).ips
    return memory


def _hosts_text(m: Moment) -> str | None:
    """What the managed hosts file of the container that is made holds; None where unknown."""
    texts = files(m).texts
    found = [one for one in asked(m).mounts if one.container_path == HOSTS] if texts else []
    return texts.get(found[0].host_path) if len(found) == 1 else None


@contract("SYNC-22", on=call("CreateContainer"), needs=(CRI, PODS))
def replacement_brings_its_own_address(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """The containers of a replaced sandbox get its address, and not that of the one before.

    Their environment and their hosts file have it.
    """
    if not sandbox.attempt:
        return None
    current, spec = _addresses(m), pod.container_spec(asked(m).metadata.name)
    old = _old_addresses(m) - current if current else set[str]()
    return _has_no_old_address(m, spec, old) if spec is not None and old else None


def _has_no_old_address(m: Moment, spec: ContainerSpec, old: set[str]) -> Iterator[Finding]:
    for name, value in _ip_variables(m, spec):
        yield broken(f"{name} of {spec.name} is {value}, of the sandbox before") if value in old else KEPT
    words = (_hosts_text(m) or "").split()
    if words:
        stale = old.intersection(words)
        yield kept_if(
            not stale, f"the hosts file of {spec.name} has {min(stale, default='')}, of the sandbox before"
        )


def _own_mounts(spec: ContainerSpec) -> int:
    """How many mounts of its own the container has where the hosts file is."""
    return [one.mount_path for one in spec.volume_mounts].count(HOSTS) if spec.volume_mounts else 0


def _mounted(mounts: list[Mount]) -> int:
    return [one.container_path for one in mounts].count(HOSTS)


@contract("START-10", on=call("CreateContainer"), needs=(CRI, PODS))
def hosts_file_is_mounted(m: Moment, pod: Pod) -> Findings:
    """A container whose pod has an address gets a hosts file, unless it mounts something there itself."""
    spec = pod.container_spec(asked(m).metadata.name)
    if spec is None or not _addresses(m):
        return None
    count, own = _mounted(asked(m).mounts), _own_mounts(spec)
    if count != max(1, own):
        return broken(f"{spec.name} has {count} mounts at {HOSTS}, expected {max(1, own)}", pod.set_seq)
    return KEPT


def _aliases(spec: PodSpec) -> set[tuple[str, str]]:
    return {(one.ip, name) for one in spec.host_aliases or () for name in one.hostnames or ()}


def _pairs(text: str) -> set[tuple[str, str]]:
    """Each address with each name that a hosts file gives it."""
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    return {(words[0], name) for words in lines if words for name in words[1:]}


def _own_names(sandbox: Sandbox, current: set[str]) -> set[tuple[str, str]]:
    """The name of the pod, at the address that it has now."""
    name = sandbox.config.hostname if sandbox.config is not None else ""
    return {(sandbox.ip, name)} if name and sandbox.ip in current else set()


@contract("START-13", on=call("CreateContainer"), needs=(CRI, PODS))
def hosts_file_has_the_pods_names(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """The managed hosts file gives the pod's name at its address, and the pod's aliases."""
    text = _hosts_text(m)
    if pod.spec is None or text is None:
        return None
    spec = pod.container_spec(asked(m).metadata.name)
    if spec is None or _own_mounts(spec):
        return None
    due = _aliases(pod.spec) | _own_names(sandbox, _addresses(m))
    if missing := due - _pairs(text):
        ip, name = min(missing)
        return broken(f"the hosts file of {spec.name} does not have {name} at {ip}", pod.set_seq)
    return KEPT if due else None


@contract("SANDBOX-22", on=status(), needs=(CRI, STATUS), versions=since("1.23"))
def addresses_have_the_order_of_the_nodes(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Of a pod's addresses one of each family is shown, first that of the family of the node's own."""
    if pod.sandbox is None or (pod.spec is not None and pod.spec.host_network):
        return None
    current = reported_ips(pod.sandbox.record) if status.pod_ips else []
    if len(current) < 2:  # noqa: PLR2004 - one has no order
        return None
    shown = [one.ip for one in status.pod_ips or ()]
    if not set(shown) <= set(current):
        return None
    first: dict[int, str] = {}
    for ip in current:
        first.setdefault(version_of(ip) or 0, ip)
    wanted = 6 if version_of(status.host_ip) == 6 else 4  # noqa: PLR2004 - the families' numbers
    expected = [first[family] for family in sorted(first, key=lambda family: family != wanted)]
    if 0 in first:
        return None
    if shown != expected or status.pod_ip != shown[0]:
        return broken(f"the pod's addresses are shown as {', '.join(shown)}, expected {', '.join(expected)}")
    return KEPT
