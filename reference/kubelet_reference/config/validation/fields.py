"""The strict reading of an API object: every field known, every value of its type (bad input rule).

The models drop fields they do not know and cannot name what is wrong. So the raw data is walked here, along
the fields and types that the models declare. As for the API, null means absent, and numbers are taken where
a quantity is due.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from types import NoneType
from typing import Any, TypeAlias, cast, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields

from kubelet_reference.api.quantities import parse_quantity
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.checks import Check
from kubelet_reference.config.validation.values import VALUES

JsonObject: TypeAlias = dict[str, Any]
Reader: TypeAlias = Callable[[object, "FieldPath"], object]
"""Takes a raw value, that is not null, and its place; gives the clean value, or notes what is wrong."""

_QUANTITY_MAPS = frozenset({"allocatedResources", "limits", "overhead", "requests"})
_FREE_MAPS = frozenset({"fieldsV1"})
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a model."""

    read: Reader
    required: bool
    check: Check | None


def read_object(model: type[Struct], raw: object, place: FieldPath) -> JsonObject:
    """The object as clean data that `model` can be made from; what is wrong with it is noted.

    Nulls are gone, quantities are strings, and nothing is shared with `raw`.
    """
    if not isinstance(raw, dict):
        place.expected("an object", raw)
        return {}
    known = _fields_of(model)
    clean: JsonObject = {}
    for name, value in cast("JsonObject", raw).items():
        field = known.get(name)
        if field is None:
            place.unknown(name, known)
        elif value is not None and not (field.check and field.check.empty_is_absent and value == ""):
            clean[name] = _read_field(field, value, place.field(name))
    for name, field in known.items():
        if field.required and name not in clean:
            place.field(name).wrong("missing")
    return clean


def _read_field(field: _Field, value: object, place: FieldPath) -> object:
    before = len(place.errors)
    clean = field.read(value, place)
    if field.check and len(place.errors) == before:
        for each, where in _each(clean, place):
            if not field.check.accepts(each):
                where.expected(field.check.expected, each)
    return clean


def _each(value: object, place: FieldPath) -> Iterable[tuple[object, FieldPath]]:
    """The items of a list, each with its place; any other value is its own."""
    if not isinstance(value, list):
        return ((value, place),)
    return [(item, place.item(i)) for i, item in enumerate(cast("list[object]", value))]


@cache
def _fields_of(model: type[Struct]) -> Mapping[str, _Field]:
    """The fields of a model by the names they have in a manifest."""
    return {
        field.encode_name: _Field(
            _reader(field.type, field.encode_name, str(model.__annotations__[field.name])),
            field.required,
            VALUES.get((model, field.encode_name)),
        )
        for field in fields(model)
    }


def _reader(kind: object, name: str, annotation: str) -> Reader:
    """How to read a field of this type; only its annotation distinguishes a quantity from a string."""
    members = [member for member in get_args(kind) if member is not NoneType]
    if set(members) == {int, str}:
        return _int_or_string
    for member in members:
        # What a list is of, or what may be absent.
        read = _reader(member, name, annotation)
        return _list_of(read) if get_origin(kind) is list else read
    if isinstance(kind, type) and issubclass(kind, Struct):
        return lambda raw, place: read_object(kind, raw, place)
    if dict in {kind, get_origin(kind)}:
        return _map_reader(name)
    return _quantity if "Quantity" in annotation else _SCALARS[kind]


def _map_reader(name: str) -> Reader:
    if name in _FREE_MAPS:
        return lambda raw, _: raw
    return _map_of(_quantity if name in _QUANTITY_MAPS else _string)


def _list_of(read: Reader) -> Reader:
    def read_list(raw: object, place: FieldPath) -> object:
        if not isinstance(raw, list):
            place.expected("a list", raw)
            return None
        return [read(item, place.item(i)) for i, item in enumerate(cast("list[object]", raw))]

    return read_list


def _map_of(read: Reader) -> Reader:
    def read_map(raw: object, place: FieldPath) -> object:
        if not isinstance(raw, dict):
            place.expected("an object", raw)
            return None
        return {name: read(value, place.field(name)) for name, value in cast("JsonObject", raw).items()}

    return read_map


def _string(raw: object, place: FieldPath) -> object:
    if not isinstance(raw, str):
        place.expected("a string", raw)
    return raw


def _boolean(raw: object, place: FieldPath) -> object:
    if not isinstance(raw, bool):
        place.expected("true or false", raw)
    return raw


def _integer(raw: object, place: FieldPath) -> object:
    is_whole = isinstance(raw, int) or (isinstance(raw, float) and raw.is_integer())
    if isinstance(raw, bool) or not is_whole or abs(cast("float", raw)) > _LARGEST:
        place.expected("a whole number", raw)
        return None
    return int(cast("float", raw))


def _int_or_string(raw: object, place: FieldPath) -> object:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, bool) or not isinstance(raw, int):
        place.expected("a whole number or a string", raw)
    return raw


def _quantity(raw: object, place: FieldPath) -> object:
    text = str(raw)
    if not _is_amount(text):
        place.expected("a quantity such as 500m or 1Gi", raw)
    return text


def _is_amount(text: str) -> bool:
    try:
        return parse_quantity(text) >= 0
    except ValueError:
        return False


def _time(raw: object, place: FieldPath) -> object:
    if not isinstance(raw, str) or not _is_time(raw):
        place.expected("a time such as 2030-01-31T12:00:00Z", raw)
    return raw


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


_SCALARS: Mapping[object, Reader] = {str: _string, int: _integer, bool: _boolean, datetime: _time}
