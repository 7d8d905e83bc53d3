"""Where a bug stands, and the lines of the reference or the fake runtime that it replaces."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from types import MethodType
from typing import Any, cast

from kubelet_conformance.reports.source_lines import SourceLines, attribute_lines, lines_of


@dataclass(frozen=True, slots=True)
class BugSource:
    """A bug of the zoo as code.

    Attributes:
        id: its id.
        title: what it does wrong, in one sentence.
        lines: the class or function that is the bug.
        replaces: what it overrides or stands in for: the code that is right.
    """

    id: str
    title: str
    lines: SourceLines | None
    replaces: tuple[SourceLines, ...]


def bug_source(name: str) -> BugSource:
    """A bug by its id or alias, with the lines that are wrong and those that are right.

    Raises:
        LookupError: no bug has this name.
    """
    from kubelet_bugs import find_bug  # noqa: PLC0415 - the only door, opened by name

    bug = find_bug(name)
    wrong = _registered(bug.build)
    replaced = list(_replaced(wrong)) if isinstance(wrong, type) else list(_differences(bug))
    return BugSource(bug.id, bug.title, lines_of(wrong), tuple(dict.fromkeys(replaced)))


def _registered(build: Any) -> object:  # noqa: ANN401 - what `@bug` has made of a class or a function
    """The class or function below `@bug`."""
    if isinstance(build, partial):
        return next(iter((*build.args, *build.keywords.values())))
    return build


def _differences(bug: Any) -> Iterator[SourceLines]:  # noqa: ANN401 - a bug of the zoo
    """What stands in the right kubelet and runtime where this bug has put something else."""
    wrong_parts = bug.runtime() if bug.is_of_runtimes else bug.parts()
    for wrong, right in _leaves(wrong_parts, type(wrong_parts)()):
        if wrong is not right and wrong != right:
            yield from _right_for(wrong, right)


def _leaves(wrong: Any, right: Any) -> Iterator[tuple[object, object]]:  # noqa: ANN401 - parts of parts
    if not is_dataclass(right) or isinstance(right, type):
        yield wrong, right
        return
    for each in fields(right):
        yield from _leaves(getattr(wrong, each.name), getattr(right, each.name))


def _right_for(wrong: object, right: object) -> Iterator[SourceLines]:
    """What is right where `wrong` has taken the place of `right`."""
    if isinstance(wrong, MethodType):
        wrong = _wrong_class(wrong.__self__)
    if isinstance(wrong, type):
        yield from _replaced(wrong)
        return
    for one in _gone(wrong, right):
        found = lines_of(one)
        if found is not None:
            yield found


def _wrong_class(rules: object) -> type:
    """The class of these rules, or of the wrong rules that they use."""
    used = [type(cast("object", value)) for value in vars(rules).values()]
    return next((one for one in used if _is_of_bugs(one)), type(rules))


def _gone(wrong: Any, right: object) -> list[object]:  # noqa: ANN401 - a part of any kind
    """Of several handlers those that are not there any more; all of them where none is gone."""
    if not isinstance(right, tuple):
        return [right]
    several = cast("tuple[object, ...]", right)
    return [one for one in several if one not in wrong] or list(several)


def _replaced(wrong: type) -> Iterator[SourceLines]:
    """What a wrong class overrides of the classes that are right; all of its base where it only adds."""
    right = [base for base in wrong.__mro__ if not _is_of_bugs(base) and base is not object]
    found: list[SourceLines] = []
    for name in dict.fromkeys(name for base in wrong.__mro__ if _is_of_bugs(base) for name in vars(base)):
        owner = next((base for base in right if name in vars(base)), None)
        lines = None if owner is None or name in _OF_EVERY_CLASS else attribute_lines(owner, name)
        if lines is not None:
            found.append(lines)
    if not found and right:
        whole = lines_of(right[0])
        found = [] if whole is None else [whole]
    # A bug with state of its own sets it as it is made; what it does wrong stands elsewhere.
    making = (".__init__", ".__post_init__")
    yield from [one for one in found if not one.name.endswith(making)] or found


_OF_EVERY_CLASS = frozenset(vars(type("_Empty", (), {}))) | {"__slots__", "__annotations__", "__orig_bases__"}


def _is_of_bugs(base: type) -> bool:
    return base.__module__.partition(".")[0] in _packages_with_bugs()


@cache
def _packages_with_bugs() -> frozenset[str]:
    """Ours, and those of other packages that bring some."""
    from kubelet_bugs import every_bug  # noqa: PLC0415 - the only door, opened by name

    wrong: list[Any] = [_registered(bug.build) for bug in every_bug().values()]
    return frozenset(str(one.__module__).partition(".")[0] for one in wrong)
