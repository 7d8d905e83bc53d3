"""The plugin's options; this module imports pytest alone, since every pytest on the machine loads it."""

from argparse import ArgumentTypeError
from collections.abc import Mapping
from typing import Any

import pytest

PLAYED = "kubelet_conformance_played"
"""The attribute of a test's report that holds what came of a scenario."""
BUDGET_SECONDS = 120.0
"""The wall time that a scenario may need, unless another is given."""
CONCURRENCY = 6
"""How many scenarios are played on one node at a time, unless another is given: a relist takes as long as all
pods of the node together."""


def part_of(text: str) -> tuple[int, int]:
    """The part of a run that a text such as 2/5 names: its number, from 1, and that of all parts.

    Raises argparse's error for a text that names none.
    """
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ArgumentTypeError(f"{text} is no part of a run: expected 1/4, 2/4 ...")
    return int(part), int(parts)


_REAL = "on a real runtime, "
_FLAG: dict[str, Any] = {"action": "store_true"}
ARGUMENTS: Mapping[str, dict[str, Any]] = {
    "kubelet": {"default": "reference", "help": "reference, reference-process, PATH, FILE.toml, or bug:ID"},
    "then-kubelet": {"default": "", "help": "the kubelet of every second start, as reference@1.36, PATH"},
    "runtime": {"default": "fake", "help": "fake, containerd or unix:///PATH"},
    "kubernetes": {"default": "", "help": "play all as this version, such as 1.32"},
    "gates": {"action": "append", "help": "feature gates of a kubelet in its own process: A=true,B=false"},
    "config": {"metavar": "FILE", "help": "fields for the configuration of a kubelet in its own process"},
    "seed": {"type": int, "default": 0, "help": "the seed of all chance"},
    "contract": {"action": "append", "help": "play and judge only these ids or globs"},
    "scenario": {"action": "append", "help": "play these names or globs only"},
    "shard": {"type": part_of, "metavar": "I/N", "help": "play only the I-th of N parts of the scenarios"},
    "level": {"choices": ("must", "should", "may"), "help": "judge only this level"},
    "strict": {**_FLAG, "help": "fail on a broken SHOULD too"},
    "require-exercised": {**_FLAG, "help": "fail on a contract that was not exercised"},
    "record": {"metavar": "DIR", "help": "keep a record of the run: a folder, or NAME.tar.gz"},
    "report": {"metavar": "FORMAT=FILE", "action": "append", "help": "write one more report"},
    "format": {
        "choices": ("terminal", "markdown", "html", "junit", "json", "badge", "perfetto"),
        "default": "terminal",
        "help": "the report's form",
    },
    "output": {"metavar": "FILE", "help": "write the report to FILE"},
    "baseline": {"metavar": "NAME|FILE", "help": "known deviations: kubernetes-1.36, or TOML"},
    "write-baseline": {
        "metavar": "FILE",
        "help": "write what is broken as a baseline without reasons",
    },
    "budget": {
        "type": float,
        "default": BUDGET_SECONDS,
        "metavar": "SECONDS",
        "help": f"{_REAL}leave out scenarios that need more wall time",
    },
    "quick": {**_FLAG, "help": f"{_REAL}play only what fits into a minute"},
    "fail-fast": {**_FLAG, "help": "end at the first break that fails the run, the cheapest scenarios first"},
    "concurrency": {
        "type": int,
        "default": CONCURRENCY,
        "metavar": "N",
        "help": f"{_REAL}run at most N scenarios at the same time on one node",
    },
    "kill-foreign-pods": {
        **_FLAG,
        "help": "play on a runtime that has pods of others too; the kubelet KILLS them",
    },
    "verbose": {**_FLAG, "help": "name in the report what it else only counts, and show more breaks"},
    "debug": {**_FLAG, "help": "show where an internal error happened"},
}


def add_options(parser: pytest.Parser) -> None:
    """Ours carry a prefix; pytest's own names are left alone."""
    group = parser.getgroup("kubelet-conformance", "scenarios of a pod's life, judged by contracts")
    for name, how in ARGUMENTS.items():
        group.addoption(f"--kc-{name}", dest=destination(name), **how)


def are_given(config: pytest.Config) -> bool:
    """Whether any of our options is not as usual."""
    return any(config.getoption(destination(name)) != _usual(how) for name, how in ARGUMENTS.items())


def _usual(how: Mapping[str, Any]) -> object:
    return how.get("default", False if how.get("action") == "store_true" else None)


def destination(name: str) -> str:
    """Where pytest keeps the value of an option."""
    return f"kc_{name.replace('-', '_')}"
