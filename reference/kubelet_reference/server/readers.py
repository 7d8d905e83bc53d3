"""How the values of the configuration are read: from a file as data, from a flag as text."""

import ipaddress
import os
import re
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

import yaml

from kubelet_reference.api.quantities import parse_quantity
from kubelet_reference.config import documents
from kubelet_reference.config.field_errors import FieldPath


class _UniqueKeys(documents.Loader):
    """YAML in which no key is given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002
        seen: set[object] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != documents.MERGE:
                if key.value in seen:
                    problem = f"the key {key.value!r} is given twice"
                    raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse(content: bytes) -> object:
    """The data of a file of the kubelet's own, which is read more strictly than a pod.

    Raises `ManifestError`, also where a key is given twice.
    """
    return documents.parse(content, _UniqueKeys)


_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"([-+]?)((?:{_PART})+)")
_PARTS = re.compile(r"([0-9.]+)([^0-9.]+)")
_LONGEST_TEXT = 100
_MOST_NANOSECONDS = 2**63 - 1


def parse_duration(text: str) -> float:
    """The duration in seconds; `ValueError` if it is none, or longer than Go can say (292 years)."""
    if text in {"0", "+0", "-0"}:
        return 0.0
    found = _DURATION.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if found is None:
        raise ValueError(f"expected a duration such as 1m30s, got {text[:_LONGEST_TEXT]!r}")
    amount = sum(Fraction(number) * _NANOSECONDS[unit] for number, unit in _PARTS.findall(found[2]))
    if amount > _MOST_NANOSECONDS:
        raise ValueError(f"expected at most 292 years, got {text!r}")
    return float(-amount if found[1] == "-" else amount) / 1e9


DEFAULT_ENDPOINT = "unix:///run/containerd/containerd.sock"
"""The kubelet's own default."""
_PATH_BYTES_MAX = 107
"""What fits into the address of a unix socket."""
_PREFIXES = ("unix://", "unix:", "")


def socket_of(endpoint: str) -> str:
    """The path of the socket of an endpoint such as `unix:///run/containerd/containerd.sock`.

    A bare path is taken too, as the kubelet does. Raises `ValueError` for anything else.
    """
    prefix = next(each for each in _PREFIXES if endpoint.startswith(each))
    given = endpoint.removeprefix(prefix)
    if not given.startswith("/") or "\0" in given:
        raise ValueError(
            f"expected a unix socket with an absolute path, such as {DEFAULT_ENDPOINT}, got {endpoint!r}"
        )
    path = "/" + os.path.normpath(given).lstrip("/")
    length = len(os.fsencode(path))
    if length > _PATH_BYTES_MAX:
        raise ValueError(f"expected a path of at most {_PATH_BYTES_MAX} bytes, got one of {length}")
    return path


Reader: TypeAlias = Callable[[object, "FieldPath"], Any]
"""Takes a raw value that is not null, and its place; gives the clean value, or notes what is wrong."""

_SHORTEST_SECONDS = 0.001
_LARGEST = 2**31 - 1


def text(raw: object, place: FieldPath) -> str:
    """A string, "" for nothing."""
    if not isinstance(raw, str):
        place.expected("a string", raw)
    elif "\0" in raw:
        place.wrong("holds a zero byte")
    return str(raw)


def texts(raw: object, place: FieldPath) -> tuple[str, ...]:
    """Several texts."""
    if not isinstance(raw, list):
        place.expected("a list of texts", raw)
        return ()
    return tuple(text(one, place) for one in cast("list[object]", raw))


def one_of(first: str, *others: str) -> Reader:
    """One of these words; the first in place of any other."""
    known = (first, *others)

    def read(raw: object, place: FieldPath) -> str:
        if raw in known:
            return str(raw)
        place.expected(f"{', '.join(others)} or {first}", raw)
        return first

    return read


def boolean(raw: object, place: FieldPath) -> bool:
    """True or false."""
    if not isinstance(raw, bool):
        place.expected("true or false", raw)
    return bool(raw)


def number(least: int, most: int = _LARGEST) -> Reader:
    """A whole number in this range, both ends included."""

    def read(raw: object, place: FieldPath) -> int:
        if isinstance(raw, int) and not isinstance(raw, bool) and least <= raw <= most:
            return raw
        limits = f"from {least} to {most}" if most < _LARGEST else f"of at least {least}"
        place.expected(f"a whole number {limits}", raw)
        return 0

    return read


def duration(default: float, least: float = _SHORTEST_SECONDS, most: float | None = None) -> Reader:
    """A Go duration, in seconds; 0 stands for the default, as in the kubelet."""

    def read(raw: object, place: FieldPath) -> float:
        try:
            seconds = parse_duration(raw) if isinstance(raw, str) else None
        except ValueError:
            seconds = None
        if seconds is None:
            place.expected("a duration such as 1m30s", raw)
            return default
        if seconds and not least <= seconds <= (most or seconds):
            limits = f"from {least:g} s to {most:g} s" if most else f"of at least {least:g} s"
            place.expected(f"a duration {limits}", raw)
        return seconds or default

    return read


def socket(raw: object, place: FieldPath) -> str:
    """The endpoint of a runtime; the path of its socket, "" for an empty text."""
    endpoint = text(raw, place)
    try:
        return socket_of(endpoint) if endpoint else ""
    except ValueError as error:
        place.wrong(str(error))
        return ""


def loopback(raw: object, place: FieldPath) -> str:
    """An address to listen at: clients are not authenticated, so it must be one of this machine's own."""
    try:
        if ipaddress.ip_address(text(raw, place)).is_loopback:
            return str(raw)
    except ValueError:
        pass
    place.expected("a loopback address such as 127.0.0.1, for what is served is served to anybody", raw)
    return ""


def url(raw: object, place: FieldPath) -> str:
    """An HTTP or HTTPS URL, or ""."""
    found = text(raw, place)
    try:
        parts = urlsplit(found)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if found and not good:
        place.expected("an http:// or https:// URL", raw)
    return found


def logs_path(raw: object, place: FieldPath) -> str:
    """The folder of the pods' logs: absolute, in its shortest form, of ASCII, as the kubelet demands."""
    path = text(raw, place)
    parts = path.split("/")[1:]
    if not path.startswith("/") or not path.isascii() or any(part in {"", ".", ".."} for part in parts):
        place.expected("an absolute path of ASCII characters without dots in between", raw)
    return path


def gates(raw: object, place: FieldPath) -> dict[str, bool]:
    """Feature gates by name."""
    found: dict[str, bool] = {}
    for name, value in fields(raw, place).items():
        if isinstance(value, bool):
            found[name] = value
        else:
            place.field(name).expected("true or false", value)
    return found


def headers(raw: object, place: FieldPath) -> dict[str, tuple[str, ...]]:
    """HTTP headers: a list of values for each name."""
    found: dict[str, tuple[str, ...]] = {}
    for name, values in fields(raw, place).items():
        if isinstance(values, list):
            items = cast("list[object]", values)
            found[name] = tuple(_header(each, place.field(name).item(i)) for i, each in enumerate(items))
        else:
            place.field(name).expected("a list of strings", values)
    return found


_BOOLEANS = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}
"""The forms that Go takes, in small letters."""


def flag_gates(raw: object, place: FieldPath) -> dict[str, bool]:
    """Feature gates in a flag: Name=true,Other=false."""
    given: dict[str, object] = {}
    for pair in filter(None, str(raw).split(",")):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            place.expected("feature gates such as Name=true,Other=false", raw)
        else:
            given[name] = _BOOLEANS.get(value.lower(), value)
    return gates(given, place)


def fields(raw: object, place: FieldPath) -> dict[str, object]:
    """An object: values of any kind by name."""
    if not isinstance(raw, dict):
        place.expected("an object", raw)
        return {}
    found = cast("dict[object, object]", raw)
    for name in found:
        if not isinstance(name, str):
            place.expected("names that are strings", name)
    return {str(name): value for name, value in found.items()}


def _header(raw: object, place: FieldPath) -> str:
    value = text(raw, place)
    if any(letter in value for letter in "\r\n"):
        place.wrong("holds a line break")
    return value


SIGNALS = (
    "imagefs.available",
    "imagefs.inodesFree",
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "pid.available",
)
"""What can have a threshold."""
_DERIVED = frozenset({"containerfs.available", "containerfs.inodesFree"})
_SHARE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)%")


def limits(raw: object, place: FieldPath) -> dict[str, str]:
    """By signal, how little is too little; 0% and 100% stand for no threshold, as in the kubelet."""
    found: dict[str, str] = {}
    for signal, value in fields(raw, place).items():
        here = place.field(signal)
        if not _is_known(signal, here):
            continue
        share = _share(value)
        if share is None and not _is_amount(value):
            here.expected("a quantity above 0 such as 100Mi, or a share such as 10%", value)
        elif share not in {0, 1}:
            found[signal] = str(value)
    return found


def reserved(raw: object, place: FieldPath) -> dict[str, str]:
    """How much of cpu and memory."""
    found: dict[str, str] = {}
    for name, value in fields(raw, place).items():
        here = place.field(name)
        if name not in {"cpu", "memory"}:
            here.wrong("kubelet-reference keeps back cpu and memory only: leave it out")
        elif not _is_amount(value):
            here.expected("a quantity above 0 such as 500m or 1Gi", value)
        else:
            found[name] = str(value)
    return found


def graces(raw: object, place: FieldPath) -> dict[str, float]:
    """By signal, for how many seconds its soft threshold may be met; not for 0, which makes a hard one."""
    found: dict[str, float] = {}
    for signal, value in fields(raw, place).items():
        here = place.field(signal)
        if _is_known(signal, here):
            found[signal] = _seconds(value)
            if found[signal] <= 0:
                here.expected("a duration above 0 such as 1m30s", value)
    return found


def _is_known(signal: str, place: FieldPath) -> bool:
    if signal in SIGNALS:
        return True
    if signal in _DERIVED:
        place.wrong("follows from nodefs and imagefs, as in the kubelet: leave it out")
    else:
        place.wrong(f"unknown signal; known are {', '.join(SIGNALS)}")
    return False


def _seconds(value: object) -> float:
    """The duration, 0 for what is none."""
    try:
        return parse_duration(value) if isinstance(value, str) else 0
    except ValueError:
        return 0


def _share(value: object) -> Fraction | None:
    """The share of the whole that a text such as 10% stands for, None for anything else."""
    found = _SHARE.fullmatch(value) if isinstance(value, str) else None
    share = Fraction(found[1].rstrip(".")) / 100 if found else None
    return share if share is not None and share <= 1 else None


def _is_amount(value: object) -> bool:
    try:
        return isinstance(value, str) and parse_quantity(value) > 0
    except ValueError:
        return False
