"""The manifest URL in memory answers as it is set to, or does not."""

import pytest

from kubelet_fakes.clock import run
from kubelet_fakes.web import MemoryUrl, NoAnswer

URL = "http://manifests/pod.yaml"


class Unread(Exception):  # noqa: N818 - an error of its own
    """What the reader calls a failure."""


def test_answers_as_it_was_set_to() -> None:
    """The last answer that was set counts; what was never set is 404."""
    web = MemoryUrl()
    before = run(web.fetch(URL))
    web.serve(URL, b"pod")
    after = run(web.fetch(URL))
    web.serve(URL, b"oops", status=500)

    assert (before[0], after, run(web.fetch(URL))) == (404, (200, b"pod"), (500, b"oops"))


def test_refuses_with_the_readers_own_error() -> None:
    """An unreachable server raises the error that the reader expects."""
    for web, error in ((MemoryUrl(Unread), Unread), (MemoryUrl(), NoAnswer)):
        web.refuse(URL)
        with pytest.raises(error, match="connection refused"):
            run(web.fetch(URL))
