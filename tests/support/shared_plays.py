"""Every scenario on the reference, played and judged once for all tests of a session and all its workers."""

import json
import os
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from kubelet_conformance.campaigns.coverage.decisions import decisions, forget_decisions
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.play import judge, packed, perform, unpacked
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.targets.stage import Stage


class Play(NamedTuple):
    """What came of a scenario: where its trace is, the verdicts of every contract, and which rows decided."""

    trace: Path
    played: Played
    decided: Counter[str]


class SharedPlays:
    """Plays in a folder that all workers share.

    Two workers that need the same play at once both make it; a file is renamed into place when it is whole.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _stage(self) -> Stage:
        return open_stage(Choice())

    def of(self, scenario: str, kubernetes: str = "") -> Play:
        """One play, as that version such as "1.32", or as the one that the scenario is meant for."""
        version = kubernetes or scenario_of(every_scenario()[scenario]).nearest()
        trace = self._folder / version / f"{scenario}.jsonl"
        verdicts, decided = trace.with_suffix(".verdicts"), trace.with_suffix(".decided")
        if not verdicts.exists():
            trace.parent.mkdir(parents=True, exist_ok=True)
            forget_decisions()
            done = perform(every_scenario()[scenario], scenario, self._stage, version)
            _put(trace, done.trace)
            judged, wrong = judge(trace, every_contract().values(), scenario, done.trace)
            played = Played(scenario, judged, done.unmet, wrong or done.failed, died=done.died)
            _put(decided, json.dumps(decisions()).encode())
            _put(verdicts, packed(played).encode())
        return Play(trace, unpacked(verdicts.read_text()), Counter(json.loads(decided.read_text())))

    def every(self, kubernetes: str = "") -> dict[str, Play]:
        """All scenarios that are meant for that version; without one all that there are."""
        return {
            name: self.of(name, kubernetes)
            for name, body in every_scenario().items()
            if not kubernetes or scenario_of(body).is_meant_for(kubernetes)
        }


def _put(path: Path, content: bytes) -> None:
    """Write a file that nobody ever sees in part."""
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)
