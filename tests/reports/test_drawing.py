"""A trace as a timeline in characters, by the command `show`."""

from pathlib import Path

import pytest
from command import Ended, in_process
from trace_builder import TraceBuilder


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--pod", "default/wob"), "default/web"), (("--from", "2", "--to", "1"), "after")],
)
def test_refuses(
    capsys: pytest.CaptureFixture[str], path: Path, arguments: tuple[str, ...], said: str
) -> None:
    """A pod that is not there, and a span that is none, are refused, and the nearest pod is named."""
    ended = shown(capsys, path, *arguments)

    assert ended.code == 2
    assert said in ended.err
