"""Bugs of the sync loop: when it works, for whom it waits, and what wakes it."""

from __future__ import annotations

from collections.abc import Iterable

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.config import Op, PodUpdate
from kubelet_reference.parts import Parts
from kubelet_reference.pod_handlers import PodHandlers
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.runtime_state import RuntimeState
from kubelet_reference.sandbox_config import sandbox_config
from kubelet_reference.settings import Settings
from kubelet_reference.stop_timeout import stop_timeout
from kubelet_reference.sync_loop import SyncLoop
from kubelet_reference.versions import Behaviour


class _NeverWaits(SyncLoop):
    """Goes on whatever the runtime says of itself."""

    async def wait_until_fit(self) -> None:
        return


class _Impatient(SyncLoop):
    """Gives the loop one minute."""

    def is_healthy(self) -> bool:
        entered = self._entered_at
        return entered is None or self._tools.clock.monotonic() - entered <= 60  # noqa: PLR2004 - one minute


class _NetworkIsAll(RuntimeState):
    """Takes a node without a network for one without a runtime."""

    def errors(self) -> list[str]:
        return super().errors() + ([self._network] if self._network is not None else [])


class _SeldomAsks(RuntimeState):
    """Asks the runtime how it is every half a minute."""

    async def poll(self) -> None:
        await super().poll()
        if self._good_at is not None:
            await self._clock.sleep(25)


class _CleansAtOnce(SyncLoop):
    """Cleans up before all sources have spoken."""

    async def keep_house(self) -> None:
        await self._tools.housekeeping.run_once()


class _LooksAtAll(SyncLoop):
    """Looks at every pod each second."""

    def due(self) -> list[str]:
        super().due()
        handlers = self._tools.handlers
        return [pods.uid(pod) for pod in handlers._tools.manager.pods()]  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class _WaitsForStops(SyncLoop):
    """Stands still until a pod that is deleted has stopped."""

    async def take_update(self, update: PodUpdate) -> None:
        await super().take_update(update)
        if update.op in {Op.DELETE, Op.REMOVE}:
            handlers = self._tools.handlers
            workers = handlers._tools.workers  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            while any(workers.could_have_running_containers(pods.uid(pod)) for pod in update.pods):
                await self._tools.clock.sleep(0.5)


class _AsTheyCome(PodHandlers):
    """Takes new pods as they come, whichever is older."""

    async def add(self, added: Iterable[Pod]) -> None:
        for pod in added:
            await super().add([pod])


def _no_time_to_end(base: int, override: int | None, waited: float, behaviour: Behaviour) -> int:
    """Kills at once what is to be deleted."""
    return 0 if override is not None else stop_timeout(base, override, waited, behaviour)


_NODES_SERVERS = ("10.0.0.2", "10.0.0.3", "10.0.0.4")


def _with_the_nodes_servers(pod: Pod, attempt: int, settings: Settings) -> cri.PodSandboxConfig:
    """Adds the node's name servers to those of the pod, however many that makes."""
    config = sandbox_config(pod, attempt, settings)
    config.dns_config.servers.extend(_NODES_SERVERS)
    return config


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-LOOP-03",
        "Pods are synced although the runtime says that it is not ready.",
        lambda: Parts(sync_loop=_NeverWaits),
        ("LOOP-03",),
    ),
    Bug(
        "MUT-LOOP-04",
        "No pod is synced while the network is not ready, not even one that needs none.",
        lambda: Parts(runtime_state=_NetworkIsAll),
        ("LOOP-04",),
    ),
    Bug(
        "MUT-LOOP-05",
        "The runtime is asked for its Status every 30 s only.",
        lambda: Parts(runtime_state=_SeldomAsks),
        ("LOOP-05",),
    ),
    Bug(
        "MUT-LOOP-08",
        "A kubelet that starts kills the pods of sources that have not spoken yet.",
        lambda: Parts(sync_loop=_CleansAtOnce),
        ("LOOP-08",),
    ),
    Bug(
        "MUT-LOOP-11",
        "Every pod is synced each second.",
        lambda: Parts(sync_loop=_LooksAtAll),
        ("LOOP-11",),
    ),
    Bug(
        "MUT-LOOP-13",
        "The loop waits until a deleted pod has stopped.",
        lambda: Parts(sync_loop=_WaitsForStops),
        ("LOOP-13",),
    ),
    Bug(
        "MUT-LOOP-14",
        "New pods are admitted in no order, so that the older one may find its room taken.",
        lambda: Parts(pod_handlers=_AsTheyCome),
        ("LOOP-14",),
    ),
    Bug(
        "MUT-LOOP-19",
        "A loop that stands still for a minute is taken for dead.",
        lambda: Parts(sync_loop=_Impatient),
        ("LOOP-19",),
    ),
    Bug(
        "MUT-LOOP-21",
        "A pod gets the node's name servers besides its own, more than resolv.conf takes.",
        lambda: Parts(runtime=RuntimeParts(sandbox_config=_with_the_nodes_servers)),
        ("LOOP-21",),
    ),
    Bug(
        "MUT-LOOP-15",
        "A deleted pod is killed without its grace.",
        lambda: Parts(runtime=RuntimeParts(stop_timeout=_no_time_to_end)),
        ("LOOP-15",),
    ),
)
