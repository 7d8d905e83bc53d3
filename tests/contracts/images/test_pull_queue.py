"""IMAGE contracts on the order, the rate and the credentials of pulls: each is kept once and broken once."""

from typing import Any

import pytest
from running import BROKEN, KEPT
from trace_builder import PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

AUTH = {"username": "digest-1", "password": "digest-2"}
SECRETS = [{"name": "one"}, {"name": "two"}]


def asked(s: TraceBuilder, web: PodHandle, image: str = "img:1", **more: Any) -> dict[str, Any]:
    """What a PullImage asks for."""
    return {"image": {"image": image}, "sandbox_config": s.sandbox_config(web), **more}


def pull(
    s: TraceBuilder, web: PodHandle, image: str = "img:1", *, error: str | None = None, **more: Any
) -> None:
    """PullImage."""
    s.call("PullImage", asked(s, web, image, **more), {"image_ref": f"sha256:{image}"}, error=error)


@pytest.mark.parametrize(
    ("configuration", "at_a_time", "verdict"),
    [
        ({}, 1, KEPT),
        ({}, 2, BROKEN),
        ({"serializeImagePulls": False, "maxParallelImagePulls": 2}, 2, KEPT),
        ({"serializeImagePulls": False, "maxParallelImagePulls": 2}, 3, BROKEN),
        ({"serializeImagePulls": False}, 3, KEPT),
    ],
)
def test_pulls_wait_for_their_turn(configuration: dict[str, Any], at_a_time: int, verdict: Verdict) -> None:
    """IMAGE-11: one at a time, or as many as the configuration says."""
    s = TraceBuilder(configuration=configuration)
    pods = [s.pod(f"web{number}") for number in range(at_a_time)]
    for _ in range(2):
        calls = [s.begin("PullImage", asked(s, each, f"{each.name}:1")) for each in pods]
        s.wait(1)
        for each in calls:
            s.end("PullImage", each, {"image_ref": "sha256:1"})

    assert s.judge("IMAGE-11").verdict is verdict


@detects(
    "IMAGE-12",
    begin=lambda: TraceBuilder(configuration={"registryPullQPS": 1, "registryBurst": 2}),
    between=(0.9, 0.5),
)
def test_pulls_are_limited(s: TraceBuilder, between: float) -> None:
    """IMAGE-12: so many at once, and then so many a second."""
    web = s.pod()
    for number in range(6):
        pull(s, web, f"img{number}:1")
        s.wait(between)


@pytest.mark.parametrize(("before", "verdict"), [(2, KEPT), (1, BROKEN)])
def test_first_pulls_are_not_limited(before: int, verdict: Verdict) -> None:
    """IMAGE-12: no pull is one too many before there were as many as may come at once."""
    s = TraceBuilder(configuration={"registryBurst": 2})
    web = s.pod()
    for _ in range(before + 1):
        s.record("event", uid=web.uid, type="Normal", reason="Pulling", message="", count=1)
    text = 'Failed to pull image "img:1": pull QPS exceeded'
    s.record("event", uid=web.uid, type="Warning", reason="Failed", message=text, count=1)

    assert s.judge("IMAGE-12").verdict is verdict


@detects("IMAGE-13")
def test_pod_without_secrets_pulls_anonymously(s: TraceBuilder, *, right: bool) -> None:
    """IMAGE-13 breaks when a pod without secrets pulls with credentials."""
    s.header["configuration"] = {}
    pull(s, s.pod(), auth={} if right else AUTH)


def test_other_credentials_are_no_other_pull() -> None:
    """IMAGE-02, 07, 08 and 23 take the next credential for the same pull."""
    s = TraceBuilder(configuration={})
    two = [{"name": name, "image": "img:1"} for name in ("c1", "c2")]
    web = s.pod(containers=two, imagePullSecrets=SECRETS)
    s.run_sandbox(web)
    s.call("ImageStatus", {"image": {"image": "img:1"}}, {})
    for after in (0, 11):
        s.wait(after)
        for _ in SECRETS:
            pull(s, web, error="UNKNOWN", auth=AUTH)
        s.call("ImageStatus", {"image": {"image": "img:1"}}, {})
    s.wait(21)
    pull(s, web, auth=AUTH)

    assert [s.judge(f"IMAGE-{each}").breaks for each in ("02", "07", "08", "23")] == [0, 0, 0, 0]


@pytest.mark.parametrize("wrong", ["no sandbox", "no pull"])
@detects("IMAGE-14")
def test_missing_secret_is_tolerated(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """IMAGE-14 breaks when the pod is not started, or its image not pulled."""
    one = {"name": "c1", "image": "img:1", "imagePullPolicy": "Always"}
    web = s.pod(containers=[one], imagePullSecrets=SECRETS)
    s.record("event", uid=web.uid, type="Warning", reason="FailedToRetrieveImagePullSecret", message="")
    if right or wrong != "no sandbox":
        s.run_sandbox(web)
    if right:
        pull(s, web)


def with_secrets(s: TraceBuilder, name: str, **spec: Any) -> tuple[PodHandle, SandboxHandle]:
    """A pod with a sandbox."""
    web = s.pod(name, **spec)
    return web, s.run_sandbox(web)


def allowlist(*images: str) -> dict[str, Any]:
    """A configuration with which pods need not prove their right to these images."""
    policy = {"imagePullCredentialsVerificationPolicy": "NeverVerifyAllowlistedImages"}
    return policy | {"preloadedImagesVerificationAllowlist": list(images)}


@pytest.mark.parametrize(
    ("listed", "image", "verdict"),
    [
        ("img", "img:1", Verdict.NOT_EXERCISED),
        ("registry/*", "registry/app:1", Verdict.NOT_EXERCISED),
        ("im", "img:1", BROKEN),
        ("registry", "registry/app:1", BROKEN),
    ],
)
def test_listed_image_is_anybodys(listed: str, image: str, verdict: Verdict) -> None:
    """IMAGE-21 asks nothing of the images of an allowlist, and of no other."""
    s = TraceBuilder("1.35", configuration=allowlist(listed))
    containers = [{"name": "c1", "image": image}]
    owner, _ = with_secrets(s, "owner", imagePullSecrets=SECRETS, containers=containers)
    thief, sandbox = with_secrets(s, "thief", containers=containers)
    pull(s, owner, image=image, auth=AUTH)
    s.create(thief, sandbox)

    assert s.judge("IMAGE-21").verdict is verdict


@pytest.mark.parametrize("why", ["open to all", "not verified", "gate"])
def test_image_may_be_anybodys(why: str) -> None:
    """IMAGE-21 says nothing of images that anybody may have, nor where nobody asks."""
    policy = {"imagePullCredentialsVerificationPolicy": "NeverVerify"} if why == "not verified" else {}
    s = TraceBuilder("1.32" if why == "gate" else "1.35", configuration=policy)
    owner, _ = with_secrets(s, "owner", imagePullSecrets=SECRETS)
    thief, sandbox = with_secrets(s, "thief")
    pull(s, owner, auth={} if why == "open to all" else AUTH)
    s.create(thief, sandbox)

    outcome = s.judge("IMAGE-21")

    assert outcome.verdict in {Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE}


@pytest.mark.parametrize(
    ("reason", "message", "verdict"),
    [
        ("RegistryUnavailable", "image pull failed for img:1: injected", KEPT),
        ("RegistryUnavailable", "it did not work", BROKEN),
        ("SignatureValidationFailed", "injected", BROKEN),
        ("ErrImagePull", "RegistryUnavailable: injected", BROKEN),
    ],
)
def test_well_known_errors_are_reasons(reason: str, message: str, verdict: Verdict) -> None:
    """IMAGE-10: the reason that the error begins with is reported, with a message."""
    s = TraceBuilder()
    web = s.pod()
    call = s.begin("PullImage", asked(s, web))
    error = {"code": "UNKNOWN", "message": "RegistryUnavailable: injected"}
    s.record("reply", rpc="PullImage", id=call, error=error)
    waiting = {"reason": reason, "message": message}
    s.status(web, "Pending", containerStatuses=[{"name": "c1", "state": {"waiting": waiting}}])

    assert s.judge("IMAGE-10").verdict is verdict
