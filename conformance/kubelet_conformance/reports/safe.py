"""Text from a trace, made fit for a terminal: nothing in it can move the cursor, colour or turn the line."""

import os
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

TEXT_CHARS_MAX = 400
"""A longer text is cut in a report for people."""
_ID_CHARS = 12
_NAMED_MAX = 3

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls, formats (the marks that turn the direction of writing among them), surrogates, unassigned."""


def safe(text: str, limit: int = TEXT_CHARS_MAX) -> str:
    """The text on one line, with everything that does not print written as an escape, cut at `limit`."""
    cut = text if len(text) <= limit else f"{text[: limit - 1]}…"
    if cut.isprintable():
        return cut
    return "".join(_shown(char) for char in cut)


def _shown(char: str) -> str:
    return char.encode("unicode_escape").decode() if unicodedata.category(char) in _UNSEEN else char


def short(identity: str) -> str:
    """An id as people compare it: its first twelve characters."""
    return safe(identity[:_ID_CHARS])


def in_shell(word: str) -> str:
    """The word as a POSIX shell reads it back; one with characters that do not print, as bash and zsh do."""
    if word.isprintable():
        return shlex.quote(word)
    plain = set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._- ")
    return "$'" + "".join(chr(b) if b in plain else f"\\x{b:02x}" for b in os.fsencode(word)) + "'"


def nearest(name: str, names: Iterable[str]) -> str:
    """What may have been meant by a name that there is not, to be added to a message; empty if nothing.

    Of a name such as `sandbox.one_is_run` the part before the point may be meant, or the one behind.
    """
    known, wanted = list(names), name.rstrip("*?.")
    near = get_close_matches(wanted, known)
    if not near:
        parts = {each.rpartition(".")[2]: each for each in known}
        parts |= {each.partition(".")[0]: f"{each.partition('.')[0]}.*" for each in known if "." in each}
        near = [parts[each] for each in get_close_matches(wanted, parts)]
    return f"; nearest: {', '.join(near)}" if near else ""


def counted(number: int, word: str, words: str = "") -> str:
    """A number and its noun, such as `1 trace` and `2 traces`."""
    return f"{number} {word if number == 1 else words or f'{word}s'}"


def a_few(names: Sequence[str], words: str) -> str:
    """Names where they are few; of many the number, of what these words say."""
    return ", ".join(names) if len(names) <= _NAMED_MAX else f"{len(names)} {words}"
