"""Target files: a kubelet binary and how to start it, in TOML, read strictly."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import yaml

from kubelet_conformance.contract.applicability import parse_known_version, parse_version
from kubelet_conformance.contract.baseline import is_bundled
from kubelet_conformance.targets.choice import UnknownTargetError
from kubelet_conformance.targets.kubelet_target.target import CAPABILITIES, LOCAL, PLACEHOLDERS, KubeletTarget

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_BYTES_MAX = 1 << 20
_SECONDS_MAX = 600.0


def reference_process(kubernetes: str = "1.32") -> KubeletTarget:
    """The reference kubelet as a process, the target `reference-process`, behaving as this version."""
    text = (files("kubelet_conformance.targets.kubelet_target") / "reference.toml").read_text(
        encoding="utf-8"
    )
    return _read(tomllib.loads(text), "reference.toml", kubernetes)


def read_target(path: Path) -> KubeletTarget:
    """The target in a file; raises `UnknownTargetError`, which names the file and the key."""
    try:
        content = path.read_bytes()
        if len(content) > _BYTES_MAX:
            raise UnknownTargetError(f"{path}: longer than {_BYTES_MAX} bytes: this is no target file")
        raw = tomllib.loads(content.decode())
    except OSError as error:
        raise UnknownTargetError(f"{path}: cannot read the target file: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnknownTargetError(f"{path}: no TOML: {error}") from None
    target = _read(raw, str(path))
    if target.baseline and not is_bundled(target.baseline):
        # Relative to the file that names it.
        target = replace(target, baseline=str(path.parent / target.baseline))
    return target


def _read(raw: Mapping[str, Any], where: str, kubernetes: str | None = None) -> KubeletTarget:
    for key in raw:
        if key != "kubelet":
            raise UnknownTargetError(f"{where}: {key}: unknown table: there is one, [kubelet]")
    table = raw.get("kubelet")
    if not isinstance(table, dict):
        raise UnknownTargetError(f"{where}: kubelet: missing: begin with [kubelet]")
    given = cast("dict[str, Any]", table)
    values: dict[str, Any] = {}
    for key, value in given.items():
        here = f"{where}: kubelet.{key}"
        read = _KEYS.get(key)
        if read is None:
            close = get_close_matches(key, _KEYS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(_KEYS))}"
            raise UnknownTargetError(f"{here}: unknown key, {hint}")
        values[key] = read(value, here)
    if "command" not in values:
        raise UnknownTargetError(f"{where}: kubelet.command: missing: the program and its arguments")
    if kubernetes is not None:
        values["kubernetes"] = kubernetes
    return KubeletTarget(**values)


def _text(value: object, here: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise UnknownTargetError(f"{here}: expected a string")
    return value


def _template(value: object, here: str) -> str:
    text = _text(value, here)
    for name in _PLACEHOLDER.findall(text):
        if name not in PLACEHOLDERS:
            known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
            raise UnknownTargetError(f"{here}: nothing is called {{{name}}}: known are {known}")
    return text


def _command(value: object, here: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise UnknownTargetError(f"{here}: expected a list of strings: the program and its arguments")
    items = cast("list[object]", value)
    return tuple(_template(each, f"{here}[{index}]") for index, each in enumerate(items))


def _config(value: object, here: str) -> str:
    text = _template(value, here)
    try:
        # Placeholders stand for numbers and paths: a number is good for either.
        found = yaml.safe_load(_PLACEHOLDER.sub("1", text))
    except yaml.YAMLError as error:
        raise UnknownTargetError(f"{here}: no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise UnknownTargetError(f"{here}: expected an object in YAML, such as a KubeletConfiguration")
    return text


def _url(value: object, here: str) -> str:
    text = _template(value, here)
    if text and not text.startswith(("http://127.0.0.1", "http://localhost", "http://[::1]")):
        raise UnknownTargetError(f"{here}: expected a URL such as {LOCAL}{{read_only_port}}/pods")
    return text


def _seconds(value: object, here: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _SECONDS_MAX:
        raise UnknownTargetError(f"{here}: expected a number of seconds up to {_SECONDS_MAX:g}")
    return float(value)


def _version(value: object, here: str) -> str:
    text = _text(value, here)
    try:
        major, minor = parse_version(text)
    except ValueError:
        raise UnknownTargetError(f"{here}: expected a version such as 1.32") from None
    try:
        parse_known_version(text)
    except ValueError as error:
        raise UnknownTargetError(f"{here}: {error}") from None
    return f"{major}.{minor}"


def _environment(value: object, here: str) -> dict[str, str]:
    return {key: _template(each, f"{here}.{key}") for key, each in _table(value, here).items()}


def _gates(value: object, here: str) -> dict[str, bool]:
    found = _table(value, here)
    for key, each in found.items():
        if not isinstance(each, bool):
            raise UnknownTargetError(f"{here}.{key}: expected true or false")
    return found


def _table(value: object, here: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnknownTargetError(f"{here}: expected a table")
    return cast("dict[str, Any]", value)


def _capabilities(value: object, here: str) -> frozenset[str]:
    names: Iterable[object] = cast("list[object]", value) if isinstance(value, list) else (None,)
    for name in names:
        if name not in CAPABILITIES:
            raise UnknownTargetError(f"{here}: expected a list of some of {', '.join(CAPABILITIES)}")
    return frozenset(map(str, names))


def _pods(value: object, here: str) -> str:
    if value not in {"api", "folder", "url"}:
        raise UnknownTargetError(f'{here}: expected "api", "folder" or "url": how the kubelet gets its pods')
    return str(value)


_KEYS: Mapping[str, Callable[[object, str], object]] = {
    "name": _text,
    "kubernetes": _version,
    "command": _command,
    "config": _config,
    "pods": _pods,
    "environment": _environment,
    "healthz": _url,
    "pod_list": _url,
    "metrics": _url,
    "start_seconds": _seconds,
    "stop_seconds": _seconds,
    "capabilities": _capabilities,
    "feature_gates": _gates,
    "baseline": _text,
}
