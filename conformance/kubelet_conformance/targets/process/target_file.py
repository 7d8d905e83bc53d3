"""Target files: a kubelet binary and how to start it, in TOML, read strictly."""

import re
import shutil
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import yaml

from kubelet_conformance.contract.applicability import USUAL_VERSION, parse_known_version, parse_version
from kubelet_conformance.contract.baseline import is_bundled
from kubelet_conformance.targets.choice import Choice, UnknownTargetError

PLACEHOLDERS: Mapping[str, str] = {
    "config": "the file that `config` was written to",
    "healthz_port": "a free port",
    "images": "the address of the image service, unix:///...",
    "kubernetes": "the version, such as 1.32",
    "logs": "a folder for the logs of pods",
    "node": "the node's name",
    "pods": "the manifest folder",
    "port": "a free port",
    "python": "this Python",
    "read_only_port": "a free port",
    "root": "a folder for the kubelet's files",
    "runtime": "the address of the runtime, unix:///...",
}
"""What `{...}` in a command, a configuration, a URL or the environment can stand for."""
CAPABILITIES: Mapping[str, str] = {
    "restart": "it may be stopped or killed, and started again",
    "statuses": "it serves a PodList at `pod_list`",
    "metrics": "it serves metrics at `metrics`",
    "events": "it writes its events to its log, as kubelets do with --v=3",
    "url": "it reads manifests from a URL too",
}
"""What a kubelet can do for scenarios; all, unless a target file names those it can."""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_BYTES_MAX = 1 << 20
_SECONDS_MAX = 600.0
_LOCAL = "http://127.0.0.1:"


@dataclass(frozen=True, slots=True)
class KubeletTarget:
    """A kubelet that is started by a command and fed by a manifest folder.

    Attributes:
        command: the program and its arguments.
        name: what it is called in traces and reports.
        kubernetes: its version, such as "1.32".
        config: the text of its configuration, YAML; "" for none.
        environment: variables that it gets besides our own.
        healthz: the URL that answers 200 when it is ready.
        pod_list: the URL of the v1 PodList of its pods.
        metrics: the URL of its metrics.
        start_seconds: how long it may take to be ready.
        stop_seconds: how long it may take to end after SIGTERM.
        capabilities: what it can do, of `CAPABILITIES`.
        feature_gates: those that are set, for the header of traces.
        baseline: its known deviations, a file or the name of a bundled baseline; "" for none.
    """

    command: tuple[str, ...]
    name: str = "kubelet"
    kubernetes: str = "1.32"
    config: str = ""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    healthz: str = _LOCAL + "{healthz_port}/healthz"
    pod_list: str = _LOCAL + "{read_only_port}/pods"
    metrics: str = _LOCAL + "{read_only_port}/metrics"
    start_seconds: float = 30.0
    stop_seconds: float = 30.0
    capabilities: frozenset[str] = frozenset(CAPABILITIES)
    feature_gates: Mapping[str, bool] = field(default_factory=dict[str, bool])
    baseline: str = ""


def reference_process(kubernetes: str = "1.32") -> KubeletTarget:
    """The reference kubelet as a process, the target `reference-process`, behaving as this version."""
    text = (files("kubelet_conformance.targets.process") / "reference.toml").read_text(encoding="utf-8")
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


def kubelet_process(choice: Choice) -> KubeletTarget | None:
    """The kubelet of a choice where it is a process of its own, None for one in this process.

    Raises:
        UnknownTargetError: The target file cannot be used.
    """
    if not choice.is_process:
        return None
    return (
        read_target(Path(choice.kubelet)) if choice.has_target_file else reference_process(choice.kubernetes)
    )


def resolved(choice: Choice) -> Choice:
    """The choice with the version that it leaves open: a target file states one, a node of many pods has one.

    Raises `UnknownTargetError`, also where the version is not known or the kubelet's program is not there.
    """
    if choice.kubernetes:
        try:
            parse_known_version(choice.kubernetes)
        except ValueError as error:
            raise UnknownTargetError(str(error)) from None
    if not choice.has_target_file:
        is_open = choice.is_live and not choice.kubernetes
        return replace(choice, kubernetes=USUAL_VERSION) if is_open else choice
    target = kubelet_process(choice)
    if target is None:
        return choice
    _check_program(target, choice.kubelet)
    return replace(choice, kubernetes=target.kubernetes)


def _check_program(target: KubeletTarget, where: str) -> None:
    program = target.command[0]
    path = target.environment.get("PATH")
    if "{" not in program and shutil.which(program, path=path) is None:
        why = "cannot be executed" if Path(program).exists() else "there is no such program"
        raise UnknownTargetError(f"{where}: kubelet.command[0]: {program}: {why}")


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
    values.pop("pods", None)
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
        raise UnknownTargetError(f"{here}: expected a URL such as {_LOCAL}{{read_only_port}}/pods")
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
    if value != "folder":
        raise UnknownTargetError(
            f'{here}: expected "folder": pods are delivered as files of a manifest folder'
        )
    return "folder"


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
