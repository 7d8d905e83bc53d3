"""A status manager on virtual time, with an API server and a pod manager that fit in the hand."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from decisions_bench import START_NS
from lightkube.models.core_v1 import Pod, PodStatus
from msgspec import convert, to_builtins
from msgspec.structs import replace

from kubelet_fakes.api.merging import merged
from kubelet_fakes.api.objects import frozen
from kubelet_fakes.clock import LoopClock, run
from kubelet_reference.api import pods
from kubelet_reference.status.status_manager import PodSafety, StatusManager
from kubelet_reference.util.ports import ApiError
from kubelet_reference.util.versions import Behaviour


class Api:
    """Keeps pods by name, merges status patches and notes writes; `failures` names verbs that fail next."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.writes: list[tuple[str, Any]] = []
        self.reads = 0
        self.failures: list[str] = []

    def add(self, pod: Pod) -> None:
        """The pod is there."""
        self.pods[pods.name(pod)] = pod

    async def get_pod(self, _namespace: str, name: str) -> Pod:
        """The pod of that name."""
        self.reads += 1
        if name not in self.pods:
            raise ApiError(404, "NotFound", f"pods {name!r} not found")
        return self.pods[name]

    async def patch_pod_status(self, _namespace: str, name: str, patch: Mapping[str, object]) -> Pod:
        """Merge the patch, if the UID in it is the pod's."""
        self._fail("patch")
        pod = self.pods[name]
        assert patch["metadata"] == {"uid": pods.uid(pod)}
        self.writes.append(("patch", patch["status"]))
        status = merged(frozen(to_builtins(pod.status or PodStatus())), to_builtins(patch["status"]))
        self.pods[name] = replace(pod, status=convert(to_builtins(status), PodStatus))
        return self.pods[name]

    async def delete_pod(self, _namespace: str, name: str, *, grace_seconds: int, uid: str | None) -> None:
        """Remove the pod at once."""
        self.writes.append(("delete", (grace_seconds, uid)))
        self._fail("delete")
        del self.pods[name]

    def _fail(self, verb: str) -> None:
        if verb in self.failures:
            self.failures.remove(verb)
            raise ApiError(500, "InternalError", "no luck")


class Bench:
    """The manager, and everything that it asks."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.api = Api()
        self.known: dict[str, Pod] = {}
        self.mirror: Pod | None = None
        self.could_run = True
        self.reclaimed = True
        self.clock = LoopClock(START_NS)
        safety = PodSafety(lambda _: self.could_run, lambda _: self.reclaimed)
        api: Any = self.api
        known: Any = self
        self.manager = StatusManager(api, self.clock, known, safety, behaviour)

    def by_uid(self, uid: str) -> Pod | None:
        """As the pod manager has it."""
        return self.known.get(uid)

    def mirror_of(self, pod: Pod) -> Pod | None:
        """The one mirror that there is."""
        assert pods.is_static(pod)
        return self.mirror

    def want(self, pod: Pod) -> Pod:
        """The pod is in the API server, and the kubelet knows it."""
        self.known[pods.uid(pod)] = pod
        self.api.add(pod)
        return pod

    def see(self) -> None:
        """The kubelet's watch delivers what the API server has."""
        for pod in self.api.pods.values():
            if pods.uid(pod) in self.known:
                self.known[pods.uid(pod)] = pod

    async def let(self, seconds: float) -> None:
        """Let time pass."""
        await self.clock.sleep(seconds)

    @property
    def patches(self) -> list[dict[str, Any]]:
        """The status patches, in order."""
        return [body for verb, body in self.api.writes if verb == "patch"]

    @property
    def verbs(self) -> list[str]:
        """The verbs of all writes, in order."""
        return [verb for verb, _ in self.api.writes]

    @property
    def stored(self) -> PodStatus:
        """The status that the API server has of the pod."""
        return self.api.pods["web"].status or PodStatus()


def on_bench(work: Callable[[Bench], Awaitable[None]], *, behaviour: Behaviour | None = None) -> None:
    """Do this work on a bench whose manager writes meanwhile."""

    async def main() -> None:
        bench = Bench(behaviour or Behaviour.of())
        writing = asyncio.get_running_loop().create_task(bench.manager.run())
        await work(bench)
        writing.cancel()

    run(main())
