"""What a private containerd needs of the machine, and a clear word where it is missing."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from kubelet_conformance.targets.containerd.host import cgroup_roots, is_static
from kubelet_conformance.targets.containerd.host_commands import environment

BUSYBOX = Path("/bin/busybox")
"""What the images are made of."""

_PROGRAMS = {
    "containerd": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "umount": "mount",
}
"""Each program with the Debian package that brings it."""
_PLUGINS = ("bridge", "host-local", "loopback")
_PLUGIN_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))


class CannotRunError(Exception):
    """No private containerd can run here; the text says what is missing and what to do about it."""


def missing() -> tuple[str, ...]:
    """What is missing for a private containerd, one line each; nothing if it can run."""
    return tuple(_missing())


def require() -> None:
    """Raise `CannotRunError` if anything is missing."""
    lacking = missing()
    if lacking:
        raise CannotRunError(
            "\n".join(["no private containerd can run here:", *(f"- {it}" for it in lacking)])
        )


def cni_folder() -> Path:
    """Where the CNI plugins lie."""
    complete = (folder for folder in _PLUGIN_FOLDERS if not _plugins_missing(folder))
    return next(complete, _PLUGIN_FOLDERS[0])


def _missing() -> Iterator[str]:
    if sys.platform != "linux":
        yield f"Linux: this is {sys.platform}"
        return
    for program, package in _PROGRAMS.items():
        if shutil.which(program, path=environment()["PATH"]) is None:
            yield f"the program {program}: apt-get install {package}"
    plugins = _plugins_missing(cni_folder())
    if plugins:
        folders = " or ".join(map(str, _PLUGIN_FOLDERS))
        names = ", ".join(plugins)
        yield f"the CNI plugins {names} in {folders}: apt-get install containernetworking-plugins"
    if not is_static(BUSYBOX):
        yield f"a statically linked {BUSYBOX}: apt-get install busybox-static"
    if os.geteuid() != 0:
        yield f"root: the user is {os.geteuid()}; containerd mounts, and makes network namespaces and cgroups"
        return
    yield from _unusable_cgroups()


def _plugins_missing(folder: Path) -> list[str]:
    return [name for name in _PLUGINS if not os.access(folder / name, os.X_OK)]


def _unusable_cgroups() -> Iterator[str]:
    roots = cgroup_roots()
    if not roots:
        yield "cgroups: none are mounted below /sys/fs/cgroup"
    for root in roots:
        trial = root / f"kubelet-conformance-trial-{os.getpid()}"
        try:
            trial.mkdir()
            trial.rmdir()
        except OSError as error:
            yield f"cgroups that can be written: {root}: {error.strerror}; start a container privileged"
