"""A trace as a timeline in characters, by the command `show`."""

from pathlib import Path

import pytest
from command import Ended, in_process
from trace_builder import TraceBuilder

from kubelet_conformance.reports.timeline.drawing import Extract
from kubelet_conformance.reports.timeline.following import followed_lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A pod of one container runs, is looked at, and is stopped after a while; another one runs."""
    s = TraceBuilder(scenario="plain")
    web = s.pod()
    sandbox = s.run_sandbox(web)
    s.run_container(web, sandbox)
    s.call("ImageStatus", {"image": {"image": "x"}}, {})
    s.wait(30).record("event", reason="Scheduled", uid="u", message="late")
    s.run_sandbox(s.pod("other"))
    found = tmp_path / "t.jsonl"
    found.write_bytes(s.text())
    return found


def shown(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Ended:
    """What `show` prints."""
    return in_process(capsys, "show", *arguments)


def test_shows_lanes_and_rows(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    """Each lane has a column, each call a row with its sign there, and a pause says how long it is."""
    ended = shown(capsys, path)

    assert ended.code == 0
    assert "- default/web sandbox\n" in ended.out
    assert "- default/web container c1\n" in ended.out
    assert "  RunPodSandbox default/web attempt 0" in ended.out
    assert "s later)\n" in ended.out


def test_shows_a_part(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    """Pods, a span of time and changes alone are shown where they are asked for."""
    changes = shown(capsys, path, "--changes").out

    assert "Scheduled" in shown(capsys, path).out
    assert "Scheduled" not in changes
    assert "ImageStatus" not in changes
    assert "- default/other sandbox" not in shown(capsys, path, "--pod", "default/web").out
    assert "default/web" not in shown(capsys, path, "--from", "29").out
    assert shown(capsys, path, "--around", "#1").out == shown(capsys, path, "--to", "5").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--pod", "default/wob"), "default/web"),
        (("--from", "2", "--to", "1"), "after"),
        (("--follow", "--output", "x"), "leave out --output"),
        (("--follow", "--around", "1"), "leave out --follow"),
        (("--around", "1", "--to", "1"), "leave out --from and --to"),
        (("--around", "one"), "'#77'"),
        (("--around", "#100000"), "has no record #100000; its last is #"),
    ],
)
def test_refuses(
    capsys: pytest.CaptureFixture[str], path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """A pod that is not there, and a span that is none, are refused, and the nearest pod is named."""
    ended = shown(capsys, path, *arguments)

    assert ended.code == 2
    assert said in ended.err


def rows(lines: list[str]) -> list[str]:
    """What happened in words, row by row."""
    return [line.split("  ")[-1].strip() for line in lines if "  #" in line]


def test_follows_what_is_being_written(
    capsys: pytest.CaptureFixture[str], path: Path, tmp_path: Path
) -> None:
    """Whatever comes when nothing more was there is shown, and so is the next file of the recording."""
    text, growing = path.read_bytes(), tmp_path / "growing.jsonl"
    pieces = [text[begin : begin + 150] for begin in range(0, len(text), 150)]
    growing.touch()

    def wait() -> None:
        if pieces:
            with growing.open("ab") as file:
                file.write(pieces.pop(0))
        else:
            growing.with_name("growing.1.jsonl").write_bytes(text)

    followed = list(followed_lines(growing, Extract(), wait))
    once = sorted(rows(shown(capsys, path).out.splitlines()))

    assert sorted(rows(followed)) == sorted(once * 2)
    assert any(line.endswith("- default/web container c1") for line in followed)
    assert any(line.endswith(" s later)") for line in followed)


def test_column_of_a_pod_that_is_gone_is_used_again(tmp_path: Path) -> None:
    """However many pods come and go, a row is no wider than those that are there need."""
    s, path = TraceBuilder(scenario="plain"), tmp_path / "t.jsonl"
    for name in ("web", "other", "third"):
        sandbox = s.run_sandbox(s.pod(name))
        s.call("StopPodSandbox", {"pod_sandbox_id": sandbox.id}, {})
        s.call("RemovePodSandbox", {"pod_sandbox_id": sandbox.id}, {})
    path.write_bytes(s.text())
    heads = [
        line.partition(".-")[0] for line in followed_lines(path, Extract(), lambda: None) if ".-" in line
    ]

    assert max(map(len, heads)) < 23 + 4


def test_ctrl_c_ends_what_is_followed(
    capsys: pytest.CaptureFixture[str], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is how a recording without end is left: the exit code is 0, and nothing is complained of."""

    class Interrupted:
        def wait(self, seconds: float) -> None:
            raise KeyboardInterrupt(seconds)

    monkeypatch.setattr("kubelet_conformance.cli.commands.slice.Event", Interrupted)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    ended = shown(capsys, path, "--follow")

    assert (ended.code, ended.err) == (0, "")
    assert "  RunPodSandbox default/other" in ended.out


def test_what_cannot_be_followed_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file that is not there is one message."""
    ended = shown(capsys, tmp_path / "none.jsonl", "--follow")

    assert ended.code == 2
    assert "none.jsonl: cannot be read" in ended.err
