"""One document of YAML or JSON, as plain data: what JSON can say and nothing else."""

import json
import re
from collections.abc import Hashable, Sequence
from typing import Any

import yaml

from kubelet_reference.config.field_errors import FieldError, ManifestError

LARGEST = 10 << 20
"""Bytes in a manifest, at most."""


def parse(content: bytes) -> object:
    """The data of the one document that `content` is; raises `ManifestError`."""
    if len(content) > LARGEST:
        raise ManifestError([FieldError("", f"expected at most {LARGEST} bytes, got {len(content)}")])
    try:
        return _parse(content)
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark
        where = f"line {at.line + 1}, column {at.column + 1}: " if at else ""
        raise ManifestError([FieldError("", f"not YAML: {where}{error.problem or error.context}")]) from error
    except (yaml.YAMLError, ValueError, LookupError, RecursionError) as error:
        # A tag that does not fit its value (`!!int x`) surfaces as whatever the conversion raised.
        raise ManifestError([FieldError("", f"not YAML: {' '.join(str(error).split())}")]) from error


def _parse(content: bytes) -> object:
    """JSON where it is JSON: that is faster, and escapes of surrogate pairs are no YAML."""
    if content.lstrip().startswith(b"{"):
        try:
            return json.loads(content, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
        except ValueError:
            pass  # YAML then, which says where it goes wrong.
    return yaml.load(content, _Loader)  # noqa: S506 - it derives from the safe loader


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


class _Loader(yaml.SafeLoader):
    """YAML in which times and times of day stay strings and no key is given twice.

    The loader is the one in Python: the one in C crashes on data that is nested too deep.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002
        seen: set[object] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    problem = f"the key {key.value!r} is given twice"
                    raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _tag(name: str) -> str:
    return f"tag:yaml.org,2002:{name}"


_MERGE = _tag("merge")
#: Whole numbers without the base 60 of YAML 1.1, to which 12:30 would be 750.
_FORMS = {
    _tag("null"): None,
    _tag("bool"): None,
    _tag("int"): re.compile(r"[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    _tag("float"): re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?$"),
    _MERGE: None,
}
"""The tags that a plain scalar can have, each with its form where that is not PyYAML's."""

_Loader.yaml_implicit_resolvers = {
    first: [(tag, _FORMS[tag] or form) for tag, form in forms if tag in _FORMS]
    for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.yaml_constructors = {
    tag: construct
    for tag, construct in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag in {_tag(name) for name in ("null", "bool", "int", "float", "str", "seq", "map")}
}
