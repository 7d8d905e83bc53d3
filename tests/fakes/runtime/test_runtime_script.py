"""Scripts: what a container's command makes its process do."""

import doctest

import pytest

from kubelet_fakes import faults
from kubelet_fakes.runtime import service
from kubelet_fakes.runtime.script import Execution, Script, ScriptError, parse_execution, parse_script
from kubelet_fakes.runtime.store import Addresses

S = 1_000_000_000


@pytest.mark.parametrize(
    ("words", "script"),
    [
        ("run", Script()),
        ("run stopdelay=1.5 stopcode=3", Script(stop_delay_ns=3 * S // 2, stop_code=3)),
        ("exit 1", Script(0, 1)),
        ("exit 3 0.3", Script(300_000_000, 3)),
        ("exit 3 0.3 stopdelay=2", Script(300_000_000, 3, stop_delay_ns=2 * S)),
        ("seq 1@0.5 0@2", Script(S // 2, 1)),
        ("seq 1", Script(0, 1)),
        ("seq run 1@0", Script()),
        ("run say=a say=b message=c", Script(says=("a", "b"), message="c")),
        ("nginx -g daemon=off", Script()),
        ("", Script()),
    ],
)
def test_scripts(words: str, script: Script) -> None:
    """Each form of a script is read; a command that is none runs until it is stopped."""
    assert parse_script(tuple(words.split()), 0) == script


def test_steps_of_a_sequence() -> None:
    """Each attempt takes its own step, and later ones the last."""
    words = ("seq", "1@0.5", "2@1", "run")

    assert [parse_script(words, attempt).code for attempt in range(4)] == [1, 2, 0, 0]
    assert [parse_script(words, attempt).ends_after_ns for attempt in range(4)] == [S // 2, S, None, None]


@pytest.mark.parametrize(
    "words", ["exit", "exit x", "exit 1 -1", "exit 1 2 3", "seq", "seq a@b", "run forever", "run delay=1"]
)
def test_broken_scripts(words: str) -> None:
    """What begins like a script and is none is an error that quotes it."""
    with pytest.raises(ScriptError, match=f"no script: '{words}'"):
        parse_script(tuple(words.split()), 0)


def test_executions() -> None:
    """Each form of an executed command is read; what is no script succeeds at once."""
    assert parse_execution(("x", "3", "0.5")) == Execution(3, S // 2, b"out\n")
    assert parse_execution(("x", "0", "0", "bytes=3")).output == b"\0\0\0"
    assert parse_execution(("xf", "/a")).exit_code({"/a"}) == 0
    assert parse_execution(("true",)) == Execution()
    for words in (("x",), ("x", "1"), ("xf",), ("x", "a", "b")):
        with pytest.raises(ScriptError, match="no script"):
            parse_execution(words)


def test_addresses_go_round() -> None:
    """An address is not used again before the others were, and never by two at once."""
    addresses = Addresses("10.1")
    first = addresses.take("a")
    addresses.release("a")
    others = [addresses.take(str(number))[0] for number in range(65_533)]
    again = addresses.take("b")

    assert (first, others[0], again) == (("10.1.0.2",), "10.1.0.3", ())
    assert len(set(others)) == 65_533
    addresses.release("7")
    assert addresses.take("c") == (others[7],)


def test_examples_in_the_docs_work() -> None:
    """The examples of the modules do what they say."""
    results = [doctest.testmod(service), doctest.testmod(faults)]

    assert [result.failed for result in results] == [0, 0]
    assert all(result.attempted for result in results)
