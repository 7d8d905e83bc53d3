"""A program that starts a private containerd and a pod, says so, and waits for a signal.

python containerd_owner.py BASE
"""

import asyncio
import sys
from pathlib import Path

from bare_cri import at_socket

from kubelet_conformance.targets.containerd import PrivateContainerd


async def own(base: Path) -> None:
    """Live until a signal comes."""
    async with PrivateContainerd(base=base) as containerd, at_socket(containerd.socket) as runtime:
        pod = await runtime.pod()
        await pod.container("run")
        sys.stdout.write(f"{containerd.home.folder}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(own(Path(sys.argv[1])))
    except KeyboardInterrupt:
        sys.exit(130)
