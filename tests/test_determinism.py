"""The same scenario gives the same trace, byte for byte, in processes whose hashes differ."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIOS = (
    "runtime.pods_do_not_wait_for_each_other",
    "sandbox.killed_sandbox_is_replaced",
    "hooks.pre_stop_hooks_run_side_by_side",
    "probes.each_probe_has_its_own_cadence",
    "images.pulls_queue_up",
    "garbage.newest_dead_record_is_kept",
    "static_pods.edited_manifest_is_another_pod",
    "kubelet_restart.deletions_while_down_are_made_up_for",
)
"""Scenarios in which much goes on at once."""
PROGRAM = """
import sys
from pathlib import Path

from kubelet_conformance.node import Node, scenario_of
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage

folder, *names = sys.argv[1:]
for name in names:
    scenario = every_scenario()[name]

    async def on(target):
        await scenario(node=Node(target))

    declared = scenario_of(scenario)
    trace = open_stage(Choice(seed=7)).play(on, name, dict(declared.settings), declared.nearest())
    Path(folder, name).write_bytes(trace)
"""


def played(folder: Path, hash_seed: str) -> dict[str, bytes]:
    """The traces of the scenarios, played in a process of its own."""
    folder.mkdir()
    command = [sys.executable, "-c", PROGRAM, str(folder), *SCENARIOS]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    subprocess.run(command, check=True, env=environment, capture_output=True, timeout=120)
    return {name: (folder / name).read_bytes() for name in SCENARIOS}


@pytest.mark.slow
def test_hashes_make_no_difference(tmp_path: Path) -> None:
    """Nothing of a trace depends on the order in which a process keeps its sets."""
    first, second = played(tmp_path / "one", "1"), played(tmp_path / "two", "2")

    assert [name for name in SCENARIOS if first[name] != second[name]] == []
    assert all(first.values())
