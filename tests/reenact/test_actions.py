"""What was done is read out of a trace as it was done, and nothing else with it."""

from pathlib import Path

import pytest
from reenact.actions import read_actions
from trace_builder import TraceBuilder

from kubelet_conformance.node.actions import Action, act
from kubelet_conformance.targets.controls import Fault
from kubelet_fixtures import traces

CREATE, UPDATE, RECORD = "node.api.create", "node.api.update", "node.target.recorder.record"


def deletion(grace: int) -> Action:
    """The pod's deletion is asked for."""
    return act("node.api.delete", "default", "web", grace)


def failing(rpc: str, times: int) -> Action:
    """So many calls of an rpc fail."""
    return act("node.runtime.inject", Fault(rpc, code="UNKNOWN", times=times))


def alive(*, there: bool) -> Action:
    """The file that the probe looks for is there, or no longer."""
    return act("node.runtime.set_file", "/run/scenario/alive", there=there)


ACTIONS: dict[str, list[str | Action]] = {
    "exit1_always": [CREATE],
    "api_image_changed": [CREATE, UPDATE],
    "ephemeral": [CREATE, "node.api.add_ephemeral", deletion(5)],
    "delete_force": [CREATE, deletion(0)],
    "static_removed": ["node.manifests.write", act("node.manifests.remove", "st.yaml")],
    "create_fail": [failing("CreateContainer", 2), RECORD, CREATE],
    "stop_fail": [
        *(failing("StopPodSandbox", 1), RECORD, failing("StopContainer", 2), RECORD),
        *(CREATE, deletion(3)),
    ],
    "liveness": [
        *(alive(there=True), RECORD, CREATE),
        *(alive(there=False), RECORD, alive(there=True), RECORD),
    ],
    "sandbox_dies": [CREATE, act("node.runtime.kill_sandbox", act("records.sandbox", "web", 0))],
    "sandbox_removed_oob": [CREATE, act("node.runtime.remove_sandbox", act("records.sandbox", "web"))],
    "kubelet_restart_pod_deleted_meanwhile": [
        *(CREATE, "node.kubelet.kill", deletion(4), "node.kubelet.start")
    ],
}


@pytest.mark.parametrize("history", ACTIONS)
def test_everything_that_was_done_is_found_in_order(history: str) -> None:
    """Pods, faults, restarts and spontaneous events are found, without what a script or a stop led to."""
    recorded = read_actions(str(traces() / f"kubernetes-1.32/{history}.jsonl"))

    found = [action for _, actions in recorded.actions for action in actions]
    expected = ACTIONS[history]
    assert [
        action.method if isinstance(each, str) else action
        for action, each in zip(found, expected, strict=True)
    ] == expected


def test_images_are_there_if_the_first_question_found_them() -> None:
    """A node without the image at first is re-enacted without it."""
    absent = read_actions(str(traces() / "kubernetes-1.32/pull_fail.jsonl"))
    present = read_actions(str(traces() / "kubernetes-1.32/exit0_never.jsonl"))

    assert absent.images == (("img:1", False),)
    assert present.images == (("img:1", True),)


def test_times_count_from_the_start_of_the_kubelet() -> None:
    """Actions keep the distance that they had to the kubelet's first start."""
    recorded = read_actions(str(traces() / "kubernetes-1.32/kubelet_restart.jsonl"))

    assert [round(t, 4) for t, _ in recorded.actions] == [0.5962, 5.4098, 6.4762]
    assert recorded.kubernetes == "1.32"
    assert round(recorded.ends, 4) == 16.9777


def test_an_end_that_no_script_foretells_is_an_action(tmp_path: Path) -> None:
    """A container of an ordinary image that ends by itself ends again; one that was stopped does not."""
    s = TraceBuilder()
    web = s.pod("web", containers=[{"name": name, "image": "img:1"} for name in ("c1", "c2")])
    sandbox = s.run_sandbox(web)
    c1, c2 = (s.run_container(web, sandbox, name) for name in ("c1", "c2"))
    s.wait(5).exited(c1, code=3)
    s.wait(5).stop(c2)
    path = tmp_path / "t.jsonl"
    path.write_bytes(s.text())

    found = [action for _, actions in read_actions(str(path)).actions for action in actions]
    ends = [action for action in found if action.method == "node.runtime.exit"]
    assert ends == [act("node.runtime.exit", act("records.container", "web", "c1", 0), 3)]
