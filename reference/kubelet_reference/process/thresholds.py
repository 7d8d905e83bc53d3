"""How the thresholds of evictions are read from the configuration: what there is too little of, and when."""

from __future__ import annotations

import re
from fractions import Fraction

from kubelet_reference.config.problems import Place
from kubelet_reference.process.durations import parse_duration
from kubelet_reference.process.readers import fields
from kubelet_reference.quantities import parse_quantity

SIGNALS = (
    "imagefs.available",
    "imagefs.inodesFree",
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "pid.available",
)
"""What can have a threshold."""
_DERIVED = frozenset({"containerfs.available", "containerfs.inodesFree"})
_SHARE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)%")


def limits(raw: object, place: Place) -> dict[str, str]:
    """By signal, how little is too little; 0% and 100% stand for no threshold, as in the kubelet."""
    found: dict[str, str] = {}
    for signal, value in fields(raw, place).items():
        here = place.field(signal)
        if not _is_known(signal, here):
            continue
        share = _share(value)
        if share is None and not _is_amount(value):
            here.expected("a quantity above 0 such as 100Mi, or a share such as 10%", value)
        elif share not in {0, 1}:
            found[signal] = str(value)
    return found


def graces(raw: object, place: Place) -> dict[str, float]:
    """By signal, for how many seconds its soft threshold may be met; not for 0, which makes a hard one."""
    found: dict[str, float] = {}
    for signal, value in fields(raw, place).items():
        here = place.field(signal)
        if _is_known(signal, here):
            found[signal] = _seconds(value)
            if found[signal] <= 0:
                here.expected("a duration above 0 such as 1m30s", value)
    return found


def _is_known(signal: str, place: Place) -> bool:
    if signal in SIGNALS:
        return True
    if signal in _DERIVED:
        place.wrong("follows from nodefs and imagefs, as in the kubelet: leave it out")
    else:
        place.wrong(f"unknown signal; known are {', '.join(SIGNALS)}")
    return False


def _seconds(value: object) -> float:
    """The duration, 0 for what is none."""
    try:
        return parse_duration(value) if isinstance(value, str) else 0
    except ValueError:
        return 0


def _share(value: object) -> Fraction | None:
    """The share of the whole that a text such as 10% stands for, None for anything else."""
    found = _SHARE.fullmatch(value) if isinstance(value, str) else None
    share = Fraction(found[1].rstrip(".")) / 100 if found else None
    return share if share is not None and share <= 1 else None


def _is_amount(value: object) -> bool:
    try:
        return isinstance(value, str) and parse_quantity(value) > 0
    except ValueError:
        return False
