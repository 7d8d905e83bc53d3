"""Each scenario on a shared node has namespaces, manifests and script files of its own."""

import json
from typing import Any, cast

import pytest

from kubelet_conformance.targets.controls import Manifests
from kubelet_conformance.targets.live.namespaces import Scope, scope_of
from kubelet_conformance.targets.live.scoped_controls import ScopedManifests
from kubelet_conformance.targets.live.scoped_recorder import Router
from kubelet_conformance.trace.format.recorder import Recorder

FIRST, SECOND = Scope(1, "sync.new_pod"), Scope(12, "sync.new_pod")


class Folder:
    """Manifests that were written, by file."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def write(self, file: str, text: str) -> None:
        """Write."""
        self.files[file] = text


def written(file: str, text: str, *, renamed: bool = True) -> tuple[str, str]:
    """The file and text that stand for these in the first scope."""
    router = Router(Recorder(lambda: 0.0))
    folder = Folder()
    view = router.open(FIRST.id)
    ScopedManifests(cast("Manifests", folder), FIRST, router, view, renamed=renamed).write(file, text)
    [found] = folder.files.items()
    return found


@pytest.mark.parametrize("name", ["default", "shop"])
def test_namespaces_are_distinguished(name: str) -> None:
    """Whatever a scenario calls a namespace, it is its own, short enough, and known as ours."""
    namespaces = [scope.namespace(name) for scope in (FIRST, SECOND, Scope(3, "x" * 200))]

    assert len(set(namespaces)) == 3
    assert all(scope_of(each) and len(each) <= 63 for each in namespaces)
    assert [scope_of(each) for each in namespaces] == [FIRST.id, SECOND.id, "kcrun-3"]
    assert [FIRST.holds(each) for each in namespaces] == [True, False, False]


def test_namespace_of_a_scope_stands_for_itself() -> None:
    """What was translated once is not translated again."""
    own = FIRST.namespace("shop")

    assert FIRST.namespace(own) == own
    assert not scope_of("kube-system")
    assert not scope_of("kcrun-like-but-not-ours")


def test_manifest_moves_into_its_scope() -> None:
    """A manifest is in the scenario's namespace, looks for the scenario's files, and has its own file."""
    pod: dict[str, Any] = {
        "metadata": {"name": "web"},
        "spec": {"containers": [{"livenessProbe": {"exec": {"command": ["xf", "alive"]}}}]},
    }
    file, text = written("web.yaml", json.dumps(pod))
    found = json.loads(text)

    assert file == "kcrun-1-web.yaml"
    assert found["metadata"] == {"name": "web", "namespace": FIRST.own}
    assert found["spec"]["containers"][0]["livenessProbe"]["exec"]["command"] == ["xf", "kcrun-1.alive"]


@pytest.mark.parametrize("text", ["", "- 1\n", "kind: Pod\n  spec: {", "\x00", "kind: Service\n"])
def test_what_is_no_pod_is_written_as_it_is(text: str) -> None:
    """Bad manifests stay as bad as they are."""
    assert written("bad.yaml", text) == ("kcrun-1-bad.yaml", text)


def test_files_keep_their_names_where_nobody_else_is() -> None:
    """Hidden files stay hidden; alone on a node, files keep their names."""
    assert written(".web.swp", "")[0] == ".kcrun-1-web.swp"
    assert written("only.yaml", "", renamed=False)[0] == "only.yaml"
