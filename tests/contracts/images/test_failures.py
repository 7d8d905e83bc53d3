"""IMAGE contracts on names, users, siblings and events: kept by a right trace, broken by a wrong one."""

from typing import Any

import pytest
from running import BROKEN, KEPT
from trace_builder import PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

BAD = "Not/An Image"


def ask(s: TraceBuilder, image: str = "img:1", **user: Any) -> None:
    """ImageStatus."""
    found = {"image": {"id": f"sha256:{image}", "repo_tags": [image], "size": "1", **user}}
    s.call("ImageStatus", {"image": {"image": image}}, found)


def waits(s: TraceBuilder, web: PodHandle, reason: str, name: str = "c1") -> None:
    """A status in which a container waits for this reason."""
    s.status(web, "Pending", containerStatuses=[{"name": name, "state": {"waiting": {"reason": reason}}}])


@pytest.mark.parametrize("wrong", ["untold", "asked", "pulled"])
@detects("IMAGE-05")
def test_unreadable_name_is_reported(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """IMAGE-05 breaks when it is not reported, and when the runtime is asked for such an image."""
    web = s.pod(containers=[{"name": "c1", "image": BAD}])
    sandbox = s.run_sandbox(web)
    if not right and wrong == "asked":
        s.call("ImageStatus", {"image": {"image": BAD}}, {})
    if not right and wrong == "pulled":
        s.call("PullImage", {"image": {"image": BAD}, "sandbox_config": sandbox.config}, {})
    if right or wrong != "untold":
        waits(s.wait(11), web, "InvalidImageName")


@pytest.mark.parametrize("image", ["img", "a.b:5000/c/d:1", f"img@sha256:{'5f' * 32}"])
def test_good_names_are_good(image: str) -> None:
    """IMAGE-05 says nothing of names that can be read."""
    s = TraceBuilder()
    ask(s, image)

    assert s.judge("IMAGE-05").activations == 0


def reported(s: TraceBuilder, web: PodHandle, reason: str, message: str = "") -> None:
    """An event on the container."""
    about = {"uid": web.uid, "container": "spec.containers{c1}"}
    s.record("event", type="Normal", reason=reason, message=message, **about)


PULLED = 'Successfully pulled image "img:1" in 2s (2s including waiting). Image size: 5 bytes.'


@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        (["Pulling", "Pulled", "Created", "Started"], KEPT),
        (["Pulled", "Pulling", "Created", "Started"], BROKEN),
        (["Pulling", "Created", "Pulled", "Started"], BROKEN),
        (["Pulling", "Pulled", "Started", "Created"], BROKEN),
    ],
)
def test_events_come_in_order(events: list[str], verdict: Verdict) -> None:
    """IMAGE-18: Pulling, Pulled, Created, Started."""
    s = TraceBuilder()
    web = s.pod()
    for reason in events:
        reported(s, web, reason, PULLED)

    assert s.judge("IMAGE-18").verdict is verdict


@pytest.mark.parametrize(
    ("version", "message", "verdict"),
    [("1.32", PULLED.partition(". ")[0], BROKEN), ("1.26", PULLED.partition(". ")[0], KEPT)],
)
def test_size_is_reported(version: str, message: str, verdict: Verdict) -> None:
    """IMAGE-18: from 1.29 on the event of a pull tells how much it brought."""
    s = TraceBuilder(version)
    web = s.pod()
    for reason in ("Pulling", "Pulled"):
        reported(s, web, reason, message)

    assert s.judge("IMAGE-18").verdict is verdict


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ("2s (2s including waiting)", KEPT),
        ("1m2s (1h0m0.5s including waiting)", KEPT),
        ("0s (2s including waiting)", BROKEN),
        ("1940ms (2s including waiting)", BROKEN),
        ("1960.5ms (2s including waiting)", KEPT),
        ("3s (2s including waiting)", BROKEN),
    ],
)
def test_times_of_a_pull(times: str, verdict: Verdict) -> None:
    """IMAGE-18: the event of a pull says how long it took, and that is not less than the call."""
    s = TraceBuilder()
    web = s.pod()
    request = {"image": {"image": "img:1"}, "sandbox_config": s.run_sandbox(web).config}
    reported(s, web, "Pulling")
    s.call("PullImage", request, {"image_ref": "sha256:img:1"}, takes=2)
    reported(s, web, "Pulled", f'Successfully pulled image "img:1" in {times}. Image size: 5 bytes.')

    assert s.judge("IMAGE-18").verdict is verdict


@pytest.mark.parametrize(
    ("image", "verdict"),
    [
        ({"uid": {"value": "1000"}}, KEPT),
        ({"username": "app"}, BROKEN),
        ({"uid": {"value": "0"}}, BROKEN),
        ({}, BROKEN),
    ],
)
def test_root_is_kept_out(image: dict[str, Any], verdict: Verdict) -> None:
    """IMAGE-22: the image's user has to be a number, and not root."""
    s = TraceBuilder()
    web = s.pod(securityContext={"runAsNonRoot": True}, containers=[{"name": "c1", "image": "img:1"}])
    sandbox = s.run_sandbox(web)
    ask(s, **image)
    s.create(web, sandbox)

    assert s.judge("IMAGE-22").verdict is verdict


def test_named_user_is_enough() -> None:
    """IMAGE-22 says nothing where the pod itself names a user."""
    s = TraceBuilder()
    web = s.pod(securityContext={"runAsNonRoot": True, "runAsUser": 7})
    sandbox = s.run_sandbox(web)
    ask(s)
    s.create(web, sandbox)

    assert s.judge("IMAGE-22").activations == 0


@pytest.mark.parametrize(
    ("image", "present", "pulls", "verdict"),
    [
        ("img", True, True, KEPT),
        ("img:latest", True, False, BROKEN),
        ("img:1", True, False, KEPT),
        ("img:1", True, True, BROKEN),
    ],
)
def test_policy_follows_from_the_tag(image: str, verdict: Verdict, *, present: bool, pulls: bool) -> None:
    """IMAGE-19: latest is pulled each time, any other tag where it is absent."""
    s = TraceBuilder()
    web = s.pod(containers=[{"name": "c1", "image": image}])
    sandbox = s.run_sandbox(web)
    full = image if ":" in image else f"{image}:latest"
    if present:
        ask(s, full)
    if pulls:
        request = {"image": {"image": full}, "sandbox_config": sandbox.config}
        s.call("PullImage", request, {"image_ref": f"sha256:{full}"})
    given = {"image": f"sha256:{full}", "user_specified_image": image}
    s.create(web, sandbox, config=s.container_config(web, "c1", image=given))

    assert s.judge("IMAGE-19").verdict is verdict


@pytest.mark.parametrize("whose", ["another pod", "another container"])
def test_another_may_have_the_image_pulled(whose: str) -> None:
    """IMAGE-19: a pull for another pod, or for a container with the policy Always, is not this one's."""
    s = TraceBuilder()
    always = [{"name": "c2", "image": "img:1", "imagePullPolicy": "Always"}]
    more = always if whose == "another container" else []
    web = s.pod(containers=[{"name": "c1", "image": "img:1"}, *more])
    sandbox = s.run_sandbox(web)
    puller = sandbox if more else s.run_sandbox(s.pod("other", containers=always))
    ask(s, "img:1")
    request = {"image": {"image": "img:1"}, "sandbox_config": puller.config}
    s.call("PullImage", request, {"image_ref": "sha256:img:1"})
    s.create(web, sandbox)

    assert s.judge("IMAGE-19").verdict is KEPT
