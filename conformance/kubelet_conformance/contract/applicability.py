"""Applicability of contracts: the channels of a trace that a contract needs.

Kubernetes versions: which expectation a contract has for which version.

Releases: which contracts a Kubernetes release must keep, and which feature gates are on in it.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from kubelet_conformance.trace.format.header import Channels, Header


class Need(NamedTuple):
    """A channel and how complete it must be."""

    channel: str
    enough: tuple[str, ...]


CRI = Need("cri", ("full",))
PODS = Need("pods", ("sent", "sampled"))
STATUS = Need("api", ("full", "sampled", "served"))
"""Statuses as the kubelet generated them, perhaps not all."""
STORED_STATUS = Need("api", ("full", "sampled"))
"""Statuses as the API server has them, perhaps not all."""
EVERY_STATUS = Need("api", ("full",))
EVENTS = Need("events", ("full", "limited"))
"""Events that were sent, perhaps late and merged."""
EVERY_EVENT = Need("events", ("full",))
_HIDDEN_KEPT = 4096


def missing(needs: Iterable[Need], channels: Channels) -> str | None:
    """What the trace lacks for these needs, in words; None when nothing."""
    for need in needs:
        have = str(getattr(channels, need.channel))
        if have not in need.enough:
            return f"channel {need.channel} is {have}, {' or '.join(need.enough)} is needed"
    return None


@lru_cache(maxsize=_HIDDEN_KEPT)
def hides(channels: Channels, awaited: frozenset[str], excuses: frozenset[str]) -> bool:
    """Whether such a trace may miss what is awaited, or all that would excuse its absence.

    Both are keys of records. Events may be missing where the channel is not full. What ends a pod stands in
    its status too, and statuses that are read from time to time show what lasts.
    """
    no_events = channels.events != "full"
    if channels.api == "none" and "status" in awaited:
        return True
    return no_events and (_has_events(awaited) or (_has_events(excuses) and "status" not in excuses))


def _has_events(keys: frozenset[str]) -> bool:
    return any(key.startswith("event:") for key in keys)


E = TypeVar("E")
Version: TypeAlias = tuple[int, int]

OLDEST_READ: Version = (1, 12)
NEWEST_READ: Version = (1, 37)
"""Between these two the catalogue was read from source, documentation or enhancement proposals."""
USUAL_VERSION = "1.32"
"""The newest version whose source was read: what kubelets are taken for unless said otherwise."""


def parse_version(text: str) -> Version:
    """`1.32`, `v1.32.10` or `1.32+` as (1, 32). Raises ValueError for anything else."""
    found = re.fullmatch(r"v?(\d{1,3})\.(\d{1,4})(?:[.+-].*)?", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no Kubernetes version; write it like 1.32")
    return int(found[1]), int(found[2])


def parse_known_version(text: str) -> Version:
    """The version, if contracts and kubelets are known for it. Raises ValueError for any other."""
    found, known = parse_version(text), [parse_version(each) for each in releases()]
    if found not in known:
        raise ValueError(
            f"Kubernetes {version_text(found)} is not known; this suite knows "
            f"{version_text(known[0])} to {version_text(known[-1])}"
        )
    return found


def version_text(version: Version) -> str:
    """(1, 32) as `1.32`."""
    return f"{version[0]}.{version[1]}"


def versions_of(header: Header, judged_for: Version | None) -> dict[str, Version]:
    """The two versions of kubelets that take turns in a trace, by their texts.

    Nothing for other traces, and for one that is judged for another version than its header states.
    """
    texts = (header.kubernetes, header.then_kubernetes)
    versions = {text: parse_version(text) for text in texts if text is not None}
    is_own = header.kubernetes is not None and versions[header.kubernetes] == judged_for
    return versions if is_own and header.then_kubernetes is not None else {}


def _range(text: str) -> tuple[Version, Version]:
    """`1.22..1.26`, `>=1.29`, `<=1.26`, `1.32` or `all` as two ends, both included."""
    if text == "all":
        return OLDEST_READ, NEWEST_READ
    if text.startswith(">="):
        return parse_version(text[2:]), NEWEST_READ
    if text.startswith("<="):
        return OLDEST_READ, parse_version(text[2:])
    low, _, high = text.partition("..")
    return parse_version(low), parse_version(high or low)


class ByVersion(Generic[E]):
    """An expectation per range of versions; a version in no range has none.

    `ByVersion({"1.22..1.26": "whole", ">=1.28": "rest"})`. Ranges are those the catalogue has evidence for,
    so a gap between two ranges is a version without evidence.
    """

    def __init__(self, expectations: dict[str, E]) -> None:
        self._ranges = [(*_range(text), value) for text, value in expectations.items()]
        self.text = ", ".join(expectations)
        self._found: dict[Version | None, E | None] = {}

    def get(self, version: Version | None) -> E | None:
        """The expectation for a version; with no version known only one that holds for all."""
        if version not in self._found:
            self._found[version] = self._look_up(version)
        return self._found[version]

    def _look_up(self, version: Version | None) -> E | None:
        for low, high, value in self._ranges:
            if version is None:
                if (low, high) == (OLDEST_READ, NEWEST_READ):
                    return value
            elif low <= version <= high:
                return value
        return None

    def at(self, version: Version | None) -> E:
        """The expectation for a version the contract applies to."""
        value = self.get(version)
        if value is None:
            raise LookupError(f"no expectation for {version}")
        return value

    def why_not(self, version: Version | None) -> str | None:
        """Why there is no expectation for a version; None where there is one."""
        if self.get(version) is not None:
            return None
        if version is None:
            return "the trace does not name its Kubernetes version (give --kubernetes)"
        lowest = min(low for low, _, _ in self._ranges)
        if OLDEST_READ <= version < lowest:
            return f"since {version_text(lowest)}"
        if max(high for _, high, _ in self._ranges) < version <= NEWEST_READ:
            return f"only for {self.text}"
        return f"unverified for {version_text(version)}"


ALL: ByVersion[bool] = ByVersion({"all": True})


def since(version: str) -> ByVersion[bool]:
    """The expectation holds from this version on."""
    return ByVersion({f">={version}": True})


RESTART_ALL_GATE = "RestartAllContainersOnContainerExits"
"""With it a container may restart its whole pod, and statuses keep what they said before."""

STATIC_GATE = "PreventStaticPodAPIReferences"
"""With it a static pod that refers to objects of the API server is refused."""

ON_SINCE: Mapping[str, Version] = {
    "ContainerRestartRules": (1, 35),
    "DynamicResourceAllocation": (1, 34),
    "ImageVolume": (1, 35),
    "InPlacePodVerticalScaling": (1, 33),
    "KubeletCrashLoopBackOffMax": (1, 35),
    "KubeletEnsureSecretPulledImages": (1, 35),
    "PodLifecycleSleepAction": (1, 30),
    "PodObservedGenerationTracking": (1, 34),
    "PodReadyToStartContainersCondition": (1, 29),
    RESTART_ALL_GATE: (1, 36),
    STATIC_GATE: (1, 34),
    "SidecarContainers": (1, 29),
}
"""Since which version a feature gate is on by default; one that is not named is off."""


def is_on(gate: str, given: Mapping[str, bool], version: Version | None) -> bool:
    """Whether a feature gate is on in a kubelet of that version with these gates configured."""
    usual = gate in ON_SINCE and version is not None and version >= ON_SINCE[gate]
    return given.get(gate, usual)


@cache
def releases() -> tuple[str, ...]:
    """The releases whose requirements are frozen, the oldest first."""
    names = [each.name.removesuffix(".txt") for each in _folder().iterdir() if each.name.endswith(".txt")]
    return tuple(sorted(names, key=lambda name: [int(part) for part in name.split(".")]))


@cache
def requirements(release: str) -> frozenset[str] | None:
    """The ids of the contracts that a release such as "1.32" must keep; None if they are not frozen."""
    if release not in releases():
        return None
    lines = _folder().joinpath(f"{release}.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def is_required(contract: str, release: str) -> bool:
    """Whether a break of the contract counts for a release; for one without frozen requirements all do."""
    frozen = requirements(release)
    return frozen is None or contract in frozen


def _folder() -> Traversable:
    return resources.files("kubelet_conformance.contract").joinpath("requirements")
