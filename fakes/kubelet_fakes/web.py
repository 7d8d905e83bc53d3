"""A manifest URL that is only memory: what it answers is set by the test."""

from collections.abc import Callable
from dataclasses import dataclass

_NOT_FOUND = 404


class NoAnswer(Exception):  # noqa: N818 - it is what happened
    """The server could not be reached, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one URL answers; `trouble` stands for no answer."""

    status: int = 200
    body: bytes = b""
    trouble: str = ""


class MemoryUrl:
    """Web pages by URL; what was never set is answered with 404.

    Args:
        no_answer: The error that stands for no answer, made from a text; by default `NoAnswer`.
    """

    def __init__(self, no_answer: Callable[[str], Exception] = NoAnswer) -> None:
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

    async def fetch(self, url: str) -> tuple[int, bytes]:
        """The HTTP status and the body; raises `no_answer` when there is none."""
        self.fetched += 1
        answer = self._answers.get(url, _Answer(_NOT_FOUND, b"404 page not found\n"))
        if answer.trouble:
            raise self._no_answer(f"Get {url!r}: {answer.trouble}")
        return answer.status, answer.body
