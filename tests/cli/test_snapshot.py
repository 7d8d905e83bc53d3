"""`snapshot` writes a text a scenario, and says what it could not do."""

from pathlib import Path

import pytest
from command import in_process, in_subprocess

NAME = "sandbox.killed_sandbox_is_replaced"


def test_a_text_is_written_for_each_scenario(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The text begins with the scenario, what it holds and the target, and goes on with the behaviour."""
    result = in_process(capsys, "snapshot", NAME, "-o", tmp_path / "out", "--kubernetes", "1.26")

    text = (tmp_path / "out/sandbox/killed_sandbox_is_replaced.txt").read_text(encoding="utf-8")
    assert result.out == f"1 scenario written to {tmp_path / 'out'}\n"
    assert text.startswith(
        f"{NAME}\nA pod whose sandbox died is stopped and gets a new sandbox with the next attempt.\n"
        "Kubelet reference on runtime fake, Kubernetes 1.26.\n\nkubelet started\n"
    )
    assert "\nruntime web#0 sandbox-died\n" in text
    assert text.endswith("\n\nend\n")


def test_a_glob_names_many(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Scenarios are chosen by name or by pattern."""
    result = in_process(capsys, "snapshot", "deadline.*", "-o", tmp_path)

    assert result.code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["deadline"]
    assert f"{len(list(tmp_path.glob('deadline/*.txt')))} scenarios written" in result.out


@pytest.mark.campaign
def test_a_kubelet_of_its_own_process_is_played(tmp_path: Path) -> None:
    """It is played on wall time, and its text is of the same form."""
    ended = in_subprocess(
        "snapshot", "loop.name_servers_are_limited", "--kubelet", "reference-process", "-o", tmp_path
    )

    assert ended.code == 0, ended.err
    [text] = tmp_path.glob("loop/*.txt")
    assert "Kubelet reference-process on runtime fake, Kubernetes 1.32." in text.read_text(encoding="utf-8")
    assert text.read_text(encoding="utf-8").endswith("\n\nend\n")


def test_an_unknown_scenario_is_a_usage_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A name that fits nothing is an error, and nothing is written."""
    result = in_process(capsys, "snapshot", "sandbox.nothing", "-o", tmp_path / "out")

    assert result.code == 2
    assert (
        "there is no scenario sandbox.nothing; nearest: sandbox.*; `kubelet-conformance list --scenarios`"
        in result.err
    )
    assert not (tmp_path / "out").exists()


def test_an_unknown_kubelet_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A target that cannot be chosen is an error without a traceback."""
    result = in_process(capsys, "snapshot", NAME, "-o", tmp_path / "out", "--kubelet", "bug:NONE")

    assert result.code == 2
    assert "NONE" in result.err


def test_a_kubelet_with_a_bug_shows_in_the_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Two kubelets are compared by their texts."""
    for kubelet in ("reference", "bug:CTRD-9545"):
        assert in_process(
            capsys, "snapshot", NAME, "-o", tmp_path / kubelet[:3], "--kubelet", kubelet
        ).code in {0, 3}
    texts = [
        (tmp_path / one / "sandbox/killed_sandbox_is_replaced.txt").read_text() for one in ("ref", "bug")
    ]

    assert texts[0].splitlines()[4:] != texts[1].splitlines()[4:]
