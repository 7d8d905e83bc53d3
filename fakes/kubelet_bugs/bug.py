"""What a bug of the zoo is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubelet_reference.parts import Parts

__all__ = ("Bug",)


@dataclass(frozen=True, slots=True)
class Bug:
    """A kubelet that is wrong in one historical way: the reference with one part replaced.

    Attributes:
        id: the upstream issue, such as `K8S-52641`.
        title: what it does wrong, in one sentence.
        parts: builds the kubelet's parts, one of them wrong.
        breaks: the ids of the contracts that it breaks; at least one.
        aliases: other names: further issues, and its number as a mutant (`K23`).
        kubernetes: the version whose behaviour it departs from.
    """

    id: str
    title: str
    parts: Callable[[], Parts]
    breaks: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    kubernetes: str = "1.32"
