"""Scenarios played on the reference kubelet and a private containerd, in real time, with the tap between."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.contract.baseline import Baseline
from kubelet_conformance.contract.checking import Judged, judge_file
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import Node
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.containerd import PrivateContainerd, leftovers
from kubelet_conformance.targets.controls import Target
from kubelet_conformance.targets.opening import open_live_stage
from kubelet_conformance.targets.stage import Act, Ended

Scenario = Callable[[Node], Awaitable[None]]
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class RunResult:
    """How scenarios ended, and what was judged of their trace."""

    ended: Mapping[int, Ended]
    judged: Judged


async def run_scenarios(
    containerd: PrivateContainerd, scenarios: Mapping[str, Scenario], folder: Path, **settings: object
) -> RunResult:
    """Play scenarios, side by side on one node, and judge the trace by every contract.

    `settings` are fields of the kubelet's configuration, for one scenario alone.
    """
    stage = open_live_stage(Choice(runtime=containerd.address, kubernetes="1.32"))
    try:
        await stage.open(["img:1"])
        acts = [
            Act(number, name, partial(_on, scenario), settings, PATIENCE_SECONDS)
            for number, (name, scenario) in enumerate(scenarios.items())
        ]
        life = await stage.play(acts, shared=len(acts) > 1, concurrency=len(acts))
    finally:
        await stage.close()
    trace = folder / "trace.jsonl"
    trace.write_bytes(life.trace)
    return RunResult(life.ended, judge_file(str(trace), every_contract().values()))


async def _on(scenario: Scenario, target: Target) -> None:
    await scenario(Node(target))


def broken(judged: Judged, baseline: Path) -> list[str]:
    """What was broken, or could not be judged, with the evidence in words; `baseline` tells what is known."""
    known = Baseline.read(str(baseline), every_contract())
    outcomes = {
        name: known.applied(name, outcome, judged.trace.gates) for name, outcome in judged.outcomes.items()
    }
    bad = {Verdict.BROKEN, Verdict.ERROR}
    return [
        f"{name} {outcome.verdict}: {[(each.clause, each.seq, each.text) for each in outcome.evidence[:3]]}"
        for name, outcome in outcomes.items()
        if outcome.verdict in bad
    ]


def remaining(containerd: PrivateContainerd) -> list[str]:
    """What pods have left at a containerd that runs: all but itself."""
    own = (f"process {containerd.pid}:", "bridge ", "folder ", "lease last_reserved_ip", "lease lock")
    return [line for line in leftovers(containerd.home) if not line.startswith(own)]


async def process_of(runtime: Any, container_id: str) -> int:
    """The first process of a container, on this machine."""
    request = cri.ContainerStatusRequest(container_id=container_id, verbose=True)
    reported = await runtime.ContainerStatus(request)
    pid: int = json.loads(reported.info["info"])["pid"]
    return pid
