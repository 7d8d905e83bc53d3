"""What a kubelet adds on a real runtime: 50 pods from wanted to running, against the same by bare CRI calls.

python tests/bench/containerd_speed.py [--pods N] [--repeats N] [--format terminal|json]

As root, on Debian with the packages of .ci/install-debian-packages. Both run on one private containerd, all
pods at the same time. The kubelet is the reference in process with the tap in between. A pod runs when its
StartContainer is answered, for both; how long it takes until the status at the API server says so too,
which waits for a relist besides, is measured as well.
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from kubelet_conformance.node import Node, pod
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.containerd import CannotRunError, PrivateContainerd
from kubelet_conformance.targets.opening import open_live_stage
from kubelet_conformance.targets.stage import Act

# What this shares with the tests lies beside it.
sys.path.append(str(Path(__file__).resolve().parent.parent / "support"))
from bare_cri import BarePod, at_socket

from kubelet_conformance.targets.controls import Target

PODS = 50
REPEATS = 3
RATIO_TARGET = 1.5
PATIENCE_SECONDS = 300.0


async def bare(containerd: PrivateContainerd, count: int) -> float:
    """How long it takes by bare calls, in seconds."""
    async with at_socket(containerd.socket, containerd.home.folder / "pods") as runtime:

        async def one() -> BarePod:
            made = await runtime.pod()
            await made.container("run")
            return made

        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one()) for _ in range(count)]
        took = time.monotonic() - began
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(task.result().remove())
    return took


async def by_the_kubelet(containerd: PrivateContainerd, count: int) -> tuple[float, float]:
    """How long it takes from the pods' creation at the API server until all run, and until it is injected."""
    took = reported = 0.0

    async def work(target: Target) -> None:
        nonlocal took, reported
        node = Node(target)
        # The kubelet has asked for the runtime's state when it sets up its first pod.
        await node.run(name="first")
        began = time.monotonic()
        pods = [node.want(pod(name=f"pod-{number}", grace=1)) for number in range(count)]
        uids = {each.uid for each in pods}
        await node.until(
            lambda: (
                sum(call.done and call.pod_uid in uids for call in node.observations.of("StartContainer"))
                == count
            ),
            "all started",
        )
        took = time.monotonic() - began
        await node.until(
            lambda: all(node.observations.statuses.get(uid, {}).get("phase") == "Running" for uid in uids),
            "all running",
        )
        reported = time.monotonic() - began

    stage = open_live_stage(Choice(runtime=containerd.address, kubernetes="1.32"))
    try:
        await stage.open(["img:1"])
        life = await stage.play([Act(0, "speed", work, {}, PATIENCE_SECONDS)], shared=False)
    finally:
        await stage.close()
    if life.ended[0].error is not None:
        raise SystemExit(life.ended[0].report)
    return took, reported


async def measured(count: int, repeats: int) -> dict[str, Any]:
    """Both in turns, and the ratio of the fastest."""
    async with PrivateContainerd() as containerd:
        await bare(containerd, 1)
        turns = [
            (await bare(containerd, count), *await by_the_kubelet(containerd, count)) for _ in range(repeats)
        ]
    calls, kubelet, reported = (min(column) for column in zip(*turns, strict=True))
    return {
        "pods": count,
        "bare_seconds": round(calls, 2),
        "kubelet_seconds": round(kubelet, 2),
        "reported_seconds": round(reported, 2),
        "ratio": round(kubelet / calls, 2),
        "turns": [[round(seconds, 2) for seconds in turn] for turn in turns],
    }


def print_report(found: dict[str, Any]) -> None:
    """The measurement as text."""
    met = "met" if found["ratio"] < RATIO_TARGET else "missed"
    print(f"{found['pods']} pods at once on a private containerd, the fastest of {len(found['turns'])}")
    print(f"  bare CRI calls         {found['bare_seconds']} s")
    print(f"  reference and the tap  {found['kubelet_seconds']} s")
    print(f"    until statuses say it {found['reported_seconds']} s")
    print(f"  ratio                  {found['ratio']} (target below {RATIO_TARGET}: {met})")


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description="How much does a kubelet add on a real runtime?")
    parser.add_argument("--pods", type=int, default=PODS, metavar="N")
    parser.add_argument("--repeats", type=int, default=REPEATS, metavar="N", help="the fastest of N counts")
    parser.add_argument("--format", choices=("terminal", "json"), default="terminal")
    options = parser.parse_args()

    try:
        found = asyncio.run(measured(options.pods, options.repeats))
    except CannotRunError as error:
        raise SystemExit(str(error)) from None
    if options.format == "json":
        print(json.dumps(found, indent=2))
    else:
        print_report(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
