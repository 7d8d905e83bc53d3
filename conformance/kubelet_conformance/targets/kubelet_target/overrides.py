"""Feature gates and configuration under which a user lets a kubelet play everything."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import yaml

from kubelet_conformance.targets.choice import UnknownTargetError

GATES = "featureGates"
_GATE = re.compile(r"(\w+)=(true|false)", re.IGNORECASE)
_WHOLE = frozenset({"AllAlpha", "AllBeta"})
_ENABLED = re.compile(r'^kubernetes_feature_enabled\{name="(\w+)".*\} ([01])$', re.MULTILINE)


def overrides_of(gates: Iterable[str], config: str) -> dict[str, Any]:
    """The fields of a KubeletConfiguration that these options set; raises `UnknownTargetError`."""
    fields = _fields(config) if config else {}
    given = dict(_gate(each) for text in gates for each in text.split(","))
    return {**fields, GATES: {**(fields.get(GATES) or {}), **given}} if given else fields


def _gate(text: str) -> tuple[str, bool]:
    found = _GATE.fullmatch(text.strip())
    if found is None:
        raise UnknownTargetError(f"--gates: {text!r} is none: write AllBeta=true, or A=true,B=false")
    return found[1], found[2].lower() == "true"


def _fields(path: str) -> dict[str, Any]:
    try:
        found: object = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UnknownTargetError(f"--config: {path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UnknownTargetError(f"--config: {path}: no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise UnknownTargetError(f"--config: {path}: expected fields of a KubeletConfiguration, in YAML")
    return cast("dict[str, Any]", found)


def sets_many(overrides: dict[str, Any]) -> bool:
    """Whether gates are set that set others, so that only the kubelet knows which are on."""
    return bool(_WHOLE & (overrides.get(GATES) or {}).keys())


def enabled_gates(metrics: str) -> dict[str, bool]:
    """The feature gates of a kubelet, by its metrics."""
    return {name: value == "1" for name, value in _ENABLED.findall(metrics)}
