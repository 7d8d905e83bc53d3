"""The fake API server merges what a kubelet patches, by the recorded rules of a real one."""

import json
from pathlib import Path
from typing import Any

import pytest
from api_world import ApiWorld, pod, refused

from kubelet_fakes.api import ApiStatusError
from kubelet_fakes.api.merging import merged
from kubelet_fakes.api.objects import FrozenDict, frozen


def condition(kind: str, status: str = "False", **rest: Any) -> dict[str, Any]:
    """One condition of a pod."""
    return {"type": kind, "status": status, **rest}


def types(conditions: list[dict[str, Any]]) -> str:
    """The initials of conditions, in their order."""
    return "".join(each["type"] for each in conditions)


def test_conditions_merge_by_type() -> None:
    """A condition is merged field by field, null removes a field, and the order is the one asked for.

    The patch is the form in which kubelets send it (recorded with 1.26 and 1.32).
    """
    core = ApiWorld()
    uid = core.create("pods", pod())["metadata"]["uid"]
    first = [condition("A"), condition("B", reason="NotReady", message="m"), condition("C")]
    core.patch(
        "pods", "web", {"metadata": {"uid": uid}, "status": {"conditions": first}}, subresource="status"
    )
    patch = {
        "metadata": {"uid": uid},
        "status": {
            "$setElementOrder/conditions": [{"type": each} for each in "ABC"],
            "conditions": [{"type": "B", "status": "True", "reason": None, "message": None}],
            "phase": "Running",
        },
    }
    status = core.patch("pods", "web", patch, subresource="status")["status"]

    assert status == {
        "phase": "Running",
        "qosClass": "BestEffort",
        "conditions": [condition("A"), condition("B", "True"), condition("C")],
    }


def test_container_statuses_are_replaced_whole() -> None:
    """The lists of container statuses are what was sent last; addresses merge by their ip."""
    core = ApiWorld()
    core.create("pods", pod())
    both, one = [_container(name="a", ready=True), _container(name="b")], [_container(name="a")]
    for status in (
        {"containerStatuses": both, "podIPs": [{"ip": "1"}]},
        {"containerStatuses": one, "podIPs": [{"ip": "2"}, {"ip": "1", "$patch": "delete"}]},
    ):
        core.patch("pods", "web", {"status": status}, subresource="status")
    status = core.get("pods", "web")["status"]

    assert status["containerStatuses"] == one
    assert status["podIPs"] == [{"ip": "2"}]


def _container(**status: Any) -> dict[str, Any]:
    return {"image": "img:1", "imageID": "", "ready": False, "restartCount": 0, **status}


def test_status_of_another_pod_is_refused() -> None:
    """A UID that is not the pod's is 422, as recorded: the pod was replaced meanwhile."""
    core = ApiWorld()
    core.create("pods", pod())
    patch = {"metadata": {"uid": "xx"}, "status": {"phase": "Running"}}
    error = refused(core.patch, "pods", "web", patch, subresource="status")

    assert (error.code, error.reason) == (422, "Invalid")
    assert str(error) == 'Pod "web" is invalid: metadata.uid: Invalid value: "xx": field is immutable'


@pytest.mark.parametrize(
    ("policy", "code", "taken"),
    [("Always", 1, True), ("OnFailure", 1, True), ("OnFailure", 0, False), ("Never", 1, False)],
)
def test_what_has_ended_does_not_come_back(policy: str, code: int, *, taken: bool) -> None:
    """A status may not say that a container runs again which its policy does not restart (STATUS-20)."""
    core = ApiWorld()
    core.create("pods", pod(restartPolicy=policy))
    error: ApiStatusError | None = None
    states: list[dict[str, Any]] = [{"terminated": {"exitCode": code}}, {"running": {}}]
    for state in states:
        status = {"containerStatuses": [_container(name="app", state=state)]}
        try:
            core.patch("pods", "web", {"status": status}, subresource="status")
        except ApiStatusError as refusal:
            error = refusal

    assert (error is None) is taken
    if error is not None:
        text = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
        assert text in str(error)


def test_merges_as_a_real_server_merged() -> None:
    """What a real server (1.26) made of a real kubelet's patches in a pod's life is what comes out here."""
    recorded = Path(__file__).with_name("recorded_status_patches.jsonl").read_text(encoding="utf-8")
    cases = [json.loads(line) for line in recorded.splitlines()]

    assert len(cases) > 5
    for case in cases:
        assert merged(frozen(case["before"]), case["patch"]) == case["after"], case["scenario"]


def test_patch_that_changes_nothing_is_no_change() -> None:
    """The very same object comes back, so no watch reports it."""
    old = frozen({"a": {"b": [1, 2]}, "conditions": [condition("A"), condition("B")]})

    patches: list[dict[str, Any]] = [
        {},
        {"a": {"b": [1, 2]}},
        {"a": {}, "x": None},
        {"conditions": [{"type": "B", "status": "False", "reason": None}]},
        {"$setElementOrder/conditions": [{"type": "A"}, {"type": "B"}], "conditions": []},
    ]
    for patch in patches:
        assert merged(old, patch) is old, patch


#: Old, patch and outcome, each once for a rule of strategic merge patches.
MERGES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "object": ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
    "null": ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
    "list": ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    "new-object": ({}, {"a": {"b": None, "c": {}}}, {"a": {"c": {}}}),
    "replace": ({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}),
    "delete": ({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}),
    "retain": ({"a": {"b": 1, "c": 2}}, {"a": {"$retainKeys": ["c"], "c": 3}}, {"a": {"c": 3}}),
    "replace-items": (
        {"env": [{"name": "a"}]},
        {"env": [{"$patch": "replace"}, {"name": "b"}]},
        {"env": [{"name": "b"}]},
    ),
    "set": (
        {"finalizers": ["a", "b"]},
        {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]},
        {"finalizers": ["b", "c"]},
    ),
    "directive-alone": (
        {"finalizers": ["a"]},
        {"$deleteFromPrimitiveList/finalizers": ["a"]},
        {"finalizers": []},
    ),
}


@pytest.mark.parametrize(("old", "patch", "new"), MERGES.values(), ids=MERGES)
def test_merge(old: dict[str, Any], patch: dict[str, Any], new: dict[str, Any]) -> None:
    """Each rule of strategic merge patches, and the outcome is frozen."""
    result = merged(frozen(old), patch)

    assert result == new
    assert type(result) is FrozenDict


@pytest.mark.parametrize(
    ("order", "patch", "outcome"),
    [
        ("", "D", "ABCD"),
        ("CBA", "", "CBA"),
        ("DABC", "D", "DABC"),
        ("AC", "", "ABC"),
        ("CA", "", "BCA"),
    ],
)
def test_order_of_items(order: str, patch: str, outcome: str) -> None:
    """Items come in the order asked for; without one, new items come last."""
    old = frozen({"conditions": [condition(each) for each in "ABC"]})
    wanted: dict[str, Any] = {"conditions": [condition(each) for each in patch]}
    if order:
        wanted["$setElementOrder/conditions"] = [{"type": each} for each in order]

    assert types(merged(old, wanted)["conditions"]) == outcome


def test_patch_that_makes_no_sense_is_400() -> None:
    """A keyed item without its key, and a directive that nobody knows, are bad requests."""
    core = ApiWorld()
    core.create("pods", pod())

    for patch, text in (
        ({"status": {"conditions": [{"status": "True"}]}}, "does not contain declared merge key: type"),
        ({"status": {"$frobnicate": 1}}, "unknown directive $frobnicate"),
    ):
        error = refused(core.patch, "pods", "web", patch, subresource="status")
        assert (error.code, text in str(error)) == (400, True)
