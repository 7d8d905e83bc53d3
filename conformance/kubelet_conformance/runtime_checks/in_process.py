"""Stories told to a fake runtime in this process, named so that they can stand beside scenarios."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from kubelet_conformance.reports.played import Played
from kubelet_conformance.runtime_checks.judging import judged, the_runtimes
from kubelet_conformance.runtime_checks.running import run_stories
from kubelet_conformance.runtime_checks.story import Story
from kubelet_conformance.targets.direct import Wanted


def told_directly(runtime: str, stories: Iterable[Story], kubernetes: str) -> dict[str, tuple[bytes, Played]]:
    """What became of stories told to a fake in process, by `Story.title`: each trace, and its judgement."""
    run = run_stories(Wanted(runtime, "", "run", 0), stories, kubernetes)
    told = {each.story.name: each for each in run.told}
    with tempfile.TemporaryDirectory(prefix="kubelet-conformance-") as folder:
        _, played = judged(run.told, list(the_runtimes().values()), None, Path(folder))
    return {told[each.scenario].story.title: (told[each.scenario].trace, each) for each in played}
