"""STATIC contracts on mirror pods: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from outside_world import (
    api_write,
    create_mirror,
    file_pod,
    node_gone,
    remove_file,
    start_static,
    static_config,
)
from running import BROKEN, KEPT
from runtime_reads import container_record, list_containers, list_sandboxes, sandbox_record
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def delete_mirror(s: TraceBuilder, uid: str = "mirror", **wrong: Any) -> None:
    """The kubelet deletes a mirror for good."""
    api_write(s, "delete", uid, **{"grace": 0, "precondition": uid, **wrong})


def status(s: TraceBuilder, web: PodHandle, phase: str = "Running", uid: str = "mirror") -> None:
    """A status of the static pod, written to its mirror."""
    s.record("status", uid=uid, namespace="default", name=web.name, status={"phase": phase})


def mirrored() -> tuple[TraceBuilder, PodHandle, Any, Any]:
    """A static pod that runs and has its mirror."""
    s = TraceBuilder()
    web = file_pod(s)
    create_mirror(s, web)
    sandbox, c1 = start_static(s, web)
    status(s, web)
    return s, web, sandbox, c1


@pytest.mark.parametrize(
    ("wrong", "verdict"), [({}, KEPT), ({"hash": "x"}, BROKEN), ({"owners": []}, BROKEN)]
)
def test_mirror_names_hash_and_node(wrong: dict[str, Any], verdict: Verdict) -> None:
    """STATIC-11: a mirror has its pod's hash and is owned by the node."""
    s = TraceBuilder()
    web = file_pod(s)
    create_mirror(s, web, **wrong)
    start_static(s, web)

    assert s.judge("STATIC-11").verdict is verdict


@detects("STATIC-11", made=(True, False))
def test_each_static_pod_gets_a_mirror(s: TraceBuilder, *, made: bool) -> None:
    """STATIC-11: a static pod without a mirror breaks it."""
    web = file_pod(s)
    start_static(s, web)
    if made:
        create_mirror(s.wait(1), web)


@detects("STATIC-12", made=(False, True))
def test_no_mirror_without_a_node(s: TraceBuilder, *, made: bool) -> None:
    """STATIC-12: as long as the node's object is missing there is no mirror."""
    node_gone(s)
    web = file_pod(s)
    start_static(s, web)
    if made:
        create_mirror(s.wait(1), web)
    s.record("fault", what="healed: the node's object is there")


@pytest.mark.parametrize(
    ("wrong", "verdict"), [({}, KEPT), ({"grace": 30}, BROKEN), ({"precondition": None}, BROKEN)]
)
def test_mirror_is_deleted_with_care(wrong: dict[str, Any], verdict: Verdict) -> None:
    """STATIC-13: grace 0, and its UID as a precondition."""
    s, web, _, _ = mirrored()
    delete_mirror(s, **wrong)
    s.record("deleted", uid="mirror")
    create_mirror(s, web, "mirror-2")

    assert s.judge("STATIC-13").verdict is verdict


def test_mirror_of_a_removed_pod_is_deleted_by_its_name() -> None:
    """STATIC-13: where the file is gone, whatever mirror there is goes; its grace is 0 all the same."""
    s, web, sandbox, c1 = mirrored()
    remove_file(s.wait(5), web)
    s.stop(c1)
    s.stop_sandbox(sandbox)
    delete_mirror(s, precondition=None)

    assert s.judge("STATIC-13").verdict is KEPT


@pytest.mark.parametrize(("seconds", "verdict"), [(2, KEPT), (10, BROKEN)])
def test_mirror_of_a_pod_that_comes_back_may_go_with_the_old_one(seconds: float, verdict: Verdict) -> None:
    """STATIC-13: housekeeping that found the file gone may go on for a while after it has come back."""
    s, web, _, _ = mirrored()
    remove_file(s.wait(5), web)
    s.wait(1).set(web)
    delete_mirror(s.wait(seconds), precondition=None)

    assert s.judge("STATIC-13").verdict is verdict


@pytest.mark.parametrize("wrong", ["", "kills", "keeps", "not again"])
def test_deleted_mirror_is_replaced(wrong: str) -> None:
    """STATIC-13: somebody deletes a mirror; the static pod does not notice."""
    s, web, _, c1 = mirrored()
    annotations = {"kubernetes.io/config.mirror": web.uid}
    meta = {"name": web.name, "namespace": "default", "uid": "mirror", "annotations": annotations}
    meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    s.wait(5).record("pod", op="set", source="api", pod={"metadata": meta, "spec": web.manifest["spec"]})
    if wrong == "kills":
        s.stop(c1)
    if wrong != "keeps":
        delete_mirror(s)
        s.record("deleted", uid="mirror")
    if wrong not in {"keeps", "not again"}:
        create_mirror(s.wait(1), web, "mirror-2")

    assert s.judge("STATIC-13").verdict is (BROKEN if wrong else KEPT)


@pytest.mark.parametrize("wrong", ["", "early", "never"])
def test_mirror_outlives_its_containers(wrong: str) -> None:
    """STATIC-15: a mirror goes when its static pod has ended."""
    s, web, sandbox, c1 = mirrored()
    remove_file(s.wait(5), web)
    if wrong == "early":
        s.record("deleted", uid="mirror")
    s.stop(c1)
    s.stop_sandbox(sandbox)
    if not wrong:
        s.wait(2).record("deleted", uid="mirror")

    assert s.judge("STATIC-15").verdict is (BROKEN if wrong else KEPT)


@detects("STATIC-15", if_right=Verdict.NOT_EXERCISED, begin=mirrored, deletes=(True, False))
def test_mirror_of_an_unknown_pod_may_go_first(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, deletes: bool
) -> None:
    """STATIC-15: a kubelet that starts without the manifest deletes the mirror, then stops what is left."""
    s.wait(5).record("kubelet", op="stopped")
    s.record("kubelet", op="started")
    remove_file(s, web)
    list_sandboxes(s, sandbox_record(sandbox))
    list_containers(s, container_record(c1))
    s.wait(2)
    if deletes:
        s.record("deleted", uid="mirror")
    s.stop(c1)
    s.stop_sandbox(sandbox)
    s.wait(60).call("Version", {}, {})


def test_status_under_the_own_uid() -> None:
    """STATIC-16: a stored status with the static pod's UID breaks it too."""
    s, web, _, _ = mirrored()
    status(s, web, uid=web.uid)

    assert s.judge("STATIC-16").verdict is BROKEN


def test_nothing_is_asked_of_pods_of_the_api() -> None:
    """An API pod's sandbox owes no mirror."""
    s = TraceBuilder()
    s.run_sandbox(s.pod())

    assert s.judge("STATIC-11").activations == 0


def test_hash_of_an_edited_pod_is_that_of_its_new_version() -> None:
    """STATIC-11: the mirror of an edited pod may come before its sandbox."""
    s, _, sandbox, c1 = mirrored()
    again = file_pod(s.wait(5), containers=[{"name": "c1", "image": "img:2"}])
    s.stop(c1)
    s.stop_sandbox(sandbox)
    create_mirror(s, again, "mirror-2")
    s.run_sandbox(again, config=static_config(s, again))

    assert s.judge("STATIC-11").verdict is KEPT
