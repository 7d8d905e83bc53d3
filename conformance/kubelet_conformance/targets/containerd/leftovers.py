"""Everything that a private containerd leaves on the machine: how it is found."""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from kubelet_conformance.targets.containerd import host
from kubelet_conformance.targets.containerd.home import Home
from kubelet_conformance.targets.containerd.host_commands import said_by

NAMESPACE = "k8s.io"
"""The containerd namespace that its CRI plugin lives in."""
_RECORDS = "io.containerd.grpc.v1.cri"
_TASKS = "io.containerd.runtime.v2.task"
_SHIM_SOCKETS = Path("/run/containerd/s")
_NETWORK_RESULTS = Path("/var/lib/cni/results")


def processes(home: Home) -> tuple[int, ...]:
    """The daemon and whatever it started: shims, runc and plugins by their mark, containers by their root."""
    return (*host.marked_processes(home.mark), *host.container_processes(home.folder))


def ids(home: Home) -> frozenset[str]:
    """The ids of its sandboxes and containers, as far as it has not forgotten them."""
    folders = [
        top / _RECORDS / kind for top in (home.root, home.state) for kind in ("sandboxes", "containers")
    ]
    folders += [top / _TASKS / NAMESPACE for top in (home.root, home.state)]
    return frozenset(name for folder in (*folders, home.runc / NAMESPACE) for name in host.names_in(folder))


def shim_sockets(home: Home, known: Iterable[str]) -> tuple[Path, ...]:
    """The sockets of its shims: containerd puts them all into one folder, by the hash of what they serve."""
    hashes = (hashlib.sha256(f"{home.socket}/{NAMESPACE}/{each}".encode()).hexdigest() for each in known)
    return tuple(path for each in hashes if (path := _SHIM_SOCKETS / each).exists())


def network_results(home: Home, known: Iterable[str]) -> tuple[Path, ...]:
    """What the CNI library noted down of its sandboxes; it has one folder for all."""
    wanted = {*known, home.name}
    found = (name for name in host.names_in(_NETWORK_RESULTS) if any(each in name for each in wanted))
    return tuple(_NETWORK_RESULTS / name for name in found)


def cgroups(known: Iterable[str]) -> tuple[Path, ...]:
    """The cgroups of sandboxes and containers with these ids, innermost first."""
    wanted = frozenset(known)
    if not wanted:
        return ()
    found: list[Path] = []
    for root in host.cgroup_roots():
        for folder, _, _ in os.walk(root, topdown=False):
            if wanted.intersection(Path(folder).relative_to(root).parts):
                found.append(Path(folder))
    return tuple(found)


def leftovers(home: Home, known: Iterable[str] = ()) -> tuple[str, ...]:
    """All that there is of a private containerd, one line each; nothing if it is removed without a trace.

    `known` are ids of its sandboxes and containers: once its folder is gone they cannot be found otherwise.
    """
    return tuple(_leftovers(home, ids(home) | frozenset(known)))


def _leftovers(home: Home, known: frozenset[str]) -> Iterator[str]:
    for pid in processes(home):
        yield f"process {pid}: {host.words_of(pid)}"
    for point in host.mounts_below(home.folder):
        yield f"mount {point}"
    if home.name in host.links():
        yield f"bridge {home.name}"
    for port in host.bridge_ports(home.name):
        yield f"link {port} of bridge {home.name}"
    for lease in host.names_in(home.leases / home.name):
        yield f"lease {lease}"
    for path in (*shim_sockets(home, known), *network_results(home, known)):
        yield f"file {path}"
    for path in cgroups(known):
        yield f"cgroup {path}"
    for rule in _rules({home.name, *known}):
        yield f"iptables rule {rule}"
    if home.folder.exists():
        yield f"folder {home.folder}"


def _rules(wanted: Iterable[str]) -> Iterator[str]:
    """The rules of the firewall that name any of these."""
    if shutil.which("iptables-save") is None:
        return
    lines = said_by("iptables-save").splitlines()
    yield from (line for line in lines if any(each in line for each in wanted))
