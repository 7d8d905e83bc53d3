"""Text of a trace, fit for a terminal and for a shell."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_conformance.reports.output import complain
from kubelet_conformance.reports.safe import TEXT_CHARS_MAX, in_shell, safe, short


@given(text=st.text())
def test_nothing_unprintable_is_left(text: str) -> None:
    """Whatever the text, one printable line comes out."""
    assert all(char.isprintable() or char.isspace() for char in safe(text))
    assert "\n" not in safe(text)
    assert "\x1b" not in safe(text)


def test_later_lines_of_a_message_are_indented(capsys: pytest.CaptureFixture[str]) -> None:
    """What a program wrote last is shown line by line, and no line looks like a message of its own."""
    complain("it ended; it wrote:\n  boom\x1b\nerror: forged")

    assert capsys.readouterr().err == "error: it ended; it wrote:\n  boom\\x1b\n  error: forged\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 世界", "plain é 世界"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\u202eb", r"a\u202eb"),
        ("\ud800", r"\ud800"),
        ("a\tb\nc\rd\x00", r"a\tb\nc\rd\x00"),
        ("\x9b31m", r"\x9b31m"),
        ("\U000e0041", r"\U000e0041"),
    ],
    ids=["plain", "escape", "direction", "surrogate", "white", "c1", "tag"],
)
def test_what_does_not_print_is_a_code(text: str, shown: str) -> None:
    """Controls, marks that turn the line, surrogates and tags become codes; letters stay."""
    assert safe(text) == shown


def test_long_text_is_cut() -> None:
    """A long text ends with an ellipsis; an id is cut to the length people compare."""
    assert safe("x" * 10_000) == "x" * (TEXT_CHARS_MAX - 1) + "…"
    assert short("0123456789abcdef") == "0123456789ab"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["plain.jsonl", "a b'c.jsonl", "$(x)`y`", "\x1b[31m\u202e\udcff.jsonl"],
    ids=["plain", "quote", "run", "odd"],
)
def test_shell_reads_the_same_word(name: str) -> None:
    """What is printed is printable, and a shell that reads it has the name again."""
    word = in_shell(name)
    said = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout  # noqa: S607

    assert word.isprintable()
    assert said.decode("utf-8", "surrogateescape") == name
