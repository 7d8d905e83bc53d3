"""The machine of a node in process: what is left of its memory and disk, what pods use, and its shutdown."""

import asyncio
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from kubelet_conformance.targets.controls import SHUTDOWN_GOES_ON, ActiveFault, InjectedFault, MachineControl
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_fakes.disk import MemoryDisk
from kubelet_reference.api.quantities import whole
from kubelet_reference.util.ports import Amount, PodUsage
from kubelet_reference.util.settings import Settings

_CAPACITY = 100 << 30
"""What there is of everything but memory."""
_VOLUME, _CONTAINER = "volume ", "container "
_MEMORY = "memory"
_FIELDS = {
    "eviction_hard": "evictionHard",
    "eviction_soft": "evictionSoft",
    "eviction_soft_grace_period": "evictionSoftGracePeriod",
    "eviction_max_pod_grace_period": "evictionMaxPodGracePeriod",
    "eviction_pressure_transition_period": "evictionPressureTransitionPeriod",
    "shutdown_grace_period": "shutdownGracePeriod",
    "shutdown_grace_period_critical_pods": "shutdownGracePeriodCriticalPods",
    "maximum_dead_containers": "maximumDeadContainers",
    "image_pull_credentials_verification_policy": "imagePullCredentialsVerificationPolicy",
    "preloaded_images_verification_allowlist": "preloadedImagesVerificationAllowlist",
    "max_parallel_image_pulls": "maxParallelImagePulls",
    "registry_burst": "registryBurst",
    "registry_pull_qps": "registryPullQPS",
    "serialize_image_pulls": "serializeImagePulls",
}
_DURATIONS = frozenset(
    {
        "eviction_soft_grace_period",
        "eviction_pressure_transition_period",
        "shutdown_grace_period",
        "shutdown_grace_period_critical_pods",
    }
)


class Machine(MachineControl):
    """The ports `NodeStats` and `ShutdownSignal` of the kubelet, controlled by a scenario.

    Memory that a pod used is free again when no container of it runs any more; `runs` says so by UID.
    """

    def __init__(
        self, recorder: Recorder, memory_bytes: int, runs: Callable[[str], bool], disk: MemoryDisk
    ) -> None:
        self._recorder = recorder
        self._disk = disk
        self._memory_bytes = memory_bytes
        self._runs = runs
        self._low: dict[str, str] = {}
        self._usage: dict[str, dict[str, str]] = {}
        self._gone_before: frozenset[str] = frozenset()
        self._goes_down = asyncio.Event()

    # What scenarios do.

    def press(self, signal: str, available: str) -> None:
        """Leave so much of something, an amount or a share of the whole such as 5%."""
        self._low[signal] = available
        self._gone_before = frozenset(uid for uid in self._usage if not self._runs(uid))
        self._recorder.record("fault", what=f"{signal} is low", values={signal: available})

    def relieve(self, signal: str) -> None:
        """There is enough of it again."""
        self._low.pop(signal, None)
        self._recorder.record("fault", what=f"healed: {signal} is low")

    def use(self, uid: str, amounts: Mapping[str, str]) -> None:
        """Let a pod use so much from now on."""
        self._usage.setdefault(uid, {}).update(amounts)
        self._recorder.record("fault", what="a pod uses more", uid=uid, values=dict(amounts))

    def shut_down(self) -> None:
        """Announce that the machine goes down; it does not, so that one can see what becomes of its pods."""
        self._recorder.record("fault", what="the node shuts down")
        self._goes_down.set()

    def damage(self, path: str) -> ActiveFault:
        """Nothing at `path` and below can be read, written or removed until healed."""
        return InjectedFault(self._disk.broken(path))

    def leave_file(self, path: str) -> None:
        """Put an empty file there, as another program might."""
        self._disk.make_folder(path.rpartition("/")[0])
        self._disk.write(path, b"")

    def shown(self, path: str) -> Mapping[str, tuple[str, int]]:
        """The files that a container finds where `path` is mounted, and "" for it: text and permissions."""
        found = self._disk.below(path)
        return {name: (content.decode(errors="replace"), mode) for name, (content, mode) in found.items()}

    # What the kubelet asks.

    async def read(self) -> Mapping[str, Amount]:
        """What is left of what scenarios have made scarce."""
        return {signal: self._amount(signal, text) for signal, text in self._low.items()}

    async def usage(self) -> Mapping[str, PodUsage]:
        """What scenarios have set as the usage of pods."""
        return {uid: _usage(amounts) for uid, amounts in self._usage.items()}

    async def announced(self) -> None:
        """Return when the machine is about to go down."""
        await self._goes_down.wait()

    def release(self) -> None:
        """The kubelet holds the shutdown up no longer."""
        self._recorder.record("fault", what=SHUTDOWN_GOES_ON)

    def _amount(self, signal: str, text: str) -> Amount:
        capacity = self._memory_bytes if signal.startswith(_MEMORY) else _CAPACITY
        if text.endswith("%"):
            return Amount(int(capacity * Fraction(text.removesuffix("%")) // 100), capacity)
        return Amount(whole(text) + (self._freed() if signal.startswith(_MEMORY) else 0), capacity)

    def _freed(self) -> int:
        gone = (uid for uid in self._usage if uid not in self._gone_before and not self._runs(uid))
        return sum(_usage(self._usage[uid]).amounts.get(_MEMORY, 0) for uid in gone)


def _usage(given: Mapping[str, str]) -> PodUsage:
    return PodUsage(
        amounts={name: whole(text) for name, text in given.items() if " " not in name},
        containers=_named(given, _CONTAINER),
        volumes=_named(given, _VOLUME),
    )


def _named(given: Mapping[str, str], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): whole(text) for name, text in given.items() if name.startswith(prefix)}


def configuration(settings: Settings) -> dict[str, Any]:
    """What of pulls, evictions and the shutdown is set, as KubeletConfiguration has it."""
    usual = type(settings)()
    found: dict[str, Any] = {}
    for ours, theirs in _FIELDS.items():
        value = getattr(settings, ours)
        if value != getattr(usual, ours):
            found[theirs] = _duration(value) if ours in _DURATIONS else value
    if settings.max_container_restart_period != usual.max_container_restart_period:
        period = _duration(settings.max_container_restart_period)
        found["crashLoopBackOff"] = {"maxContainerRestartPeriod": period}
    groups = settings.shutdown_grace_period_by_pod_priority
    if groups:
        names = "priority", "shutdownGracePeriodSeconds"
        found["shutdownGracePeriodByPodPriority"] = [dict(zip(names, group, strict=True)) for group in groups]
    return found


def _duration(value: Any) -> Any:  # noqa: ANN401 - a number, or numbers by name
    if isinstance(value, dict):
        return {name: _duration(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return f"{value:g}s"


def allocatable(settings: Settings) -> dict[str, str]:
    """What the node has for its pods, as a Node's status has it."""
    return {
        "cpu": f"{settings.cpu_millicores}m",
        "memory": str(settings.memory_bytes),
        "pods": str(settings.max_pods),
    }
