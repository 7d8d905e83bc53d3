"""How much the reference kubelet costs on virtual time: a pod's life, a crowd, doing nothing, and probing.

python tests/bench/reference_speed.py [lives|crowd|idle|probes ...] [--pods N] [--minutes N]
    [--format terminal|json] [--profile]
"""

import argparse
import cProfile
import json
import logging
import pstats
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

from bare_node import BareNode, pod, replay
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.trace.format.recorder import RecordedCall
from kubelet_fakes.clock import run

PODS = 1_000
FEW = 10
"""The small crowd that the large one is compared with."""
REPEATS = 10
"""How often what is over in a blink is measured."""
LIVES = 200
"""How many lives are led at once, so that what the node itself does weighs little."""
MINUTES = 10
IDLE = (0, 10, 110)
PROBE: dict[str, Any] = {"exec": {"command": ["x", "0", "0"]}, "periodSeconds": 10}
LOOPING = 10
"""One pod in so many crash-loops."""
DEAREST = 40
"""How many functions a profile shows."""
LIFE_TARGET = 8
"""A life costs at most so many times the same calls of the runtime made directly."""
CROWD_TARGET = 90
"""Seconds of processor time for the large crowd."""


@deferred_gc()
def seconds(work: Coroutine[Any, Any, Any]) -> tuple[float, Any]:
    """The processor time that it takes on a virtual loop, and what it returns.

    Cycles are looked for as seldom as when scenarios are played, whatever is measured.
    """
    began = time.process_time()
    result = run(work)
    return time.process_time() - began, result


async def lives(number: int, *, watch: bool = False) -> BareNode:
    """So many pods are wanted, initialize, run, are deleted and are cleaned up, all at the same time."""
    names = [f"pod-{place}" for place in range(number)]
    async with BareNode(record=True, watch=watch) as node:
        for name in names:
            node.create(pod(name, init=True))
        await node.until("Running", names)
        for name in names:
            node.delete(name)
        await node.until("", names)
        await node.until_clean()
    return node


def measured_lives(number: int = LIVES) -> dict[str, Any]:
    """What a life costs, beside the same calls made directly: those of the runtime, and those of both fakes.

    Calls of the runtime are recorded on both sides, and kept as messages.
    """
    node = run(lives(number, watch=True))
    calls = [call for call in node.made if isinstance(call, RecordedCall)]
    failed = run(replay([*calls]))
    if failed != node.failures:
        raise SystemExit(f"{failed} calls failed when made directly, {node.failures} of the kubelet's")
    reference = least(lambda: lives(number))
    alone = least(lambda: replay([*calls]))
    both = least(lambda: replay(node.made))
    return {
        "lives": number,
        "calls_per_life": round(len(calls) / number, 1),
        "requests_per_life": round((len(node.made) - len(calls)) / number, 1),
        "lives_per_second": round(number / reference),
        "alone_per_second": round(number / alone),
        "times_alone": round(reference / alone, 2),
        "times_both_fakes": round(reference / both, 2),
    }


def least(work: Callable[[], Coroutine[Any, Any, Any]]) -> float:
    """The least of some measurements: whatever else the machine does can only add."""
    return min(seconds(work())[0] for _ in range(REPEATS))


async def crowd(number: int, minutes: int) -> None:
    """So many pods, all probed and one in ten crash-looping, for so many minutes, then deleted."""
    names = [f"pod-{place}" for place in range(number)]
    async with BareNode() as node:
        for place, name in enumerate(names):
            manifest = pod(name, "exit", "1", "2") if place % LOOPING == 0 else pod(name)
            manifest["spec"]["containers"][0]["readinessProbe"] = PROBE
            node.create(manifest)
        await node.clock.sleep(60 * minutes)
        for name in names:
            node.delete(name)
        await node.until("", names)


def measured_crowd(number: int, minutes: int) -> dict[str, Any]:
    """What a crowd costs, and one pod of it beside one of a small crowd."""
    few = sum(seconds(crowd(FEW, minutes))[0] for _ in range(REPEATS)) / REPEATS
    nothing = sum(seconds(crowd(0, minutes))[0] for _ in range(REPEATS)) / REPEATS
    many, _ = seconds(crowd(number, minutes))
    here, there = (many - nothing) / number, (few - nothing) / FEW
    return {
        "pods": number,
        "minutes": minutes,
        "seconds": round(many, 1),
        "ms_per_pod": round(here * 1000, 2),
        "ms_per_pod_of_few": round(there * 1000, 2),
        "times_few": round(here / there, 2),
    }


async def still(number: int, minutes: int, *, probed: bool = False) -> float:
    """So many pods run and nothing happens to them; the processor time of that alone."""
    names = [f"pod-{place}" for place in range(number)]
    async with BareNode() as node:
        for name in names:
            manifest = pod(name)
            if probed:
                manifest["spec"]["containers"][0]["readinessProbe"] = PROBE
            node.create(manifest)
        await node.until("Running", names)
        await node.clock.sleep(60)
        began = time.process_time()
        await node.clock.sleep(60 * minutes)
        return time.process_time() - began


def measured_idle(minutes: int) -> list[dict[str, Any]]:
    """How many virtual seconds pass in a second of processor time."""
    return [
        {"pods": number, "virtual_per_second": round(60 * minutes / run(still(number, minutes)))}
        for number in IDLE
    ]


def measured_probes(number: int, minutes: int) -> dict[str, Any]:
    """What one probe costs beyond idling, beside its ExecSync made directly."""
    probes = number * minutes * 60 // PROBE["periodSeconds"]
    took = run(still(number, minutes, probed=True)) - run(still(number, minutes))
    alone = run(execs(probes))
    return {
        "pods": number,
        "probes": probes,
        "us_per_probe": round(took / probes * 1e6, 1),
        "times_alone": round(took / alone, 2),
    }


async def execs(number: int) -> float:
    """The processor time of so many execs made directly."""
    async with BareNode() as node:
        node.create(pod("pod"))
        await node.until("Running", ["pod"])
        request = cri.ExecSyncRequest(
            container_id=next(iter(node.core.store.containers)), cmd=PROBE["exec"]["command"], timeout=1
        )
        began = time.process_time()
        for _ in range(number):
            await node.runtime.ExecSync(request, timeout=120)
        return time.process_time() - began


def print_report(made: dict[str, Any]) -> None:
    """The value as text."""
    if life := made.get("lives"):
        met = "met" if life["times_alone"] <= LIFE_TARGET else "missed"
        print(f"one life: {life['calls_per_life']} calls of the runtime,", end=" ")
        print(f"{life['requests_per_life']} requests to the API server; {life['lives_per_second']} lives/s")
        print(f"  the same calls alone {life['alone_per_second']}/s: the reference costs", end=" ")
        print(f"{life['times_alone']} times as much (target {LIFE_TARGET}: {met})")
        print(f"  with the requests, {life['times_both_fakes']} times as much as both fakes alone")
    if many := made.get("crowd"):
        met = "met" if many["seconds"] <= CROWD_TARGET else "missed"
        print(f"{many['pods']} pods for {many['minutes']} minutes: {many['seconds']} s", end=" ")
        print(f"(target {CROWD_TARGET}: {met})")
        print(f"  {many['ms_per_pod']} ms a pod, {many['times_few']} times one of {FEW}")
    for row in made.get("idle", ()):
        print(f"{row['pods']:5} idle pods: {row['virtual_per_second']:8,} virtual seconds a second")
    if probing := made.get("probes"):
        print(f"{probing['pods']} probed pods: {probing['us_per_probe']} us a probe,", end=" ")
        print(f"{probing['times_alone']} times its ExecSync alone")


def profiled(work: Callable[[], object]) -> None:
    """Run it under the profiler, and print the dearest functions."""
    profile = cProfile.Profile()
    profile.runcall(work)
    pstats.Stats(profile).sort_stats("tottime").print_stats(DEAREST)


def main() -> int:
    """Bench, print, and return the exit status."""
    parser = argparse.ArgumentParser(description="How much does the reference kubelet cost?")
    parser.add_argument("what", nargs="*", metavar="lives|crowd|idle|probes", help="all of them by default")
    parser.add_argument("--pods", type=int, default=PODS, metavar="N", help="the size of the crowd")
    parser.add_argument("--minutes", type=int, default=MINUTES, metavar="N", help="of virtual time")
    parser.add_argument("--format", choices=("terminal", "json"), default="terminal")
    parser.add_argument("--profile", action="store_true", help="tell which functions cost most")
    options = parser.parse_args()

    # What the kubelet says is no result.
    logging.getLogger("kubelet_reference").addHandler(logging.NullHandler())
    works: dict[str, Callable[[], Any]] = {
        "lives": measured_lives,
        "crowd": lambda: measured_crowd(options.pods, options.minutes),
        "idle": lambda: measured_idle(options.minutes),
        "probes": lambda: measured_probes(options.pods, options.minutes),
    }
    unknown = [what for what in options.what if what not in works]
    if unknown:
        parser.error(f"choose among {', '.join(works)}, not {', '.join(unknown)}")
    chosen = options.what or list(works)
    if options.profile:
        profile_of: dict[str, Callable[[], Any]] = {
            "lives": lambda: run(lives(LIVES)),
            "crowd": lambda: run(crowd(options.pods, options.minutes)),
            "idle": lambda: run(still(IDLE[-1], options.minutes)),
            "probes": lambda: run(still(options.pods, options.minutes, probed=True)),
        }
        for what in chosen:
            profiled(profile_of[what])
        return 0
    made = {what: works[what]() for what in chosen}
    if options.format == "json":
        print(json.dumps(made, indent=2))
    else:
        print_report(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
