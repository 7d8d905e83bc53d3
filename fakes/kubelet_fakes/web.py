"""A manifest URL that is only memory: what it answers is set by the test."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

_NOT_FOUND = 404


class NoAnswer(Exception):  # noqa: N818 - it is what happened
    """The server could not be reached, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one URL answers; `trouble` stands for no answer, `hangs` for none before the deadline."""

    status: int = 200
    body: bytes = b""
    trouble: str = ""
    hangs: bool = False


class MemoryUrl:
    """Web pages by URL; what was never set is answered with 404.

    Args:
        no_answer: The error that stands for no answer, made from a text; by default `NoAnswer`.
        on_fetch: Called with each answered fetch: URL, status, body.
    """

    def __init__(
        self,
        no_answer: Callable[[str], Exception] = NoAnswer,
        on_fetch: Callable[[str, int, bytes], None] | None = None,
    ) -> None:
        self.on_fetch = on_fetch
        self.fetched = 0
        """How often somebody asked, answered or not."""
        self._no_answer = no_answer
        self._answers: dict[str, _Answer] = {}

    def serve(self, url: str, body: bytes, status: int = 200) -> None:
        """From now on answer with this."""
        self._answers[url] = _Answer(status, body)

    def refuse(self, url: str, trouble: str = "connection refused") -> None:
        """From now on be unreachable."""
        self._answers[url] = _Answer(trouble=trouble)

    def hang(self, url: str) -> None:
        """From now on accept the request and never answer."""
        self._answers[url] = _Answer(trouble="deadline exceeded", hangs=True)

    async def fetch(self, url: str, *, timeout: float) -> tuple[int, bytes]:  # noqa: ASYNC109 - the port has it
        """The HTTP status and the body; raises `no_answer` when there is none within `timeout` seconds."""
        self.fetched += 1
        answer = self._answers.get(url, _Answer(_NOT_FOUND, b"404 page not found\n"))
        if answer.hangs:
            await _until(timeout)
        if answer.trouble:
            raise self._no_answer(f"Get {url!r}: {answer.trouble}")
        if self.on_fetch is not None:
            self.on_fetch(url, answer.status, answer.body)
        return answer.status, answer.body


async def _until(deadline: float) -> None:
    """Wait that many seconds of the loop's time."""
    try:
        async with asyncio.timeout(deadline):
            await asyncio.Event().wait()
    except TimeoutError:
        return
