"""The reference as 1.36 equals the recorded kubelet 1.36.2, but for differences with a reason."""

import tarfile
from pathlib import Path

import pytest
from command import in_process

from kubelet_fixtures import runs

KNOWN = Path(__file__).with_name("kubernetes-1.36.toml")
EQUAL_MIN = 400


@pytest.mark.slow
def test_the_reference_equals_the_newest_kubelet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nothing differs that is not known, nothing known is stale, and most of all scenarios are equal."""
    with tarfile.open(runs() / "kubernetes-1.36-api.tar.xz") as pack:
        pack.extractall(tmp_path, filter="data")
    ended = in_process(capsys, "compare", "reference", tmp_path, "--known", KNOWN)

    assert ended.code == 0, ended.out
    assert int(ended.out.rpartition("EQUAL: ")[2].partition(" equal")[0]) >= EQUAL_MIN
