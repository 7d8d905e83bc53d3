"""The reference equals the recorded kubelets that have an API server, but for differences with a reason."""

from pathlib import Path

import pytest
from command import in_process
from shared_plays import SharedPlays

from kubelet_fixtures import runs

KNOWN = Path(__file__).with_name("upstream.toml")
EQUAL_MIN = {"1.26": 375, "1.32": 400, "1.36": 400}
"""By version, how many scenarios have to be equal."""


@pytest.mark.campaign
@pytest.mark.parametrize("version", EQUAL_MIN)
def test_the_reference_equals_upstream(
    version: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, plays: SharedPlays
) -> None:
    """Nothing differs that is not known, nothing known is stale, and most of all scenarios are equal."""
    (tmp_path / "traces").mkdir()
    for play in plays.every(version).values():
        (tmp_path / "traces" / play.trace.name).symlink_to(play.trace)
    pack = runs() / f"kubernetes-{version}-api.tar.xz"
    ended = in_process(capsys, "compare", tmp_path, pack, "--known", KNOWN)

    assert ended.code == 0, ended.out
    assert int(ended.out.rpartition("EQUAL: ")[2].partition(" equal")[0]) >= EQUAL_MIN[version]
