"""The manifest URL in memory answers as it is set to, or does not."""

import asyncio

import pytest

from kubelet_fakes.clock import run
from kubelet_fakes.web import MemoryUrl, NoAnswer

URL = "http://manifests/pod.yaml"


class Unread(Exception):  # noqa: N818 - an error of its own
    """What the reader calls a failure."""


def test_answers_as_it_was_set_to() -> None:
    """The last answer that was set counts; what was never set is 404."""
    reported: list[int] = []
    web = MemoryUrl(on_fetch=lambda _, status, __: reported.append(status))
    before = run(web.fetch(URL, timeout=1))
    web.serve(URL, b"pod")
    after = run(web.fetch(URL, timeout=1))
    web.serve(URL, b"oops", status=500)

    assert (before[0], after, run(web.fetch(URL, timeout=1))) == (404, (200, b"pod"), (500, b"oops"))
    assert reported == [404, 200, 500]


def test_refuses_with_the_readers_own_error() -> None:
    """An unreachable server raises the error that the reader expects; nothing is reported."""
    reported: list[int] = []
    web_of_its_own = MemoryUrl(Unread, lambda _, status, __: reported.append(status))
    for web, error in ((web_of_its_own, Unread), (MemoryUrl(), NoAnswer)):
        web.refuse(URL)
        with pytest.raises(error, match="connection refused"):
            run(web.fetch(URL, timeout=1))

    assert reported == []


def test_hangs_until_the_deadline() -> None:
    """A server that never answers costs the whole deadline, in the loop's time."""

    async def main() -> tuple[float, int]:
        web = MemoryUrl()
        web.hang(URL)
        with pytest.raises(NoAnswer, match="deadline exceeded"):
            await web.fetch(URL, timeout=10)
        return asyncio.get_running_loop().time(), web.fetched

    assert run(main()) == (10.0, 1)
