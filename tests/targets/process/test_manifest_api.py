"""Pods by manifest files: what a kubelet without an API server cannot be asked for."""

from typing import Any

import pytest

from kubelet_conformance.targets.controls import Manifests, NotPossibleError
from kubelet_conformance.targets.process.manifest_api import FolderApi, references_of

KEY = {"name": "m", "key": "k"}


class Folder(Manifests):
    """A manifest folder that nothing may be written to."""

    def make_folder(self) -> None:
        """It is there."""

    def write(self, file: str, text: str) -> None:
        """Nothing is to be written."""
        pytest.fail(f"{file} is written: {text}")

    def remove(self, file: str) -> None:
        """Nothing is to be removed."""
        pytest.fail(f"{file} is removed")

    def serve(self, status: int, body: str) -> None:
        """There is no URL."""


SPECS: list[tuple[dict[str, Any], list[str]]] = [
    ({"serviceAccountName": "robot", "imagePullSecrets": []}, ["serviceAccountName"]),
    ({"resourceClaims": [{"name": "gpu"}]}, ["resourceClaims"]),
    ({"containers": [{"env": [{"valueFrom": {"configMapKeyRef": KEY}}]}]}, ["configMapKeyRef"]),
    ({"containers": [{"env": [{"valueFrom": {"fieldRef": {}}}, {"value": "1"}]}]}, []),
    ({"initContainers": [{"envFrom": [{"secretRef": {"name": "s"}}]}]}, ["secretRef"]),
    ({"volumes": [{"emptyDir": {}}, {"secret": {"secretName": "s"}}]}, ["secret"]),
    ({"volumes": [{"projected": {"sources": [{"configMap": {"name": "m"}}]}}]}, ["configMap"]),
    ({"volumes": [{"projected": {"sources": [{"downwardAPI": {"items": []}}]}}]}, []),
]
"""Specs of pods, and the fields that refer to objects of the API server."""


@pytest.mark.parametrize(("spec", "found"), SPECS)
def test_references_are_found(spec: dict[str, Any], found: list[str]) -> None:
    """Each field that refers to an object of the API server is named."""
    assert references_of(spec) == found


REFUSED: list[tuple[bool, str]] = [(False, "imagePullSecrets"), (True, "resourceClaims")]
"""Whether static pods may refer to objects of the API server, and what they may not refer to then."""


@pytest.mark.parametrize(("may_refer", "field"), REFUSED)
def test_pod_that_refers_to_api_objects_needs_an_api_server(*, may_refer: bool, field: str) -> None:
    """A scenario with such a pod is not applicable to a kubelet that refuses its manifest."""
    api = FolderApi(Folder(), "Node-1", lambda _namespace, _name: None, may_refer=may_refer)
    with pytest.raises(NotPossibleError) as caught:
        api.create({"metadata": {"name": "web"}, "spec": {field: [{"name": "one"}]}})

    assert str(caught.value) == f"an API server: a pod that refers to its objects ({field})"
