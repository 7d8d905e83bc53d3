"""Patches and label selectors of each kind, as clients of the fake API server send them."""

from typing import Any

import pytest
from api_world import pod
from on_loop import on_loop
from served_api import PODS, served_api

#: A kind of patch, its body, and the labels that become of {"a": "1", "b": "2"}.
PATCHES: dict[str, tuple[str, Any, dict[str, str]]] = {
    "strategic": ("strategic-merge-patch", {"metadata": {"labels": {"a": None}}}, {"b": "2"}),
    "merge": ("merge-patch", {"metadata": {"labels": {"a": None, "c": "3"}}}, {"b": "2", "c": "3"}),
    "json add": ("json-patch", [{"op": "add", "path": "/metadata/labels/c~1d", "value": "3"}], {"c/d": "3"}),
    "json move": (
        "json-patch",
        [
            {"op": "test", "path": "/metadata/labels/a", "value": "1"},
            {"op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/c"},
            {"op": "copy", "from": "/metadata/labels/c", "path": "/metadata/labels/d"},
            {"op": "remove", "path": "/metadata/labels/b"},
        ],
        {"c": "1", "d": "1"},
    ),
}


@pytest.mark.parametrize(("how", "body", "labels"), PATCHES.values(), ids=PATCHES)
@on_loop
async def test_patches(how: str, body: Any, labels: dict[str, str]) -> None:
    """Each kind of patch changes what it names."""
    async with served_api() as api:
        made = pod()
        made["metadata"]["labels"] = {"a": "1", "b": "2"}
        api.core.create("pods", made)
        code, changed = await api.patch(f"{PODS}/web", body, how)

    assert code == 200
    assert labels.items() <= changed["metadata"]["labels"].items()


@on_loop
async def test_json_patch_that_does_not_fit() -> None:
    """A path that is not there, and a test that fails, are refused with 422."""
    async with served_api() as api:
        api.core.create("pods", pod())
        codes = [
            (await api.patch(f"{PODS}/web", [operation], "json-patch"))[0]
            for operation in (
                {"op": "replace", "path": "/spec/none", "value": 1},
                {"op": "test", "path": "/metadata/name", "value": "other"},
                {"op": "mend", "path": "/metadata/name"},
            )
        ]

    assert codes == [422, 422, 422]


SELECTED = {
    "a=1": ["one"],
    "a==1,b": [],
    "a!=1": ["both", "none"],
    "a in (1, 2)": ["both", "one"],
    "a notin (1)": ["both", "none"],
    "b": ["both"],
    "!a": ["none"],
}


@pytest.mark.parametrize("selector", SELECTED)
@on_loop
async def test_selects_by_labels(selector: str) -> None:
    """Each kind of requirement of a label selector."""
    async with served_api() as api:
        for name, labels in {"one": {"a": "1"}, "both": {"a": "2", "b": "x"}, "none": {}}.items():
            api.core.create("configmaps", {"metadata": {"name": name, "labels": labels}})
        async with api.session.get("/api/v1/configmaps", params={"labelSelector": selector}) as answer:
            found = await answer.json()

    assert [each["metadata"]["name"] for each in found["items"]] == SELECTED[selector]
