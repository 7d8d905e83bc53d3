"""The log: what is repeated is dropped for a minute, but for events, each of which counts."""

import io
import logging
from collections.abc import Generator

import pytest
from lightkube.models.core_v1 import Pod
from lightkube.models.meta_v1 import ObjectMeta

from kubelet_reference.server.host.event_log import LoggedEvents
from kubelet_reference.server.log import set_up_log
from kubelet_reference.util.ports import PodEvent


@pytest.fixture
def stream() -> Generator[io.StringIO]:
    """What is logged meanwhile."""
    root = logging.getLogger()
    handlers, level, raises = root.handlers, root.level, logging.raiseExceptions
    found = io.StringIO()
    set_up_log(0, found)
    yield found
    root.handlers, logging.raiseExceptions = handlers, raises
    root.setLevel(level)


def test_events_are_never_dropped(stream: io.StringIO) -> None:
    """An event that happens twice is logged twice; a warning that is repeated is logged once."""
    event = PodEvent(Pod(metadata=ObjectMeta(name="web", uid="u")), "Warning", "BackOff", "again")
    for _ in range(2):
        LoggedEvents().emit(event)
        logging.getLogger("kubelet_reference.status").warning("away")

    assert stream.getvalue().count('reason="BackOff"') == 2
    assert stream.getvalue().count("away") == 1
