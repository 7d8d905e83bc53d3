"""What all these tests need: one private containerd, and a machine on which it can run."""

import asyncio
from collections.abc import Generator

import pytest

from kubelet_conformance.targets.containerd import PrivateContainerd, missing

CANNOT_RUN = 2


def pytest_sessionstart() -> None:
    """Fail, and do not skip, where no containerd can run."""
    lacking = missing()
    if lacking:
        reported = "\n".join(["no private containerd can run here:", *(f"- {each}" for each in lacking)])
        pytest.exit(reported, returncode=CANNOT_RUN)


@pytest.fixture(scope="session")
def containerd() -> Generator[PrivateContainerd]:
    """One for all tests that leave it as they found it."""
    private = PrivateContainerd()
    asyncio.run(private.start())
    yield private
    private.stop()
