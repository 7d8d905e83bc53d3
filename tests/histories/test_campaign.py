"""Runs of histories: what is found is shrunk, kept, reported, and played first the next time."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from command import in_process
from jsonschema import Draft202012Validator
from sampling import sampled

from kubelet_conformance.campaigns.histories import campaign
from kubelet_conformance.campaigns.histories.campaign import Campaign, HistoriesRequest
from kubelet_conformance.campaigns.histories.history import History
from kubelet_conformance.campaigns.histories.play import PlayedHistory, as_words, play
from kubelet_conformance.campaigns.histories.search import CHUNK, chunks, seek
from kubelet_conformance.contract.checking import Check
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.targets.choice import Choice

BUG = "bug:K8S-9649"
"""A kubelet that kills a container whose readiness probe fails."""
FOUND, BROKE = "bug:MUT-START-10", "START-10"
"""A kubelet that some histories show to be wrong, the third of seed 2 for one, and what it breaks."""
MORE = 5
"""So many histories are drawn after the chunk with the find."""
PARTS = 100
"""The thousand histories are of so many parts."""
SCHEMA = resources.files("kubelet_conformance.run_record").joinpath("run.schema.json")
VALIDATOR: Any = Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_parts_of_a_run_are_the_run() -> None:
    """Shards share the chunks out: none is missing and none is there twice."""
    total = 7 * CHUNK + 3
    parts = [list(chunks(total, 5, shard, 3)) for shard in (1, 2, 3)]

    assert sorted(each.seed for part in parts for each in part) == [each.seed for each in chunks(total, 5)]
    assert sum(each.size for part in parts for each in part) == total
    assert not {each.seed for each in chunks(total, 5)} & {each.seed for each in chunks(total, 6)}


def test_what_is_kept_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    """Histories that break nothing end with 0, and nothing is left in the folder."""
    ended = in_process(capsys, "run", "--histories", "5", "--seed", "3")

    assert ended.code == 0, ended.out
    assert "Played 5 histories on kubelet reference (Kubernetes 1.32)" in ended.out
    assert list(Path().iterdir()) == []


def test_interrupt_reports_what_was_played(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends with 130; what was over by then is reported, and marked as incomplete."""
    left = [True, False, False]

    def interrupted(*given: Any, **options: Any) -> PlayedHistory:
        if left.pop():
            raise KeyboardInterrupt
        return play(*given, **options)

    monkeypatch.setattr(campaign, "play", interrupted)
    ended = in_process(capsys, "run", "--histories", "5", "--format", "json")
    report = json.loads(ended.out)

    assert (ended.code, "error: interrupted\n" in ended.err) == (130, True)
    assert (report["ended"], report["histories"]["played"]) == ("interrupted", 2)
    VALIDATOR.validate(report)


@pytest.mark.slow
def test_a_find_is_reported_kept_and_played_first(capsys: pytest.CaptureFixture[str]) -> None:
    """A bug is found: the report has the history in words and as a scenario, and the file plays it again."""
    options = f"--histories {CHUNK + MORE} --seed 2 --kubelet {FOUND} --format json"
    found = in_process(capsys, "run", BROKE, *options.split())
    report = json.loads(found.out)
    VALIDATOR.validate(report)
    first = report["histories"]["found"][0]
    again = in_process(capsys, *first["again"].split()[1:])
    kept = in_process(capsys, "run", BROKE, "--histories", "0", "--kubelet", FOUND)
    right = in_process(capsys, "run", "--history", first["file"])

    assert found.code == report["exit_code"] == 1
    assert first["broke"] == BROKE
    assert "async def test_history_that_breaks_start_10(node: Node)" in first["scenario"]
    assert len(first["words"]) < 12, first["words"]
    assert again.code == kept.code == 1
    assert f"BROKEN  {BROKE}" in again.out
    assert right.code == 0, right.out
    assert [each.suffix for each in Path(".kubelet-conformance/histories").iterdir()] == [".json"]


@pytest.mark.slow
def test_what_fails_no_run_is_a_find_all_the_same(tmp_path: Path) -> None:
    """A contract that is broken and does not count is reported with its history, and the search goes on."""
    contract, choice = every_contract()[BROKE], Choice(FOUND, kubernetes="1.32")
    campaign = Campaign(
        choice, [contract], lambda _: False, Check([contract]), tmp_path, tmp_path / "kept", lambda _: None
    )
    campaign.run(HistoriesRequest(CHUNK + MORE, seed=2))

    assert [each.what for each in campaign.found] == [BROKE]
    assert campaign.check.results[BROKE].outcome.verdict is Verdict.BROKEN
    assert campaign.played + campaign.repeated > MORE


@pytest.mark.parametrize("form", ["terminal", "markdown", "junit"])
def test_every_form_tells_of_a_find(capsys: pytest.CaptureFixture[str], form: str) -> None:
    """Whatever its form, a report names the contract that was broken."""
    Path("mine.json").write_bytes(HISTORY)
    ended = in_process(
        capsys, "run", "PROBE-10", "--history", "mine.json", "--kubelet", BUG, "--format", form
    )

    assert ended.code == 1, ended.err
    assert "PROBE-10" in ended.out


HISTORY = b"""{"steps": [
  {"step": "want", "manifest": {"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "containers": [
      {"name": "c1", "image": "img:1", "command": ["run"],
       "readinessProbe": {"exec": {"command": ["x", "1", "0"]}, "periodSeconds": 2,
        "failureThreshold": 1}}]}}},
  {"step": "wait", "seconds": 40}]}
"""


def test_the_same_seed_gives_the_same_histories() -> None:
    """A run is decided by its seed: another one draws other histories."""
    choice = Choice(kubernetes="1.32")

    def drawn(run_seed: int) -> list[str]:
        found: list[str] = []
        (chunk,) = chunks(5, run_seed)
        seek(
            chunk,
            lambda history: play(history, choice, ()),
            lambda _: (),
            drawn=lambda played: found.append(repr(played and played.history)),
        )
        return found

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_a_history_that_is_drawn_again_is_not_played_again() -> None:
    """Each history of a chunk is played once, and the run reports how many were drawn once more."""
    played: list[str] = []
    drawn: list[PlayedHistory | None] = []
    lived = play(History(()), Choice(kubernetes="1.32"), ())

    def draw(history: History) -> PlayedHistory:
        played.append(repr(history))
        return lived

    (chunk,) = chunks(CHUNK, 0)
    seek(chunk, draw, lambda _: (), drawn=drawn.append)

    assert len(set(played)) == len(played)
    assert len(played) == len(drawn) - drawn.count(None) < len(drawn) == CHUNK


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("--histories", "-1"), "-1 is not in the range"),
        (("--histories", "5", "--shard", "3/2"), "3/2 is no part of a run"),
        (("--history", "none.json"), "none.json: cannot be read"),
        (("--histories", "5", "--kubelet", "bug:none"), "none"),
        (("--histories", "5", "--runtime", "containerd"), "make the runtime misbehave"),
        (("--histories", "5", "NONE-01"), "NONE-01"),
        (("--histories", "5", "--kubelet", "./none"), "none: cannot be executed"),
    ],
)
def test_wrong_usage_ends_with_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], reported: str
) -> None:
    """What cannot be played is refused with the reason."""
    ended = in_process(capsys, "run", *arguments)

    assert ended.code == 2
    assert reported in ended.err


@pytest.mark.slow
@pytest.mark.parametrize("part", sampled(range(1, PARTS + 1), PARTS))
def test_a_thousand_histories_break_nothing(part: int) -> None:
    """The reference keeps every contract in a thousand generated histories, and its node settles."""
    contracts, choice = list(every_contract().values()), Choice(kubernetes="1.32")
    for chunk in chunks(1000, 0, part, PARTS):
        found = seek(chunk, lambda history: play(history, choice, contracts), lambda each: each.broken())

        assert found is None, "\n".join([found.what, *as_words(found.played)])
