"""What other packages bring, and name in entry points: contracts, scenarios and seeded bugs."""

from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, entry_points
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["contracts", "scenarios", "runtime_scenarios"]


@dataclass(frozen=True, slots=True)
class Extension:
    """One entry point.

    Attributes:
        group: the group that it stands in.
        name: its name, with which the names of its scenarios begin.
        module: the module or package that it names.
        package: the distribution that it is of, and its version.
    """

    group: str
    name: str
    module: str
    package: str

    def __str__(self) -> str:
        return f"{self.package}, entry point {self.name} of {self.group}"


@cache
def extensions(kind: Kind) -> tuple[Extension, ...]:
    """What the installed packages bring of this kind, by the names of their entry points."""
    group = f"kubelet_conformance.{kind}"
    found = sorted(entry_points(group=group), key=lambda each: each.name)
    return tuple([Extension(group, each.name, each.module, _package(each.dist)) for each in found])


def _package(distribution: Distribution | None) -> str:
    return "?" if distribution is None else f"{distribution.name} {distribution.version}"
