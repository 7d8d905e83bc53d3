"""Tell a history: in words, and as a scenario that can be pasted into a file and played."""

from __future__ import annotations

import re

from kubelet_conformance.histories.playing import EVENTED, PlayedHistory

_INDENT = "    "
_ID = re.compile(r"[A-Z]+-\d+")
_LIES = '("CRI-30",)'
"""Of a runtime that does not tell of everything in time."""


def as_words(played: PlayedHistory) -> list[str]:
    """The history, a line for each thing that happened, with the time (s)."""
    lines = [f"{deed.at:8.2f} s  {deed.words}" for deed in played.deeds]
    if played.evented:
        lines.insert(0, "the kubelet hears the runtime's container events")
    choices = played.history.orders
    if any(choices):
        lines.insert(
            0, f"which of several ready things comes first, over and over: {', '.join(map(str, choices))}"
        )
    return [*lines, *(f"at the end {each}" for each in played.restless)]


def as_scenario(played: PlayedHistory, what: str) -> str:
    """The history as a scenario that provokes the same; `what` it broke is said in its docstring."""
    name = re.sub(r"\W+", "_", what).strip("_").lower()
    used = "\n".join(line for deed in played.deeds for line in deed.code)
    words = [each for each in ("container", "pod") if f"{each}(" in used]
    words += ["witness"] if played.evented else []
    lines = [
        *(["from contextlib import ExitStack", ""] if "faults" in used else []),
        f"from kubelet_conformance.node import {', '.join(['Node', *words])}",
        "",
        "",
        *([f"@witness({_witnessed(played, what)})"] if played.evented else []),
        f"async def test_history_that_breaks_{name}(node: Node) -> None:",
        f'{_INDENT}"""A generated history that broke {what}."""',
        f"{_INDENT}node.kubelet.choose_orders({', '.join(map(str, played.history.orders))})",
        *([f"{_INDENT}faults = ExitStack()"] if "faults" in used else []),
        *(f"{_INDENT}{line}" for deed in played.deeds for line in deed.code),
        f"{_INDENT}await node.wait({played.watched:g})",
    ]
    return "\n".join(lines) + "\n"


def _witnessed(played: PlayedHistory, what: str) -> str:
    """What a scenario must declare to be played on such a kubelet."""
    ids = [f'"{what}"'] if _ID.fullmatch(what) else []
    lies = [f"lies={_LIES}"] if played.missed else []
    return ", ".join([*ids, f'feature_gates={{"{EVENTED}": True}}', *lies])
