"""The stimulus is read out of a trace as it was given, and nothing else with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from story import Story

from kubelet_conformance.reenact.deeds import (
    AddEphemeral,
    CreatePod,
    Deed,
    DeletePod,
    EndContainer,
    EndKubelet,
    FailCalls,
    KillSandbox,
    LoseSandbox,
    RemoveManifest,
    SetFile,
    StartKubelet,
    UpdatePod,
    WriteManifest,
)
from kubelet_conformance.reenact.stimulus import read_stimulus
from kubelet_fixtures import traces

ALIVE = "/run/scenario/alive"
DEEDS: dict[str, list[type[Deed] | Deed]] = {
    "exit1_always": [CreatePod],
    "api_image_changed": [CreatePod, UpdatePod],
    "ephemeral": [CreatePod, AddEphemeral, DeletePod("default", "web", 5)],
    "delete_force": [CreatePod, DeletePod("default", "web", 0)],
    "static_removed": [WriteManifest, RemoveManifest("st")],
    "create_fail": [FailCalls("CreateContainer", "UNKNOWN", "injected", 2), CreatePod],
    "stop_fail": [
        FailCalls("StopPodSandbox", "UNKNOWN", "injected", 1),
        FailCalls("StopContainer", "UNKNOWN", "injected", 2),
        CreatePod,
        DeletePod("default", "web", 3),
    ],
    "liveness": [
        SetFile(ALIVE, there=True),
        CreatePod,
        SetFile(ALIVE, there=False),
        SetFile(ALIVE, there=True),
    ],
    "sandbox_dies": [CreatePod, KillSandbox("web", 0)],
    "sandbox_removed_oob": [CreatePod, LoseSandbox("web")],
    "kubelet_restart_pod_deleted_meanwhile": [
        CreatePod,
        EndKubelet(kill=True),
        DeletePod("default", "web", 4),
        StartKubelet(),
    ],
}


@pytest.mark.parametrize("history", DEEDS)
def test_everything_that_was_done_is_found_in_order(history: str) -> None:
    """Pods, faults, restarts and mishaps are found; what a script or a stop led to is none of them."""
    stimulus = read_stimulus(str(traces() / f"kubernetes-1.32/{history}.jsonl"))

    found = [deed for _, deed in stimulus.deeds]
    expected = DEEDS[history]
    assert [
        type(deed) if isinstance(each, type) else deed for deed, each in zip(found, expected, strict=True)
    ] == expected


def test_images_are_there_if_the_first_question_found_them() -> None:
    """A node without the image at first is re-enacted without it."""
    absent = read_stimulus(str(traces() / "kubernetes-1.32/pull_fail.jsonl"))
    present = read_stimulus(str(traces() / "kubernetes-1.32/exit0_never.jsonl"))

    assert absent.images == (("img:1", False),)
    assert present.images == (("img:1", True),)


def test_times_count_from_the_start_of_the_kubelet() -> None:
    """Deeds keep the distance that they had to the kubelet's first start."""
    stimulus = read_stimulus(str(traces() / "kubernetes-1.32/kubelet_restart.jsonl"))

    assert [round(t, 4) for t, _ in stimulus.deeds] == [0.5962, 5.4098, 6.4762]
    assert stimulus.kubernetes == "1.32"
    assert round(stimulus.ends, 4) == 16.9777


def test_an_end_that_no_script_foretells_is_a_deed(tmp_path: Path) -> None:
    """A container of an ordinary image that ends by itself ends again; one that was stopped does not."""
    told = Story()
    web = told.pod("web", containers=[{"name": name, "image": "img:1"} for name in ("c1", "c2")])
    sandbox = told.run_sandbox(web)
    c1, c2 = (told.run_container(web, sandbox, name) for name in ("c1", "c2"))
    told.wait(5).exited(c1, code=3)
    told.wait(5).stop(c2)
    path = tmp_path / "t.jsonl"
    path.write_bytes(told.text())

    ends = [deed for _, deed in read_stimulus(str(path)).deeds if isinstance(deed, EndContainer)]
    assert ends == [EndContainer("web", "c1", 0, 3)]
