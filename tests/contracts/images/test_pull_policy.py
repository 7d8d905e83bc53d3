"""IMAGE contracts on finding an image and using it: kept by a right trace, broken by a wrong one."""

from typing import Any

import pytest
from trace_builder import PodHandle, SandboxHandle, TraceBuilder
from twice import assert_detects, detects

from kubelet_conformance.contract.verdicts import Verdict

IMAGE = "img:1"


def begun(
    s: TraceBuilder, policy: str = "IfNotPresent", image: str = IMAGE
) -> tuple[PodHandle, SandboxHandle]:
    """A pod with a sandbox."""
    web = s.pod(containers=[{"name": "c1", "image": image, "imagePullPolicy": policy}])
    return web, s.run_sandbox(web)


def ask(s: TraceBuilder, *, present: bool = True, image: str = IMAGE, error: str | None = None) -> None:
    """ImageStatus."""
    found = {"image": {"id": f"sha256:{image}", "repo_tags": [image], "size": "1"}} if present else {}
    s.call("ImageStatus", {"image": {"image": image}}, found, error=error)


def pull(s: TraceBuilder, web: PodHandle, image: str = IMAGE) -> None:
    """PullImage."""
    request = {"image": {"image": image}, "sandbox_config": s.sandbox_config(web)}
    s.call("PullImage", request, {"image_ref": f"sha256:{image}"})


def waits(s: TraceBuilder, web: PodHandle, reason: str) -> None:
    """A status in which c1 waits for this reason."""
    s.status(web, "Pending", containerStatuses=[{"name": "c1", "state": {"waiting": {"reason": reason}}}])


@pytest.mark.parametrize(
    ("policy", "present", "pulls"),
    [
        ("IfNotPresent", True, False),
        ("IfNotPresent", False, True),
        ("Always", True, True),
        ("Never", True, False),
    ],
)
@detects("IMAGE-02")
def test_policy_decides(s: TraceBuilder, policy: str, *, right: bool, present: bool, pulls: bool) -> None:
    """IMAGE-02 breaks when the policy asks for a pull that does not come, or forbids the one that comes."""
    web, sandbox = begun(s, policy)
    ask(s, present=present)
    if pulls == right:
        pull(s, web)
    ask(s)
    s.create(web, sandbox)


@pytest.mark.parametrize("wrong", ["unasked", "again"])
@detects("IMAGE-02")
def test_pull_follows_an_absence(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """IMAGE-02 breaks when a pull is repeated, or made, without looking for the image."""
    web, _ = begun(s)
    if right or wrong == "again":
        ask(s, present=False)
    pull(s, web)
    if not right:
        pull(s, web)


@detects("IMAGE-19", breaks=(False, True), queued=(True, False))
def test_pull_follows_what_was_so_before_its_turn(s: TraceBuilder, *, queued: bool, breaks: bool) -> None:
    """IMAGE-02 and 19: a pull that waited for another one is made though that has brought the image."""
    web = s.pod(containers=[{"name": "c1", "image": IMAGE}])
    sandbox = s.run_sandbox(web)
    ask(s, present=False)
    if queued:
        s.record("event", uid=web.uid, type="Normal", reason="Pulling", message=f'Pulling image "{IMAGE}"')
    s.wait(20)
    ask(s)
    pull(s, web)
    ask(s)
    s.create(web, sandbox)

    assert bool(s.judge("IMAGE-02").breaks) is breaks


@pytest.mark.parametrize(("seconds", "held_up", "breaks"), [(1, 0, False), (30, 30, False), (30, 0, True)])
def test_pull_may_follow_the_policy_before(seconds: int, held_up: int, *, breaks: bool) -> None:
    """IMAGE-02: a sync that began before an update goes by what was wanted then, however late."""
    s = TraceBuilder()
    web, _ = begun(s, "Always")
    call = s.begin("ImageStatus", {"image": {"image": "busybox"}})
    web.manifest["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent"
    s.set(web)
    s.wait(held_up).end("ImageStatus", call, {})
    s.wait(seconds - held_up)
    pull(s, web)

    assert bool(s.judge("IMAGE-02").breaks) is breaks


@pytest.mark.parametrize(("policy", "present"), [("IfNotPresent", False), ("Never", True)])
@detects("IMAGE-02")
def test_never_pull_is_reported_for_absence(
    s: TraceBuilder, policy: str, *, right: bool, present: bool
) -> None:
    """IMAGE-02 breaks when ErrImageNeverPull is shown with another policy, or for a present image."""
    web, _ = begun(s, "Never" if right else policy)
    ask(s, present=present and not right)
    waits(s, web, "ErrImageNeverPull")


@detects("IMAGE-02", if_right=Verdict.NOT_EXERCISED, was_absent=(True, False))
def test_refusal_is_reported_until_the_next_try(s: TraceBuilder, *, was_absent: bool) -> None:
    """IMAGE-02: that an image was not there is still reported when others have asked for it since."""
    web, _ = begun(s, "Never")
    ask(s, present=not was_absent)
    for _ in range(10):
        ask(s, present=True)
    waits(s, web, "ErrImageNeverPull")


@detects("IMAGE-02", if_right=Verdict.NOT_EXERCISED, is_updated=(True, False))
def test_refusal_of_the_image_before_is_reported(s: TraceBuilder, *, is_updated: bool) -> None:
    """IMAGE-02: a status that is made while the image changes tells what became of the one before."""
    web, _ = begun(s, "Never")
    ask(s, present=True)
    if is_updated:
        web.manifest["spec"]["containers"][0]["command"] = ["other"]
        s.set(web)
    waits(s, web, "ErrImageNeverPull")


def test_always_asked_first_once() -> None:
    """IMAGE-03 breaks when 1.26 pulls without having looked; 1.32 does not look."""

    def tell(s: TraceBuilder, *, right: bool) -> None:
        web, _ = begun(s, "Always")
        if right:
            ask(s)
        pull(s, web)

    assert_detects("IMAGE-03", tell, kubernetes="1.26")
    later = TraceBuilder("1.32")
    tell(later, right=False)
    assert later.judge("IMAGE-03").verdict is Verdict.NOT_APPLICABLE


@detects("IMAGE-06")
def test_inspection_error_has_a_cause(s: TraceBuilder, *, right: bool) -> None:
    """IMAGE-06 breaks when ImageInspectError is shown and no ImageStatus had failed."""
    web, _ = begun(s)
    ask(s, error="INTERNAL" if right else None)
    waits(s, web, "ImageInspectError")


@pytest.mark.parametrize("wrong", ["no sandbox", "other sandbox", "annotations"])
@detects("IMAGE-15")
def test_pull_names_the_sandbox(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """IMAGE-15 breaks when a pull lacks the sandbox's config or the pod's annotations."""
    web = s.pod()
    config = s.sandbox_config(web, annotations={"k": "v"})
    s.run_sandbox(web, config=config)
    image: dict[str, Any] = {"image": IMAGE, "annotations": {"k": "v"}}
    if not right and wrong == "no sandbox":
        config = {}
    elif not right and wrong == "other sandbox":
        config = {**config, "hostname": "other"}
    elif not right:
        image["annotations"] = {}
    s.call("PullImage", {"image": image, "sandbox_config": config}, {"image_ref": f"sha256:{IMAGE}"})


@pytest.mark.parametrize("pulled", [False, True])
@pytest.mark.parametrize(
    "wrong", [{"image": IMAGE, "user_specified_image": IMAGE}, {"image": f"sha256:{IMAGE}"}]
)
@detects("IMAGE-16")
def test_container_is_made_from_what_was_found(
    s: TraceBuilder, wrong: dict[str, str], *, right: bool, pulled: bool
) -> None:
    """IMAGE-16 breaks when the tag is used instead of the id, or is not reported beside it."""
    web, sandbox = begun(s)
    ask(s, present=not pulled)
    if pulled:
        pull(s, web)
    ask(s)
    config = s.container_config(web, "c1") if right else s.container_config(web, "c1", image=wrong)
    s.create(web, sandbox, config=config)


@detects("IMAGE-16", kubernetes="1.26")
def test_older_kubelets_tell_no_tag(s: TraceBuilder, *, right: bool) -> None:
    """IMAGE-16 asks for the manifest's image from 1.32 on only."""
    web, sandbox = begun(s)
    ask(s)
    image = {"image": f"sha256:{IMAGE}" if right else IMAGE}
    s.create(web, sandbox, config=s.container_config(web, "c1", image=image))


@detects(
    "IMAGE-16", if_right=Verdict.NOT_EXERCISED, begin=lambda: TraceBuilder(kubernetes="1.26"), since=(0, 60)
)
def test_sync_may_follow_the_image_of_before(s: TraceBuilder, since: float) -> None:
    """IMAGE-16: the request of an older kubelet does not say which of the pod's images it is about."""
    web, sandbox = begun(s)
    ask(s, image="img:2")
    config = s.container_config(web, "c1", image={"image": f"sha256:{IMAGE}"})
    web.manifest["spec"]["containers"][0]["image"] = "img:2"
    s.set(web)
    s.wait(since).create(web, sandbox, config=config)


@detects("IMAGE-24", image=("busybox", "busybox:1"))
def test_tag_goes_without_saying(s: TraceBuilder, image: str) -> None:
    """IMAGE-24: an image may be asked for once more as the manifest names it, and by no other name."""
    web, sandbox = begun(s, image="busybox")
    ask(s, image="busybox:latest")
    ask(s, image=image)
    s.create(web, sandbox)


@pytest.mark.parametrize("pulled", [False, True])
@pytest.mark.parametrize("wrong", ["not asked", "failed", "absent"])
@detects("IMAGE-24")
def test_image_is_asked_once_more(s: TraceBuilder, wrong: str, *, right: bool, pulled: bool) -> None:
    """IMAGE-24 breaks when ImageStatus is not asked again, or does not find what is used all the same."""
    web, sandbox = begun(s)
    ask(s, present=not pulled)
    if pulled:
        pull(s, web)
    if right:
        ask(s)
    elif wrong == "failed":
        ask(s, error="INTERNAL")
    elif wrong == "absent":
        ask(s, present=False)
    s.create(web, sandbox)
