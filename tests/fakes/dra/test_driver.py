"""What a driver of devices answers a kubelet, and what claims it finds at the API server (KEP-4381)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from kubelet_fakes.api import ApiCore
from kubelet_fakes.dra.claims import Claims
from kubelet_fakes.dra.driver import NAME, ClaimName, DraDriver
from kubelet_fakes.dra.protocol import METHODS, SERVICES, message
from kubelet_fakes.runtime.errors import CallError

CLAIMS = [{"name": "gpu", "resourceClaimName": "fast"}]


class Devices:
    """One device for each claim; what could not be prepared cannot be given back either."""

    def __init__(self) -> None:
        self.prepared: list[ClaimName] = []

    async def prepare(self, claims: Sequence[ClaimName]) -> dict[ClaimName, tuple[str, ...]]:
        """Note the claims."""
        self.prepared += claims
        return {each: (f"cdi/{each.name}",) for each in claims}

    async def unprepare(self, claims: Sequence[ClaimName]) -> None:
        """Forget the claims."""
        if any(each not in self.prepared for each in claims):
            raise CallError(grpc.StatusCode.UNAVAILABLE, "no such claim")
        self.prepared = [each for each in self.prepared if each not in claims]


async def called(path: Path, service: str, name: str, request: Any) -> Any:
    """What a kubelet gets for a call."""
    method = next(each for each in METHODS if (each.service, each.name) == (service, name))
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        call: Any = channel.unary_unary(
            f"/{service}/{name}",
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        return await call(request)


@pytest.mark.asyncio
async def test_kubelet_finds_the_driver(tmp_path: Path) -> None:
    """It says at a socket in the folder of plugins who it is, and where and how it is called."""
    async with DraDriver(tmp_path / "kubelet", Devices()):
        [path] = (tmp_path / "kubelet" / "plugins_registry").iterdir()
        found = await called(path, "pluginregistration.Registration", "GetInfo", message("Nothing")())

    assert (found.type, found.name, found.endpoint) == ("DRAPlugin", NAME, str(path))
    assert list(found.supported_versions) == list(SERVICES)
    assert not path.exists()


@pytest.mark.asyncio
@pytest.mark.parametrize("version", SERVICES)
async def test_claims_are_prepared_and_given_back(tmp_path: Path, version: str) -> None:
    """Each claim of a request is answered by its UID; a failure is the call's."""
    devices, service = Devices(), f"k8s.io.kubelet.pkg.apis.dra.{version}"
    request = message("Claims")(claims=[message("Claim")(namespace="default", uid="u1", name="fast")])
    async with DraDriver(tmp_path, devices):
        [path] = (tmp_path / "plugins_registry").iterdir()
        prepared = await called(path, service, "NodePrepareResources", request)
        assert devices.prepared == [("default", "fast")]
        back = await called(path, service, "NodeUnprepareResources", request)
        with pytest.raises(grpc.aio.AioRpcError, match="no such claim"):
            await called(path, service, "NodeUnprepareResources", request)

    [of_claim] = prepared.claims
    [device] = of_claim.devices.devices
    assert (of_claim.uid, list(device.cdi_device_ids)) == ("u1", ["cdi/fast"])
    assert [each.uid for each in back.claims] == ["u1"]


def _claim(core: ApiCore, name: str) -> tuple[list[str], list[str], str]:
    """Who uses a claim, who owns it, and which driver has its device."""
    found = core.get("resourceclaims", name)
    [device] = found["status"]["allocation"]["devices"]["results"]
    owners = found["metadata"].get("ownerReferences") or ()
    users = [each["name"] for each in found["status"]["reservedFor"]]
    return users, [each["name"] for each in owners], device["driver"]


def test_claims_are_reserved_for_their_pods() -> None:
    """A claim is there for all pods that name it; one that was made for a pod is its own."""
    core = ApiCore(lambda: 0)
    core.on_change.append(Claims(core).take)
    spec = {"containers": [{"name": "c1", "image": "img:1"}], "nodeName": "node-1"}
    template = [{"name": "gpu", "resourceClaimTemplateName": "usual"}]
    for name, claims in (("one", CLAIMS), ("two", CLAIMS), ("own", template)):
        core.create("pods", {"metadata": {"name": name}, "spec": {**spec, "resourceClaims": claims}})
    assert _claim(core, "fast") == (["one", "two"], [], NAME)

    made = [{"name": "gpu", "resourceClaimName": "own-gpu"}]
    core.patch("pods", "own", {"status": {"resourceClaimStatuses": made}}, "default", "status")
    core.delete("pods", "one", "default", grace_seconds=0)

    assert _claim(core, "own-gpu") == (["own"], ["own"], NAME)
    assert _claim(core, "fast") == (["two"], [], NAME)
