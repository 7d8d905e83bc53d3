"""Where one kubelet lives: its folders and ports, and what its templates say with them."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kubelet_conformance.targets.controls import MANIFEST_FOLDER, MANIFEST_URL, NotPossibleError
from kubelet_conformance.targets.kubelet_target.target import KubeletTarget

Json = dict[str, Any]
ENTRIES = ("etc", "hosts", "kubeconfig", "kubelet", "kubelet.log", "kubelet.yaml", "pods")
"""What there may be in the folder of a kubelet."""
_GATES, _RESERVED = "featureGates", "systemReserved"
_MERGED = frozenset({_GATES, _RESERVED})
_EVICTION_BYTES = 1 << 20
"""Kept from pods too: `evictionHard` of the templates."""
_WITH_SERVER = "with_api_server"
_FLAGS = {"maximum_dead_containers": "maximumDeadContainers"}
"""Settings of scenarios that are flags of a kubelet, with what traces call them beside its configuration."""
CONFIGURATION = "/etc/kubernetes/"
"""Paths of scenarios below this are in the private folder."""


@dataclass(frozen=True, slots=True)
class Places:
    """The places of one kubelet, all below `folder`; `url` is where manifests are served, "" for nowhere."""

    folder: Path
    node: str
    runtime: Path
    kubernetes: str
    ports: tuple[int, int, int]
    url: str = ""

    @property
    def manifests(self) -> Path:
        """The manifest folder, unless a scenario sets another path."""
        return self.inside(MANIFEST_FOLDER)

    @property
    def config(self) -> Path:
        """Its configuration."""
        return self.folder / "kubelet.yaml"

    @property
    def kubeconfig(self) -> Path:
        """How it finds its API server, where it has one."""
        return self.folder / "kubeconfig"

    @property
    def log(self) -> Path:
        """What it writes on standard output and standard error."""
        return self.folder / "kubelet.log"

    @property
    def root(self) -> Path:
        """Its root folder."""
        return self.folder / "kubelet"

    @property
    def logs(self) -> Path:
        """The logs of pods."""
        return self.folder / "pods"

    def inside(self, path: str) -> Path:
        """A path that scenarios name, in the private folder."""
        return self.folder / path.removeprefix("/")

    def filled(self, template: str) -> str:
        """The template with everything in it that `{...}` stands for."""
        port, read_only, healthz = self.ports
        values: Mapping[str, object] = {
            "config": self.config,
            "healthz_port": healthz,
            "images": f"unix://{self.runtime}",
            "kubeconfig": self.kubeconfig,
            "kubernetes": self.kubernetes,
            "logs": self.logs,
            "node": self.node,
            "pods": self.manifests,
            "port": port,
            "python": sys.executable,
            "read_only_port": read_only,
            "root": self.root,
            "runtime": f"unix://{self.runtime}",
            "url": self.url,
        }
        return re.sub(r"\{([a-z_]+)\}", lambda found: str(values[found[1]]), template)


def configuration(target: KubeletTarget, places: Places, settings: Mapping[str, object]) -> Json | None:
    """The kubelet's configuration, and over it what a scenario sets; None for a kubelet that has none.

    Raises:
        NotPossibleError: There is no template to set something in, or no such field.
    """
    if not target.config:
        fields = [name for name in settings if name in _FIELDS]
        if fields:
            raise NotPossibleError("a kubelet with a configuration file: " + ", ".join(fields))
        return None
    unknown = unknown_setting(settings)
    if unknown:
        raise NotPossibleError(unknown)
    found: Json = yaml.safe_load(places.filled(target.config))
    gates: Json = {**(found.get(_GATES) or {}), **target.overrides.get(_GATES, {})}
    found.update({**target.overrides, _GATES: gates} if gates else target.overrides)
    for name, value in settings.items():
        if name not in _FIELDS:
            continue
        field, written = _FIELDS[name]
        given = written(value, places)
        found[field] = {**(found.get(field) or {}), **given} if field in _MERGED else given
    if "maxContainerRestartPeriod" in found.get("crashLoopBackOff", {}):
        found.setdefault(_GATES, {})["KubeletCrashLoopBackOffMax"] = True
    return found


def unknown_setting(settings: Iterable[str], *, ours: bool = False) -> str:
    """What these settings of a scenario need and a kubelet cannot be given, to follow "needs"; or nothing.

    `ours` is a kubelet that has no more than the reference.
    """
    known = {*_FIELDS, *_FLAGS, _WITH_SERVER} - (_FLAGS.keys() if ours else set())
    return next((f"a kubelet whose {name} can be set" for name in settings if name not in known), "")


def flags(settings: Mapping[str, object]) -> list[str]:
    """What these settings of a scenario add to the command: what no configuration file has."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in settings.items() if name in _FLAGS]


def flags_as_fields(settings: Mapping[str, object]) -> Json:
    """The same as a trace has it."""
    return {_FLAGS[name]: value for name, value in settings.items() if name in _FLAGS}


def has_api_server(settings: Mapping[str, object]) -> bool:
    """Whether a scenario lets the kubelet have an API server."""
    return bool(settings.get(_WITH_SERVER, True))


def _plain(value: Any, _: Places) -> Any:  # noqa: ANN401 - whatever the field is
    return value


def _duration(value: Any, _: Places) -> str:  # noqa: ANN401 - a number of seconds
    return f"{float(value):f}".rstrip("0").rstrip(".") + "s"


def _path(value: Any, places: Places) -> str:  # noqa: ANN401 - a path
    return str(places.inside(value)) if str(value).startswith(CONFIGURATION) else str(value)


def _url(value: Any, places: Places) -> str:  # noqa: ANN401 - a URL
    return places.url if value == MANIFEST_URL else str(value)


def _restart_period(value: Any, places: Places) -> dict[str, str]:  # noqa: ANN401 - a number of seconds
    return {"maxContainerRestartPeriod": _duration(value, places)}


def _reserved_cpu(value: Any, _: Places) -> dict[str, str]:  # noqa: ANN401 - millicores
    """What is kept from pods, so that this is left for them."""
    return {"cpu": f"{_not_less(1000 * (os.cpu_count() or 1) - value, f'{value} millicores')}m"}


def _reserved_memory(value: Any, _: Places) -> dict[str, str]:  # noqa: ANN401 - bytes
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"memory": str(_not_less(total - _EVICTION_BYTES - value, f"{value} bytes of memory"))}


def _not_less(reserved: int, wanted: str) -> int:
    if reserved < 0:
        raise NotPossibleError(f"a machine of {wanted}")
    return reserved


_FIELDS: Mapping[str, tuple[str, Callable[[Any, Places], Any]]] = {
    "static_pod_path": ("staticPodPath", _path),
    "static_pod_url": ("staticPodURL", _url),
    "file_check_frequency": ("fileCheckFrequency", _duration),
    "http_check_frequency": ("httpCheckFrequency", _duration),
    "sync_frequency": ("syncFrequency", _duration),
    "runtime_request_timeout": ("runtimeRequestTimeout", _duration),
    "max_pods": ("maxPods", _plain),
    "cpu_millicores": (_RESERVED, _reserved_cpu),
    "memory_bytes": (_RESERVED, _reserved_memory),
    "max_container_restart_period": ("crashLoopBackOff", _restart_period),
    "serialize_image_pulls": ("serializeImagePulls", _plain),
    "registry_pull_qps": ("registryPullQPS", _plain),
    "registry_burst": ("registryBurst", _plain),
    "max_parallel_image_pulls": ("maxParallelImagePulls", _plain),
    "image_pull_credentials_verification_policy": ("imagePullCredentialsVerificationPolicy", _plain),
    "preloaded_images_verification_allowlist": ("preloadedImagesVerificationAllowlist", _plain),
    "feature_gates": (_GATES, _plain),
}
"""The field of KubeletConfiguration for each setting of a scenario."""
