"""One document of YAML or JSON, as plain data: what JSON can say and nothing else."""

import json
import re

import yaml

from kubelet_reference.config.field_errors import FieldError, ManifestError, not_yaml

LARGEST = 10 << 20
"""Bytes in a manifest, at most."""
_NO_YAML = (yaml.YAMLError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""A tag that does not fit its value (`!!int x`) surfaces as whatever the conversion raises."""


class Loader(yaml.SafeLoader):
    """YAML in which times and times of day stay strings.

    The loader is the one in Python: the one in C crashes on data that is nested too deep.
    """


def parse(content: bytes, loader: type[Loader] = Loader) -> object:
    """The data of the one document that `content` is; raises `ManifestError`."""
    if len(content) > LARGEST:
        raise ManifestError([FieldError("", f"expected at most {LARGEST} bytes, got {len(content)}")])
    try:
        return _parse(content, loader)
    except _NO_YAML as error:
        raise not_yaml(error) from error


def _parse(content: bytes, loader: type[Loader]) -> object:
    """JSON where it is JSON: that is faster, and escapes of surrogate pairs are no YAML."""
    if loader is Loader:
        try:
            return json.loads(content, parse_constant=_no_constant)
        except ValueError:
            pass  # YAML then, which says where it goes wrong.
    data = yaml.load(content, loader)  # noqa: S506 - it derives from the safe loader
    # Keys become strings, and what JSON has no words for is an error.
    return json.loads(json.dumps(data), parse_constant=_no_constant)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _tag(name: str) -> str:
    return f"tag:yaml.org,2002:{name}"


MERGE = _tag("merge")
#: Whole numbers without the base 60 of YAML 1.1, to which 12:30 would be 750.
_FORMS = {
    _tag("null"): None,
    _tag("bool"): None,
    _tag("int"): re.compile(r"[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"),
    _tag("float"): re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?$"),
    MERGE: None,
}
"""The tags that a plain scalar can have, each with its form where that is not PyYAML's."""

Loader.yaml_implicit_resolvers = {
    first: [(tag, _FORMS[tag] or form) for tag, form in forms if tag in _FORMS]
    for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
