"""`kubelet-reference`, the command: the kubelet as a process, on a real runtime, disk, network and clock."""

import os

__all__ = ("main",)


def main() -> None:
    """Run the command and end the process with its exit code."""
    # gRPC's own lines would appear between ours: the call that failed reports the cause.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # Late, for gRPC reads its environment when it is loaded.
    from kubelet_reference.server.command import run  # noqa: PLC0415

    raise SystemExit(run())
