"""What all these tests need: Chromium, which shows the page."""

import shutil

import pytest
from browser import CHROMIUM

CANNOT_RUN = 2


def pytest_sessionstart() -> None:
    """Fail, and do not skip, where no Chromium can run."""
    if shutil.which(CHROMIUM) is None:
        pytest.exit(f"{CHROMIUM} is missing: .ci/install-debian-packages installs it", returncode=CANNOT_RUN)
