"""Histories on wall time: what breaks is shrunk on the reference if it breaks it too, else on the kubelet."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command import in_process
from virtual_live_run import VirtualLiveRun

from kubelet_conformance.campaigns import live_histories
from kubelet_conformance.campaigns.histories.campaign import HistoriesRequest
from kubelet_conformance.campaigns.histories.history import History, KeptHistory, as_json, kept_in
from kubelet_conformance.campaigns.histories.play import play
from kubelet_conformance.campaigns.histories.steps import Step, Wait, Want
from kubelet_conformance.campaigns.live_histories import LiveCampaign
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.node import container, pod
from kubelet_conformance.node.manifests import exec_probe
from kubelet_conformance.targets.choice import Choice

UNREADY = exec_probe("x 1 0", periodSeconds=1)
BREAKS: tuple[Step, ...] = (
    Wait(1),
    Want(pod(container("c1", "run", readinessProbe=UNREADY), container("c2", "run"), grace=5)),
    Wait(12),
)
"""A pod whose container is never ready: some kubelets kill it."""


def campaign(live: VirtualLiveRun, folder: Path, kept: Path) -> LiveCampaign:
    """A campaign on this kubelet."""
    return LiveCampaign(live.session(folder), lambda _: True, kept)


def request(*steps: Step) -> HistoriesRequest:
    """Play this history only."""
    return HistoriesRequest(0, kept=[KeptHistory(Path("mine.json"), History(steps))])


def test_what_the_reference_keeps_is_shrunk_on_the_kubelet(tmp_path: Path) -> None:
    """Steps and containers that the break does without are gone; the shrunk history is judged and kept.

    So is the log of its kubelet, and no log of those that were only tried.
    """
    live, kept = VirtualLiveRun("bug:K8S-9649", tmp_path), tmp_path / "kept"
    run = campaign(live, tmp_path, kept)

    run.run(request(*BREAKS))

    (found,) = run.found
    (history,) = kept_in(kept)
    (want,) = (step for step in history.history.steps if isinstance(step, Want))
    assert found.what == "RESTART-02"
    assert [each["name"] for each in want.manifest["spec"]["containers"]] == ["c1"]
    assert found.file == str(history.path)
    assert run.check.results["RESTART-02"].outcome.verdict is Verdict.BROKEN
    assert [trace.path for trace in run.check.traces] == [str(tmp_path / f"{history.path.stem}.jsonl")]
    assert [log.stem for log in tmp_path.glob("*.log")] == [history.path.stem]
    assert len(live.played_alone) > 1


def test_what_the_reference_breaks_too_is_shrunk_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what came of it is played on the kubelet, and the report says so."""

    def wrong(history: History, choice: Choice, contracts: Any) -> Any:
        return play(history, Choice("bug:K8S-9649", kubernetes=choice.kubernetes), contracts)

    monkeypatch.setattr(live_histories, "play", partial(wrong))
    live = VirtualLiveRun("bug:K8S-9649", tmp_path)
    run = campaign(live, tmp_path, tmp_path / "kept")

    run.run(request(*BREAKS))

    (found,) = run.found
    assert found.words[0] == "the reference as 1.32 breaks it too"
    assert len(live.played_alone) == 1


def test_what_is_kept_is_no_find(tmp_path: Path) -> None:
    """A history that breaks nothing is counted, and its verdicts are in the check."""
    run = campaign(VirtualLiveRun("reference", tmp_path), tmp_path, tmp_path / "kept")

    run.run(request(*BREAKS))

    assert (run.played, run.found, len(run.check.traces)) == (1, [], 1)


def test_a_history_on_a_kubelet_in_a_process(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The command plays it over the served API server, and reports it as one of histories."""
    monkeypatch.setattr(live_histories, "_WATCH_SECONDS", 0.0)
    file = tmp_path / "mine.json"
    file.write_bytes(as_json(History((Want(pod(grace=1)), Wait(1)))))

    ended = in_process(
        capsys, "run", "--history", str(file), "--kubelet", "reference-process", "--record", str(tmp_path)
    )

    assert ended.code == 0, ended.out + ended.err
    assert "Played 1 history on kubelet reference-process (Kubernetes 1.32)" in ended.out
    assert [each.name for each in (tmp_path / "traces").iterdir()] == ["node.jsonl"]
