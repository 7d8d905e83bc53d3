"""Desired pods as a recorder reads them: a manifest folder, a file, a kubelet's /pods."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kubelet_conformance.recording.kubelet_pods import KubeletPods
from kubelet_conformance.recording.manifest_files import ManifestFiles
from kubelet_conformance.recording.pod_sources import DesiredPod, Look, PodKey, PodsReadError, Watch

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: app, image: "img:1"}]}
"""


def names(look: Look) -> list[str]:
    """The full names that were seen."""
    return [pod.key.name for pod in look.pods]


def test_folder_is_read_as_a_kubelet_does(tmp_path: Path) -> None:
    """YAML, JSON and lists are read; names that begin with a dot and folders are not."""
    listed = {"kind": "PodList", "items": [{"metadata": {"name": "b"}, "spec": {}}]}
    (tmp_path / "a.yaml").write_text(POD)
    (tmp_path / "b.json").write_text(json.dumps(listed))
    (tmp_path / ".c.yaml").write_text(POD.replace("web", "hidden"))
    (tmp_path / "d").mkdir()
    look = ManifestFiles(tmp_path, "Node-1").look()

    assert names(look) == ["web-node-1", "b-node-1"]
    assert look.pods[0].key == PodKey("file", "default", "web-node-1", "")
    assert look.problems == ()


def test_one_file_is_read_too(tmp_path: Path) -> None:
    """--pods may name one manifest; before it is there, that is said."""
    file = tmp_path / "web.yaml"
    files = ManifestFiles(file, "node-1")
    with pytest.raises(PodsReadError, match="No such file"):
        files.look()
    file.write_text(POD)

    assert names(files.look()) == ["web-node-1"]


def test_half_written_file_keeps_its_pods_for_once(tmp_path: Path) -> None:
    """A file that cannot be read is read again before its pods are gone, and named."""
    file = tmp_path / "web.yaml"
    file.write_text(POD)
    files = ManifestFiles(tmp_path, "node-1")
    files.look()
    file.write_text("metadata: {na")
    first, second = files.look(), files.look()
    file.write_text(POD)

    assert names(first) == ["web-node-1"]
    assert names(second) == []
    assert f"{file}: is no manifest" in first.problems[0]
    assert names(files.look()) == ["web-node-1"]


@pytest.mark.parametrize(
    "text", ["3", "[]", "metadata: {name: x}\nspec: {containers: 3}", "kind: Pod", "\x00"]
)
def test_rubbish_in_the_folder_is_named(tmp_path: Path, text: str) -> None:
    """A file that holds no pod is a problem that names it, and nothing else fails."""
    (tmp_path / "bad.yaml").write_text(text)
    (tmp_path / "good.yaml").write_text(POD)
    look = ManifestFiles(tmp_path, "node-1").look()

    assert names(look) == ["web-node-1"]
    assert len(look.problems) == 1
    assert str(tmp_path / "bad.yaml") in look.problems[0]


@contextmanager
def serving(answers: dict[str, tuple[int, bytes]]) -> Generator[str]:
    """A server on loopback that answers each path so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers[self.path]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def item(name: str = "web", **metadata: Any) -> dict[str, Any]:
    """A pod as /pods shows it."""
    meta: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": "1",
        "managedFields": [{}],
        **metadata,
    }
    status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "hostIP": "10.0.0.1"}
    return {"metadata": meta, "spec": {"containers": []}, "status": status}


def test_kubelets_pods_have_uid_and_status() -> None:
    """API pods come with their status beside the manifest; static pods by their manifest's name."""
    static = item("st-node-1", uid="2", annotations={"kubernetes.io/config.source": "file"})
    body = json.dumps({"kind": "PodList", "items": [item(), static]}).encode()
    with serving({"/pods": (200, body)}) as url:
        look = KubeletPods(f"{url}/pods", "node-1").look()
    web, st = look.pods

    assert (web.key, st.key) == (
        PodKey("api", "default", "web", "1"),
        PodKey("file", "default", "st-node-1", "2"),
    )
    assert web.pod == {
        "metadata": {"name": "web", "namespace": "default", "uid": "1"},
        "spec": {"containers": []},
    }
    assert web.status is not None
    assert st.pod["metadata"]["name"] == "st"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>", "something that is no JSON"),
        (200, b'{"kind":"NodeList","items":[]}', "no list of pods"),
        (200, b'{"kind":"PodList","items":3}', "no list of pods"),
        (401, b"", "answers 401"),
    ],
)
def test_answers_that_can_never_be_pods_are_hopeless(status: int, body: bytes, said: str) -> None:
    """Rubbish is refused with what is wrong with it."""
    with serving({"/pods": (status, body)}) as url, pytest.raises(PodsReadError, match=said) as caught:
        KubeletPods(f"{url}/pods", "node-1").look()

    assert caught.value.hopeless


def test_kubelet_that_is_down_may_come_back() -> None:
    """A refused connection is no reason to give up, nor is a server's own failure."""
    with serving({"/pods": (503, b"")}) as url, pytest.raises(PodsReadError, match="answers 503") as failing:
        KubeletPods(f"{url}/pods", "node-1").look()
    with pytest.raises(PodsReadError, match="refused") as refused:
        KubeletPods(f"{url}/pods", "node-1").look()

    assert not failing.value.hopeless
    assert not refused.value.hopeless


def desired(status: dict[str, Any] | None = None, *, source: str = "api", **metadata: Any) -> DesiredPod:
    """A pod as one look shows it."""
    meta = {"name": "web", "uid": "1", **metadata}
    pod = {"metadata": meta, "spec": {"containers": [{"name": "app"}]}}
    return DesiredPod(PodKey(source, "default", "web", "1"), pod, status)


def changes(watch: Watch, *pods: DesiredPod) -> list[tuple[str, list[str]]]:
    """What this look changes: how it is to be placed, and the kinds of its records."""
    return [(each.what, [kind for kind, _ in each.records]) for each in watch.changes(Look(pods))]


def test_changes_are_reported_once() -> None:
    """A pod is set when it is new, changed and deleted; its status when there is one; then it is gone."""
    watch = Watch(gives_status=True)
    running = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "hostIP": "10.0.0.1"}

    assert changes(watch, desired({"phase": "Pending"})) == [("new", ["pod"])]
    assert changes(watch, desired({"phase": "Pending"})) == []
    assert changes(watch, desired(running)) == [("status", ["status"])]
    assert changes(watch, desired(running, labels={"a": "b"})) == [("changed", ["pod"])]
    assert changes(watch, desired(running, deletionTimestamp="2026-01-01T00:00:00Z")) == [("going", ["pod"])]
    assert changes(watch) == [("status", ["deleted"])]


def test_pod_that_is_suddenly_gone_was_asked_to_go() -> None:
    """An API pod that was not seen being deleted is gone before its stop; a static pod is removed."""
    by_kubelet, by_folder = Watch(gives_status=True), Watch(gives_status=False)
    changes(by_kubelet, desired())
    changes(by_folder, desired(source="file"))

    assert changes(by_kubelet) == [("going", ["deleted"])]
    assert changes(by_folder) == [("going", ["pod"])]


def test_status_of_a_static_pod_is_that_of_its_mirror() -> None:
    """The mirror's UID is not reported, and the status of a static pod is never stored under its own."""
    running = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "hostIP": "10.0.0.1"}
    _, change = Watch(gives_status=True).changes(Look((desired(running, source="file"),)))
    kind, fields = change.records[0]

    assert (kind, fields["uid"]) == ("status", "mirror-of-1")


def test_kubelet_without_an_api_server_stores_no_status() -> None:
    """Statuses without the host's IP are stored nowhere; that of a refused pod has a reason instead."""
    began = {"startTime": "2026-01-01T00:00:00Z"}
    alone, refused = Watch(gives_status=True), Watch(gives_status=True)
    alone.changes(Look((desired({**began, "phase": "Running"}),)))
    changes = refused.changes(Look((desired({**began, "phase": "Failed", "reason": "NodePorts"}),)))

    assert alone.is_alone
    assert not refused.is_alone
    assert [each.what for each in changes] == ["new", "status"]
