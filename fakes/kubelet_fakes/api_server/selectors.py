"""Field and label selectors, as a query carries them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kubelet_fakes.api.errors import bad_request
from kubelet_fakes.api.objects import EMPTY, FrozenDict, at

_Test = Callable[[FrozenDict], bool]
_COMMA = re.compile(r",(?![^(]*\))")
_EQUALITY = re.compile(r"\s*([^=!\s]+)\s*(==?|!=)\s*([^=!]*?)\s*")
_SET = re.compile(r"\s*(\S+)\s+(in|notin)\s*\(([^)]*)\)\s*")
_EXISTS = re.compile(r"\s*(!?)\s*([^=!()\s]+)\s*")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects a query asks for: by equal fields and labels, and by whatever else it says."""

    fields: Mapping[str, str]
    labels: Mapping[str, str]
    matches: _Test | None


def selection(fields: str, labels: str) -> Selection:
    """What the two selectors of a query say; raises `ApiStatusError` 400 for what is no selector."""
    equal_fields, other_fields = _parsed(fields, _field, sets=False)
    equal_labels, other_labels = _parsed(labels, _label, sets=True)
    tests = [*other_fields, *other_labels]
    return Selection(equal_fields, equal_labels, _all(tests) if tests else None)


def _all(tests: Sequence[_Test]) -> _Test:
    return lambda thing: all(test(thing) for test in tests)


def _field(thing: FrozenDict, path: str) -> str | None:
    value = at(thing, *path.split("."))
    return "" if value is None else value


def _label(thing: FrozenDict, name: str) -> str | None:
    found: str | None = (thing["metadata"].get("labels") or EMPTY).get(name)
    return found


def _parsed(
    text: str, value_of: Callable[[FrozenDict, str], str | None], *, sets: bool
) -> tuple[dict[str, str], list[_Test]]:
    equal: dict[str, str] = {}
    tests: list[_Test] = []
    for part in _COMMA.split(text) if text else ():
        found = _EQUALITY.fullmatch(part)
        if found is None and not sets:
            raise bad_request(f"unable to parse requirement: {part!r} is no field selector")
        if found is not None and found[2] != "!=" and equal.setdefault(found[1], found[3]) == found[3]:
            continue
        tests += _tests(part, found, value_of)
    return equal, tests


def _tests(
    part: str, equality: re.Match[str] | None, value_of: Callable[[FrozenDict, str], str | None]
) -> Iterator[_Test]:
    """The tests of one requirement that is no plain equality."""
    if equality is not None:
        name, sign, value = equality.groups()
        yield lambda thing: (value_of(thing, name) == value) is (sign != "!=")
        return
    among = _SET.fullmatch(part)
    if among is not None:
        key, values = among[1], {each.strip() for each in among[3].split(",")}
        yield lambda thing: (value_of(thing, key) in values) is (among[2] == "in")
        return
    exists = _EXISTS.fullmatch(part)
    if exists is None:
        raise bad_request(f"unable to parse requirement: {part!r} is no label selector")
    yield lambda thing: (value_of(thing, exists[2]) is None) is bool(exists[1])
