"""Dynamic resources: what is prepared for whom, and who remembers it."""

from collections.abc import Sequence

import grpc
import pytest
from lightkube.models.core_v1 import (
    Container,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSpec,
    PodStatus,
    ResourceClaim,
    ResourceRequirements,
)
from lightkube.models.meta_v1 import ObjectMeta
from on_loop import in_virtual_time

from kubelet_fakes.clock import run
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.runtime.errors import CallError
from kubelet_reference.allocation.dynamic_resources import DynamicResources, ResourcesError, claims_of
from kubelet_reference.util.ports import Claim
from kubelet_reference.util.settings import Settings

FAST = Claim("default", "fast")
"""The claim that the pods of these tests have."""


class Plugin:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.error: CallError | None = None

    async def prepare(self, claims: Sequence[Claim]) -> dict[Claim, tuple[str, ...]]:
        """One device a claim."""
        self._note("prepare", claims)
        return {claim: (f"devices.example/device={claim.name}",) for claim in claims}

    async def unprepare(self, claims: Sequence[Claim]) -> None:
        """Nothing to do."""
        self._note("unprepare", claims)

    def _note(self, what: str, claims: Sequence[Claim]) -> None:
        self.asked.append(f"{what} {' '.join(claim.name for claim in claims)}")
        if self.error is not None:
            raise self.error


def pod(name: str = "web") -> Pod:
    """A pod whose container uses the claim."""
    uses = ResourceRequirements(claims=[ResourceClaim(name="gpu")])
    spec = PodSpec(
        containers=[Container(name="c1", resources=uses), Container(name="c2")],
        resourceClaims=[PodResourceClaim(name="gpu", resourceClaimName="fast")],
    )
    return Pod(metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"), spec=spec)


@in_virtual_time
async def test_claim_is_prepared_once_and_given_back_with_its_last_pod() -> None:
    """Two pods share a claim: the plugin hears of the first and of the last, though the kubelet restarts."""
    plugin, disk = Plugin(), MemoryDisk()
    before = DynamicResources(plugin, disk, Settings())
    await before.prepare(pod("one"))
    await before.prepare(pod("two"))
    after = DynamicResources(plugin, disk, Settings())
    await after.unprepare(pod("one"))
    await after.unprepare(pod("two"))
    await after.unprepare(pod("two"))

    assert plugin.asked == ["prepare fast", "unprepare fast"]


def test_container_gets_the_devices_that_it_asks_for() -> None:
    """A container that names no claim gets no device."""
    resources, web = DynamicResources(Plugin(), MemoryDisk(), Settings()), pod()
    run(resources.prepare(web))
    containers = web.spec.containers if web.spec else []

    assert resources.devices(web, containers[0]) == ("devices.example/device=fast",)
    assert resources.devices(web, containers[1]) == ()


def test_failures_are_reported_and_forgotten() -> None:
    """After a failed preparation nothing counts as prepared; after a failed return it still does."""
    plugin = Plugin()
    resources = DynamicResources(plugin, MemoryDisk(), Settings())
    plugin.error = CallError(grpc.StatusCode.UNAVAILABLE, "no driver")
    with pytest.raises(ResourcesError, match="no driver"):
        run(resources.prepare(pod()))
    plugin.error = None
    run(resources.prepare(pod()))
    plugin.error = CallError(grpc.StatusCode.UNAVAILABLE, "busy")
    with pytest.raises(ResourcesError, match="busy"):
        run(resources.unprepare(pod()))
    plugin.error = None
    run(resources.unprepare(pod()))

    assert plugin.asked == ["prepare fast"] * 2 + ["unprepare fast"] * 2


def test_nobody_provides_resources() -> None:
    """A pod with a claim cannot run where there is no plugin; one without can."""
    resources = DynamicResources(None, MemoryDisk(), Settings())
    run(resources.prepare(Pod(spec=PodSpec(containers=[]))))

    with pytest.raises(ResourcesError, match="no plugin"):
        run(resources.prepare(pod()))


def test_claim_of_a_template_is_reported_by_the_status() -> None:
    """Until the claim has been made for a template, the pod has to wait."""
    web = pod()
    assert web.spec is not None
    web.spec.resourceClaims = [PodResourceClaim(name="gpu", resourceClaimTemplateName="any")]

    assert claims_of(web) == {}
    with pytest.raises(ResourcesError, match="not been made"):
        run(DynamicResources(Plugin(), MemoryDisk(), Settings()).prepare(web))

    made = PodResourceClaimStatus(name="gpu", resourceClaimName="fast")
    web.status = PodStatus(resourceClaimStatuses=[made])

    assert claims_of(web) == {"gpu": FAST}


def test_broken_state_is_no_state() -> None:
    """A file that cannot be read is as none."""
    disk, plugin = MemoryDisk(), Plugin()
    disk.make_folder("/var/lib/kubelet")
    disk.write("/var/lib/kubelet/dra_manager_state", b"{")
    run(DynamicResources(plugin, disk, Settings()).prepare(pod()))

    assert plugin.asked == ["prepare fast"]
