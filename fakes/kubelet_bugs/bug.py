"""What a bug of the zoo is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubelet_fakes.runtime.parts import RuntimeParts
from kubelet_reference.parts import Parts


@dataclass(frozen=True, slots=True)
class Bug:
    """A kubelet, or a container runtime, that is wrong in one historical way: one part of it is replaced.

    Attributes:
        id: the upstream issue, such as `K8S-52641`.
        title: what it does wrong, in one sentence.
        parts: builds the kubelet's parts, one of them wrong if it is a bug of kubelets.
        breaks: the ids of the contracts that it breaks; at least one.
        aliases: other names: further issues, and its number as a mutant (`K23`, `R01`).
        kubernetes: the version whose behaviour it departs from.
        runtime: builds the runtime's parts, one of them wrong if it is a bug of runtimes.
    """

    id: str
    title: str
    parts: Callable[[], Parts]
    breaks: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    kubernetes: str = "1.32"
    runtime: Callable[[], RuntimeParts] = RuntimeParts

    @property
    def is_of_runtimes(self) -> bool:
        """Whether the runtime is wrong, and not the kubelet."""
        return self.runtime is not RuntimeParts
