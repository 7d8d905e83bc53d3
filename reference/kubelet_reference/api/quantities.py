"""Quantities such as 500m or 1Gi: how Kubernetes writes amounts of cpu and memory."""

import math
import re
from fractions import Fraction
from functools import cache

_FACTORS = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
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
    return Fraction(found["number"].rstrip(".")) * factor


def milli(text: str) -> int:
    """The quantity in thousandths, rounded up: millicores for cpu; `ValueError` if it is none."""
    return math.ceil(parse_quantity(text) * 1000)


def whole(text: str) -> int:
    """The quantity in whole units, rounded up: bytes for memory; `ValueError` if it is none."""
    return math.ceil(parse_quantity(text))
