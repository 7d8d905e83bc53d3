"""What a judge may name as its parameters: it is called only where the moment has all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from kubelet_conformance.contract.words import Predicate
from kubelet_conformance.trace.moment import Moment

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Subject:
    """A parameter: its type, where the moment has it, and whether it does."""

    annotation: str
    path: str
    is_there: Predicate


_SUBJECTS = {
    "pod": _Subject("Pod", "pod", lambda m: m.pod is not None),
    "sandbox": _Subject("Sandbox", "sandbox", lambda m: m.sandbox is not None),
    "container": _Subject("Container", "container", lambda m: m.container is not None),
    "manifest": _Subject("Manifest", "manifest", lambda m: m.manifest is not None),
    "status": _Subject("PodStatus", "status", lambda m: m.status is not None),
    "ended": _Subject("Exit", "exit", lambda m: m.exit is not None),
    "spec": _Subject("PodSpec", "pod.spec", lambda m: m.pod is not None and m.pod.spec is not None),
}


def bound(function: Callable[..., R]) -> tuple[Callable[[Moment], R], tuple[Predicate, ...]]:
    """The function of a moment alone, and the conditions under which it may be called.

    Raises TypeError for a parameter that no moment has, or has as another type.
    """
    parameters = list(inspect.signature(function).parameters.values())[1:]
    subjects = [_SUBJECTS.get(one.name) for one in parameters]
    for parameter, subject in zip(parameters, subjects, strict=True):
        if subject is None or subject.annotation != parameter.annotation:
            raise TypeError(f"{function.__qualname__}: no moment has {parameter}; it may have {_known()}")
    known = [one for one in subjects if one is not None]
    return _called_with(function, [one.path for one in known]), tuple([one.is_there for one in known])


def _called_with(function: Callable[..., R], paths: list[str]) -> Callable[[Moment], R]:
    if not paths:
        return function
    of: Callable[[Moment], Any] = attrgetter(*paths)
    if len(paths) == 1:
        return lambda m: function(m, of(m))
    return lambda m: function(m, *of(m))


def _known() -> str:
    return ", ".join(f"{name}: {one.annotation}" for name, one in _SUBJECTS.items())
