"""Amounts of resources such as `500m` and `1Gi`, and the quality of service that follows from them."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from kubelet_fakes.api.objects import EMPTY, is_object

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{name: Fraction(1000**power) for power, name in enumerate("kMGTPE", start=1)},
    **{f"{name}i": Fraction(1024**power) for power, name in enumerate("KMGTPE", start=1)},
}
_QOS_RESOURCES = ("cpu", "memory")


def amount(text: str | float) -> Fraction:
    """The exact amount that a quantity stands for; raises `ValueError` for what is none."""
    found = _FORM.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{text!r} is no quantity; write it like 500m or 1Gi")
    number, exponent, suffix = found.groups()
    scale = Fraction(10) ** int(exponent) if exponent else _SUFFIXES[suffix or ""]
    return Fraction(number) * scale


def qos_class(spec: Mapping[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort, from the cpu and memory of the containers and init containers.

    What is no quantity counts as nothing here: the validation names it.
    """
    each = [_cpu_and_memory(container) for container in _containers(spec)]
    if not any(requests or limits for requests, limits in each):
        return "BestEffort"
    guaranteed = all(
        len(limits) == len(_QOS_RESOURCES) and (requests or limits) == limits for requests, limits in each
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _containers(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            if is_object(container):
                yield container


def _cpu_and_memory(container: Mapping[str, Any]) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
    resources = container.get("resources") or EMPTY
    return _positive(resources.get("requests")), _positive(resources.get("limits"))


def _positive(amounts: Mapping[str, Any] | None) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for name in _QOS_RESOURCES:
        if amounts and name in amounts:
            with contextlib.suppress(ValueError):
                found[name] = amount(amounts[name])
    return {name: value for name, value in found.items() if value > 0}
