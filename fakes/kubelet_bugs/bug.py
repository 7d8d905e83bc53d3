"""What a bug of the zoo is, and `@bug`, which registers one.

A bug is written as the wrong part itself. Its base class says which part it replaces, and its docstring is
the bug's title:

    @bug("MUT-EPH-07", breaks="EPH-07")
    class LooksIntoNobody(ContainerStarter):
        ...

A decision is a function, and names its part. A bug that needs several parts, or a part with arguments, is a
function without parameters that returns them:

    @bug("MUT-WORK-28", breaks="WORK-28")
    def stops_a_sandbox_without_id() -> WrongParts:
        return parts_with(StopsNothing, worker_table=ends_what_never_began)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

from kubelet_fakes.runtime.service import RuntimeParts
from kubelet_reference.kubelet.parts import Parts
from kubelet_reference.kuberuntime.actions.pod_actions import ActionRules
from kubelet_reference.kuberuntime.actions.sidecars import SidecarRules
from kubelet_reference.prober.prober_manager import Prober
from kubelet_reference.prober.worker import ProbeWorker
from kubelet_reference.status.container_statuses import ContainerStatusRules

WrongParts: TypeAlias = Parts | RuntimeParts
"""The parts of a kubelet, or of a container runtime, of which one is wrong."""

_RIGHT: Mapping[str, WrongParts] = {"kubelet": Parts(), "runtime": RuntimeParts()}
"""Where the place of a part is looked up, by the first word of its path."""

_STANDS_IN: Mapping[type, tuple[str, Callable[[Any], object]]] = {
    ActionRules: ("compute_actions", lambda wrong: _made(wrong).compute),
    SidecarRules: ("compute_actions", lambda wrong: ActionRules(_made(wrong)).compute),
    ContainerStatusRules: ("container_statuses", lambda wrong: _made(wrong).compute),
    ProbeWorker: ("prober", lambda wrong: type("OtherProber", (Prober,), {"worker_type": wrong})),
}
"""Classes that are no parts themselves: the part that is made of each, and how."""

_REGISTERED: dict[str, Bug] = {}

_Wrong = TypeVar("_Wrong", bound="type | FunctionType | Callable[..., Any]")
_Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bug:
    """A kubelet, or a container runtime, that is wrong in one historical way: one part of it is replaced.

    Attributes:
        id: the upstream issue, such as `K8S-52641`.
        title: what it does wrong, in one sentence.
        build: makes the parts of the kubelet or of the runtime, one of them wrong.
        breaks: the ids of the contracts that it breaks; at least one.
        aliases: other names: further issues, and its number as a mutant (`K23`, `R01`).
        kubernetes: the version whose behaviour it departs from.
    """

    id: str
    title: str
    build: Callable[[], WrongParts]
    breaks: tuple[str, ...]
    aliases: tuple[str, ...]
    kubernetes: str

    @property
    def is_of_runtimes(self) -> bool:
        """Whether the runtime is wrong, and not the kubelet."""
        return isinstance(self.build(), RuntimeParts)

    def parts(self) -> Parts:
        """The kubelet's parts; the right ones if it is a bug of runtimes."""
        made = self.build()
        return made if isinstance(made, Parts) else Parts()

    def runtime(self) -> RuntimeParts:
        """The runtime's parts; the right ones if it is a bug of kubelets."""
        made = self.build()
        return made if isinstance(made, RuntimeParts) else RuntimeParts()


class BugError(Exception):
    """A bug is not registered as it should be."""


def bug(
    name: str,
    *,
    breaks: str | tuple[str, ...],
    part: str = "",
    aliases: str | tuple[str, ...] = (),
    kubernetes: str = "1.32",
) -> Callable[[_Wrong], _Wrong]:
    """Register the class, the decision or the recipe below as a bug; see `Bug` for what is said of it.

    Args:
        name: its id.
        breaks: one contract, or several.
        part: the field of the decision that a function replaces, with the name of its bundle
            ("runtime.sandbox_changed") where two have such a field.
        aliases: one other name, or several.
        kubernetes: the version whose behaviour it departs from.
    """

    def registered(wrong: _Wrong) -> _Wrong:
        try:
            _register(
                Bug(name, _title(wrong), _builder(wrong, part), _many(breaks), _many(aliases), kubernetes)
            )
        except BugError as error:
            raise BugError(f"{name} ({wrong.__module__}.{wrong.__qualname__}): {error}") from None
        return wrong

    return registered


def parts_with(*wrong: type | object, **decisions: object) -> WrongParts:
    """The right parts, with each class, or instance of rules, where its base class stands, and decisions.

    Raises:
        BugError: one of them fits no part, or not all are of one kubelet or one runtime.
    """
    places = [_place(one) for one in wrong]
    places += [(_path_of(name), decision) for name, decision in decisions.items()]
    sides = {side for (side, *_), _ in places}
    if len(sides) != 1:
        raise BugError(f"its parts are of {sorted(sides)}: expected those of one")
    made = _RIGHT[sides.pop()]
    for (_, *path), one in places:
        made = _put(made, path, one)
    return made


def registered_bugs() -> Mapping[str, Bug]:
    """The bugs by id of the modules imported so far."""
    return _REGISTERED


def _register(one: Bug) -> None:
    if one.id in _REGISTERED:
        raise BugError("a bug with this id is there already")
    if not one.breaks:
        raise BugError("it breaks no contract: name one in `breaks`")
    _check_parts(one.build())
    _REGISTERED[one.id] = one


def _check_parts(made: object) -> None:
    if not isinstance(made, Parts | RuntimeParts):
        raise BugError(f"it returns {type(made).__name__}: expected `parts_with(...)`")


def _title(wrong: object) -> str:
    """The first paragraph of the docstring, as one line."""
    text = inspect.cleandoc(wrong.__doc__ or "").split("\n\n")[0]
    if not text:
        raise BugError("it has no docstring: say there in one sentence what goes wrong")
    return " ".join(text.split())


def _builder(wrong: Any, part: str) -> Callable[[], WrongParts]:  # noqa: ANN401 - a class or a function
    """What makes the parts, with this class, decision or recipe."""
    if isinstance(wrong, type):
        if part:
            raise BugError("the part of a class follows from its base class: leave `part` out")
        return partial(parts_with, wrong)
    if part:
        return partial(parts_with, **{part: wrong})
    if inspect.signature(wrong).parameters:
        raise BugError("it takes parameters: name in `part` the decision that it replaces")
    recipe: Callable[[], WrongParts] = wrong
    return recipe


def _many(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _place(wrong: type | object) -> tuple[_Path, object]:
    """The path of the part that is replaced, and what stands there instead."""
    kind = wrong if isinstance(wrong, type) else type(wrong)
    for base, (part, stand_in) in _STANDS_IN.items():
        if issubclass(kind, base):
            return _path_of(part), stand_in(wrong)
    found = [path for path, right in _places() if isinstance(right, type) and issubclass(kind, right)]
    return _only(found, f"a {kind.__name__}"), wrong


def _made(wrong: Any) -> Any:  # noqa: ANN401 - rules of any kind
    return wrong() if isinstance(wrong, type) else wrong


def _path_of(part: str) -> _Path:
    """The path of a part, by the end of it."""
    ending = tuple(part.split("."))
    return _only([path for path, _ in _places() if path[-len(ending) :] == ending], repr(part))


def _only(found: list[_Path], what: str) -> _Path:
    if not found:
        raise BugError(f"no part is replaced by {what}")
    if len(found) > 1:
        raise BugError(f"{what} may replace {' or '.join(map('.'.join, found))}: say which")
    return found[0]


@cache
def _places() -> Sequence[tuple[_Path, object]]:
    """Every part of the right kubelet and the right runtime with its path, such as kubelet.runtime.hooks."""
    return [place for side, right in _RIGHT.items() for place in _below(right, (side,))]


def _below(part: object, path: _Path) -> Iterator[tuple[_Path, object]]:
    if not is_dataclass(part) or isinstance(part, type):
        yield path, part
        return
    for each in fields(part):
        yield from _below(getattr(part, each.name), (*path, each.name))


def _put(part: Any, path: list[str], wrong: object) -> Any:  # noqa: ANN401 - parts of parts
    """The part with something else at the path."""
    if not path:
        return wrong
    name, *below = path
    return replace(part, **{name: _put(getattr(part, name), below, wrong)})
