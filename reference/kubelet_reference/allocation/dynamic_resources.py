"""Dynamic resources: claims that a plugin prepares before a pod's sandbox, and takes back after its end.

A claim may serve several pods. It is prepared for the first and unprepared with the last. Who uses what is
written down on the node's disk, for a restarted kubelet must neither take away what is in use nor forget
what it has to give back (KEP-4381).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import grpc
import msgspec
from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.util.ports import Claim, Disk, ResourcePlugins
from kubelet_reference.util.settings import Settings

_STATE = "dra_manager_state"


class ResourcesError(Exception):
    """A pod's resources could not be prepared, or not be given back."""


class _Prepared(msgspec.Struct):
    """One prepared claim: its devices, and the UIDs of the pods that use it."""

    claim: Claim
    devices: list[str]
    pods: list[str]


def claims_of(pod: Pod) -> dict[str, Claim]:
    """The pod's claims by the names that its spec gives them.

    The pod's status names the claim made from a template; until it does, there is no such claim.
    """
    statuses = (pod.status.resourceClaimStatuses if pod.status else None) or ()
    made = {one.name: one.resourceClaimName for one in statuses}
    found: dict[str, Claim] = {}
    for one in pods.spec(pod).resourceClaims or ():
        name = one.resourceClaimName or made.get(one.name)
        if name:
            found[one.name] = Claim(pods.namespace(pod), name)
    return found


@dataclass(frozen=True, slots=True)
class _File:
    """Where the state is kept."""

    disk: Disk
    path: str

    def read(self) -> list[_Prepared]:
        try:
            return msgspec.json.decode(self.disk.read(self.path), type=list[_Prepared])
        except (OSError, msgspec.DecodeError):
            return []

    def write(self, state: Sequence[_Prepared]) -> None:
        self.disk.make_folder(self.path.rpartition("/")[0])
        self.disk.write(self.path, msgspec.json.encode(state))


class DynamicResources:
    """Prepares and unprepares; `plugins` is None where there is no driver."""

    def __init__(self, plugins: ResourcePlugins | None, disk: Disk, settings: Settings) -> None:
        self._plugins = plugins
        self._file = _File(disk, f"{settings.root_dir}/{_STATE}")
        self._state = {one.claim: one for one in self._file.read()} if plugins is not None else {}

    async def prepare(self, pod: Pod) -> None:
        """Have all claims of the pod prepared (SYNC-18); raises `ResourcesError`."""
        claims, uid = list(claims_of(pod).values()), pods.uid(pod)
        if len(claims) < len(pods.spec(pod).resourceClaims or ()):
            raise ResourcesError("a resource claim has not been made yet")
        missing = [one for one in claims if one not in self._state]
        if missing:
            await self._prepare(missing)
        for claim in claims:
            users = self._state[claim].pods
            if uid not in users:
                users.append(uid)
        if claims:
            self._file.write(list(self._state.values()))

    async def _prepare(self, claims: Sequence[Claim]) -> None:
        if self._plugins is None:
            raise ResourcesError("no plugin provides resources here")
        try:
            devices = await self._plugins.prepare(claims)
        except grpc.RpcError as error:
            raise ResourcesError(f"NodePrepareResources failed: {wrapped_text(error)}") from error
        for claim in claims:
            self._state[claim] = _Prepared(claim, list(devices.get(claim, ())), [])

    def devices(self, pod: Pod, container: AnyContainer) -> tuple[str, ...]:
        """The CDI names of the devices that the container has asked for."""
        resources, claims = container.resources, claims_of(pod)
        asked = [claims.get(one.name) for one in (resources.claims if resources else None) or ()]
        prepared = [self._state[claim] for claim in asked if claim is not None and claim in self._state]
        return tuple(dict.fromkeys(device for one in prepared for device in one.devices))

    async def unprepare(self, pod: Pod) -> None:
        """Give back what only this pod has used, when nothing of it runs any more (TERM-27).

        Raises `ResourcesError`; then the pod goes on using it, to its knowledge.
        """
        uid = pods.uid(pod)
        used = [one for one in self._state.values() if uid in one.pods]
        last = [one.claim for one in used if one.pods == [uid]]
        if last and self._plugins is not None:
            try:
                await self._plugins.unprepare(last)
            except grpc.RpcError as error:
                raise ResourcesError(f"NodeUnprepareResources failed: {wrapped_text(error)}") from error
        for one in used:
            one.pods.remove(uid)
        for claim in last:
            del self._state[claim]
        if used:
            self._file.write(list(self._state.values()))
