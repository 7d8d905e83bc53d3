"""Everything on this machine that a container runtime could leave behind, to be compared before and after.

It is looked at with other means than those of the code under test, and knows nothing of names or ids.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_FOLDERS = (
    "/opt",
    "/run",
    "/run/containerd",
    "/run/containerd/s",
    "/run/netns",
    "/var/lib",
    "/var/lib/cni/results",
    "/var/lib/kubelet-conformance",
)
_WORDS = ("containerd", "ctr ", "runc", "cni", "/bin/pause", "/bin/run", "sleep 2147483647")
_SETTINGS = ("net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding", "net/ipv6/conf/all/forwarding")
_TABLES = ("iptables-save", "ip6tables-save")


def traces() -> frozenset[str]:
    """Processes, mounts, links, addresses, namespaces, cgroups, firewall rules, settings and files."""
    found = {f"process {line}" for line in _said("ps", "-eo", "args=") if _is_of_a_runtime(line)}
    found |= {f"mount {line}" for line in _said("findmnt", "--list", "--noheadings", "--output", "TARGET")}
    found |= {f"link {line}" for line in _said("ip", "-brief", "link")}
    found |= {f"address {line}" for line in _said("ip", "-brief", "address")}
    found |= {f"route {line}" for line in _said("ip", "route", "show", "table", "all")}
    found |= {f"namespace {line}" for line in _said("lsns", "--noheadings", "--output", "NS")}
    found |= {f"cgroup {folder}" for folder, _, _ in os.walk("/sys/fs/cgroup")}
    for table in filter(shutil.which, _TABLES):
        found |= {f"rule {line}" for line in _said(table) if line.startswith("-")}
    found |= {f"setting {each} {Path('/proc/sys', each).read_text().strip()}" for each in _SETTINGS}
    found |= {f"file {each}" for name in _WORDS[:3] for each in Path(tempfile.gettempdir()).glob(f"*{name}*")}
    for folder in map(Path, _FOLDERS):
        found |= {f"file {each}" for each in (folder.iterdir() if folder.exists() else ())}
    return frozenset(found)


def _is_of_a_runtime(words: str) -> bool:
    """Whether a process may be a runtime's; the kernel's own, and the dead, are in brackets."""
    return not words.startswith("[") and any(each in words for each in _WORDS)


def _said(*command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return [line.strip() for line in done.stdout.splitlines()]
