"""What a runtime reports about itself: version and conditions."""

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import runtime_scenario


@runtime_scenario("CRI-01", "CRI-02")
async def it_says_who_it_is(runtime: Runtime) -> None:
    """Ask for the version as a kubelet does at its start, and for the conditions."""
    await runtime.call("Version", cri.VersionRequest())
    await runtime.call("Version", cri.VersionRequest(version="0.1.0"))
    await runtime.call("Status", cri.StatusRequest())
