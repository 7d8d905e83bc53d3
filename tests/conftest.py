"""What all tests have in common."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from shared_plays import SharedPlays

from kubelet_conformance.contract.deferred_gc import deferred_gc

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: some tests wait for processes that they start."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session", autouse=True)
def heeds_sigint() -> Iterator[None]:
    """Processes that a test starts end at SIGINT, also where a script's background job ignores it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def collects_rarely() -> Iterator[None]:
    """No test makes Python look for garbage in what was imported and collected before the first one."""
    with deferred_gc():
        yield


@pytest.fixture(scope="session", autouse=True)
def leaves_no_histories() -> Iterator[None]:
    """No test keeps a history that broke something in the folder that pytest was started in."""
    kept = Path(".kubelet-conformance").resolve()
    before = kept.exists()
    yield

    assert kept.exists() == before, f"a test wrote {kept}: give it a temporary folder"


@pytest.fixture(scope="session")
def plays(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> SharedPlays:
    """Every scenario on the reference, played once for all workers."""
    mine = tmp_path_factory.getbasetemp()
    return SharedPlays((mine if worker_id == "master" else mine.parent) / "plays")
