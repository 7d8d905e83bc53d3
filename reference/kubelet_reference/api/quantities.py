"""Quantities such as 500m or 1Gi: how Kubernetes writes amounts of cpu and memory."""

import math
import re
from fractions import Fraction
from functools import cache

_FACTORS = {
    **{unit: Fraction(1000) ** power for power, unit in enumerate((*"num", "", *"kMGTPE"), -3)},
    **{f"{unit}i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}
#: At most two digits of exponent: no quantity needs more, and a longer one would take for ever to compute.
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?:[eE](?P<exponent>[+-]?\d{1,2})|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)"
)


@cache
def parse_quantity(text: str) -> Fraction:
    """The exact amount that a quantity stands for; `ValueError` if it is none."""
    found = _QUANTITY.fullmatch(text)
    if not found:
        raise ValueError(f"expected a quantity such as 500m or 1Gi, got {text!r}")
    factor = Fraction(10) ** int(found["exponent"]) if found["exponent"] else _FACTORS[found["suffix"] or ""]
    return Fraction(found["number"]) * factor


def milli(text: str) -> int:
    """The quantity in thousandths, rounded up: millicores for cpu; `ValueError` if it is none."""
    return math.ceil(parse_quantity(text) * 1000)


def whole(text: str) -> int:
    """The quantity in whole units, rounded up: bytes for memory; `ValueError` if it is none."""
    return math.ceil(parse_quantity(text))
