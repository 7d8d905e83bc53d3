"""RESTART contracts on the numbers and hashes of instances."""

import pytest
from trace_builder import TraceBuilder
from twice import assert_detects, detects

from kubelet_conformance.contract.verdicts import Verdict


@detects("RESTART-13")
def test_number_follows_one_that_is_listed_only(s: TraceBuilder, *, right: bool) -> None:
    """RESTART-13: an instance whose making failed for the kubelet has its number, and the next the next."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    s.exited(s.run_container(web, sandbox), 1)
    lost = s.create(web, sandbox, attempt=1, error="UNAVAILABLE")
    known = {key: lost.config[key] for key in ("metadata", "labels", "annotations")}
    record = known | {"id": lost.id, "pod_sandbox_id": sandbox.id, "state": "CONTAINER_CREATED"}
    s.call("ListContainers", {"filter": {}}, {"containers": [record]})
    s.create(web, sandbox, attempt=2 if right else 1)


@pytest.mark.parametrize("wrong", ["annotations", "log_path"])
@detects("RESTART-13")
def test_number_is_reported_alike(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """RESTART-13 breaks when annotation or log path tell another number than the metadata."""
    web = s.pod()
    other = s.container_config(web, "c1", attempt=3)[wrong]
    config = s.container_config(web, "c1", **({} if right else {wrong: other}))
    s.create(web, s.run_sandbox(web), config=config)


@pytest.mark.parametrize("had", [False, True])
@detects("RESTART-14")
def test_number_comes_from_the_logs(s: TraceBuilder, *, right: bool, had: bool) -> None:
    """RESTART-14 breaks when a first instance is not 0, and when the count is lost with the records."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    if had:
        c1 = s.run_container(web, sandbox)
        s.record("runtime", op="removed", container_id=c1.id, sandbox_id=sandbox.id, name="c1")
    s.run_container(web, sandbox, attempt=int(had == right))


@pytest.mark.parametrize("name", ["i1", "i2"])
def test_only_the_first_init_container_counts_on(name: str) -> None:
    """RESTART-16 says nothing of later init containers, whose records and logs went with the old sandbox."""
    s = TraceBuilder()
    web = s.pod(initContainers=[{"name": one, "image": "img:1"} for one in ("i1", "i2")])
    sandbox = s.run_sandbox(web)
    old = s.run_container(web, sandbox, name)
    s.wait(1).exited(old)
    s.sandbox_died(sandbox)
    s.stop_sandbox(sandbox)
    s.remove(old)
    s.run_container(web, s.run_sandbox(web, attempt=1), name, attempt=0)

    expected = {"i1": Verdict.BROKEN, "i2": Verdict.NOT_EXERCISED}
    assert s.judge("RESTART-16").verdict is expected[name]


@detects("RESTART-16", if_right=Verdict.NOT_EXERCISED, died=(True, False))
def test_first_init_container_begins_anew_after_an_empty_sandbox(s: TraceBuilder, *, died: bool) -> None:
    """RESTART-16: where a sandbox came between in which it was not made, its records went for that one."""
    web = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
    sandbox = s.run_sandbox(web)
    old = s.run_container(web, sandbox, "i1")
    s.wait(1).exited(old)
    s.sandbox_died(sandbox)
    s.stop_sandbox(sandbox)
    s.remove(old)
    second = s.run_sandbox(web, attempt=1)
    if died:
        s.sandbox_died(second)
        s.wait(1).stop_sandbox(second)
        second = s.run_sandbox(web, attempt=2)
    s.run_container(web, second, "i1", attempt=0)


def test_pod_that_came_back_may_begin_anew() -> None:
    """RESTART-16 says nothing of a static pod that came back when its records had been removed."""
    s = TraceBuilder()
    web = s.pod(source="file")
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.unset(web)
    s.stop(c1)
    s.stop_sandbox(sandbox)
    s.set(web)
    s.remove(c1)
    s.run_container(web, s.run_sandbox(web, attempt=1), attempt=0)

    assert s.judge("RESTART-16").verdict is Verdict.NOT_EXERCISED


@pytest.mark.parametrize("step", ["create", "start", "sandbox"])
@detects("RESTART-24")
def test_tries_do_not_count(s: TraceBuilder, step: str, *, right: bool) -> None:
    """RESTART-24 breaks when a failed creation is counted, a failed start is not, or moves the sandbox."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    if step == "create":
        s.create(web, sandbox, error="INTERNAL")
    else:
        s.start(s.create(web, sandbox), error="INTERNAL")
    other = s.run_sandbox(web, attempt=1) if step == "sandbox" and not right else sandbox
    s.wait(1).create(web, other, attempt=int((step == "create") != right or step == "sandbox"))


@pytest.mark.parametrize("image", ["img:1", "img:2"])
@detects("RESTART-08")
def test_hash_is_that_of_name_and_image(s: TraceBuilder, image: str, *, right: bool) -> None:
    """RESTART-08 breaks when the hash changes with the same image, or stays with another."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    s.exited(s.run_container(web, sandbox), 1)
    old = s.container_config(web, "c1", 1)["annotations"]
    web.manifest["spec"]["containers"][0]["image"] = image
    config = s.container_config(web, "c1", 1)
    if not right and image == "img:2":
        config["annotations"] = old
    elif not right:
        config["annotations"] |= {"io.kubernetes.container.hash": "1234"}
    s.create(web, sandbox, config=config)


@pytest.mark.parametrize(("waits", "op"), [(1.0, ""), (0.1, "started"), (0.1, "")])
@pytest.mark.parametrize("contract", ["RESTART-16", "SANDBOX-05"])
def test_init_container_that_backs_off(contract: str, waits: float, op: str) -> None:
    """RESTART-16, SANDBOX-05: a first init container that sits out its back-off is made by a later sync."""
    s = TraceBuilder()
    web = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
    sandbox = s.run_sandbox(web)
    old = s.run_container(web, sandbox, "i1")
    s.wait(1).exited(old, 1)
    s.sandbox_died(sandbox)
    s.stop_sandbox(sandbox)
    s.remove(old)
    again = s.run_sandbox(web, attempt=1)
    s.wait(waits)
    if op:
        s.record("kubelet", op="killed")
        s.record("kubelet", op=op)
    s.run_container(web, again, "i1", attempt=0)

    assert (s.judge(contract).verdict is Verdict.BROKEN) is (waits < 1 and not op)


@pytest.mark.parametrize(("contract", "attempt"), [("RESTART-16", 2), ("RESTART-24", 1), ("RESTART-24", 2)])
def test_init_container_that_cannot_be_made_begins_anew(contract: str, attempt: int) -> None:
    """RESTART-16, RESTART-24: once the sync that replaced the sandbox is over, nothing tells of its past."""

    def tell(s: TraceBuilder, *, right: bool) -> None:
        web = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
        sandbox = s.run_sandbox(web)
        old = s.run_container(web, sandbox, "i1")
        s.sandbox_died(sandbox)
        s.stop(old)
        s.stop_sandbox(sandbox)
        s.remove(old)
        again = s.run_sandbox(web, attempt=1)
        first = 1 if right or contract == "RESTART-24" else attempt
        s.create(web, again, "i1", attempt=first, error="INTERNAL")
        s.wait(1).create(web, again, "i1", attempt=0 if right else attempt)

    assert_detects(contract, tell)
