"""What a kubelet leaves on the machine: mounts below its folder, and the folder."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from kubelet_conformance.targets.containerd.host import mounts_below

_SECONDS_MAX = 30


def clear(folder: Path, entries: Iterable[str]) -> list[str]:
    """Unmount what is mounted in the folder and remove these entries of it; what resists, in words."""
    for point in mounts_below(folder):
        # Lazily: a process that is just ending may still have a file open there.
        subprocess.run(  # noqa: S603 - our own words, no shell
            ["umount", "--lazy", "--no-canonicalize", point],  # noqa: S607 - wherever the system has it
            capture_output=True,
            check=False,
            timeout=_SECONDS_MAX,
        )
    left = mounts_below(folder)
    if left:
        # Nothing is removed then: what is mounted there is not ours.
        return [f"{point} cannot be unmounted: umount it, then remove {folder}" for point in left]
    made = [folder / entry for entry in entries]
    for entry in made:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    return [f"{entry} cannot be removed" for entry in made if os.path.lexists(entry)]
