"""A runtime that lies breaks contracts, and never the suite: each call in turn says nothing, or fails."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import Message

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.runtime_checks.judging import judged, scenarios_for, the_runtimes
from kubelet_conformance.runtime_checks.running import CheckResult, run_one
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.targets.runtime import on_virtual_time, opened_in_process
from kubelet_fakes.runtime import CallError

SILENT = {
    "Version": "CRI-01",
    "Status": "CRI-02",
    "RunPodSandbox": "CRI-03",
    "PodSandboxStatus": "CRI-34",
    "ListPodSandbox": "CRI-17",
    "CreateContainer": "CRI-11",
    "ListContainers": "CRI-17",
    "ContainerStatus": "CRI-34",
    "ExecSync": "CRI-26",
    "PullImage": "CRI-24",
}
"""Calls that answer with an empty message, and a contract that this breaks."""
FAILING = {
    "Version": "CRI-01",
    "Status": "CRI-02",
    "StopPodSandbox": "CRI-05",
    "RemovePodSandbox": "CRI-06",
    "PodSandboxStatus": "CRI-07",
    "ContainerStatus": "CRI-07",
    "StopContainer": "CRI-08",
    "ListPodSandbox": "CRI-09",
    "RemoveContainer": "CRI-15",
    "StartContainer": "CRI-12",
    "PullImage": "CRI-40",
}
"""Calls that fail with INTERNAL, and a contract that this breaks."""


class Liar:
    """Both services of a right runtime, but for one call, which takes place and says nothing, or fails."""

    def __init__(self, right: Any, rpc: str, *, silent: bool) -> None:
        self._right, self._rpc, self._silent = right, rpc, silent

    def __getattr__(self, name: str) -> Any:
        return self._lie if name == self._rpc else getattr(self._right, name)

    async def _lie(self, request: Message, **deadline: float) -> Any:
        if not self._silent:
            raise CallError(grpc.StatusCode.INTERNAL, "no")
        await getattr(self._right, self._rpc)(request, **deadline)
        return getattr(cri, request.DESCRIPTOR.name.replace("Request", "Response"))()


def run_on_a_liar(rpc: str, contract: str, *, silent: bool) -> list[CheckResult]:
    """The scenarios of a contract, run on a runtime that lies."""
    outcomes: list[CheckResult] = []

    async def main(number: int) -> None:
        right, scenario = (
            opened_in_process("fake")(),
            scenarios_for(every_runtime_scenario(), [contract])[number],
        )
        liar = replace(right, services=Liar(right.services, rpc, silent=silent))
        outcomes.append(await run_one(liar, scenario, "run", "1.32", virtual=True))

    for number in range(len(scenarios_for(every_runtime_scenario(), [contract]))):
        on_virtual_time(main(number))
    return outcomes


@pytest.mark.parametrize(
    ("rpc", "contract", "silent"),
    [
        *((rpc, each, True) for rpc, each in SILENT.items()),
        *((rpc, each, False) for rpc, each in FAILING.items()),
    ],
)
def test_a_liar_breaks_a_contract(tmp_path: Path, rpc: str, contract: str, *, silent: bool) -> None:
    """What is wrong is reported as a break of a contract, and nothing as a failure of the suite."""
    outcomes = run_on_a_liar(rpc, contract, silent=silent)
    check, played = judged(outcomes, list(the_runtimes().values()), None, tmp_path)

    assert check.results[contract].outcome.verdict is Verdict.BROKEN
    assert [each.failed for each in played if each.failed] == []
    assert not [key for key, one in check.results.items() if one.outcome.verdict is Verdict.ERROR]
