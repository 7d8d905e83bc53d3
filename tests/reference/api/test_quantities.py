"""Quantities: amounts of cpu and memory as Kubernetes writes them."""

from fractions import Fraction

import pytest

from kubelet_reference.api.quantities import milli, parse_quantity, whole


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1", Fraction(1)),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("100m", Fraction(1, 10)),
        ("1n", Fraction(1, 10**9)),
        ("1Ki", Fraction(1024)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("1E", Fraction(10**18)),
        ("1e3", Fraction(1000)),
        ("1E-3", Fraction(1, 1000)),
        ("-1k", Fraction(-1000)),
    ],
)
def test_quantity_is_exact(text: str, amount: Fraction) -> None:
    """Each way to write an amount is read exactly."""
    assert parse_quantity(text) == amount


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1gi", "1e", "1e999999999", "Gi", "1.2.3", "1m1"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """Anything else is an error."""
    with pytest.raises(ValueError, match="expected a quantity"):
        parse_quantity(text)


def test_quantities_are_rounded_up() -> None:
    """A fraction of the smallest unit takes a whole one."""
    assert (milli("0.0001"), milli("2"), whole("1500m"), whole("1Ki")) == (1, 2000, 2, 1024)
