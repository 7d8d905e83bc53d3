"""What becomes of pods' files where a kubelet is a process: it is looked at before what is about the pod."""

from pathlib import Path
from typing import Any

from cri_api.v1 import api_pb2 as cri
from on_loop import on_loop

from kubelet_conformance.targets.process.pod_files import PodFiles
from kubelet_conformance.trace.format.recorder import Item, RecordedCall, Recorder


def run_sandbox(logs: Path) -> cri.RunPodSandboxRequest:
    """The request for the sandbox of pod u1."""
    metadata = cri.PodSandboxMetadata(name="web", namespace="default", uid="u1")
    return cri.RunPodSandboxRequest(config=cri.PodSandboxConfig(metadata=metadata, log_directory=str(logs)))


def shown(recorder: Recorder, below: Path) -> list[tuple[str, str, Any]]:
    """The records in order: those of files with their path, the others by their name."""
    found: list[tuple[str, str, Any]] = []
    for one in recorder.records:
        if isinstance(one, Item) and one.kind == "disk":
            path = one.fields["path"].removeprefix(str(below))
            found.append((one.fields["op"], path, one.fields.get("text")))
        elif isinstance(one, Item):
            found.append((one.kind, "", None))
        elif isinstance(one, RecordedCall):
            found.append((one.rpc, "", None))
    return found


@on_loop
async def test_files_are_seen_before_what_is_about_their_pod(tmp_path: Path) -> None:
    """What was there at a call or a status is on the record before it, and is told once."""
    recorder, pods, logs = Recorder(lambda: 0.0), tmp_path / "pods", tmp_path / "logs"
    pod = pods / "u1"
    for folder in (pod / "volumes", pod / "plugins", pod / "containers" / "c1", logs / "c1"):
        folder.mkdir(parents=True)
    async with PodFiles(recorder, pods, Path("/")):
        recorder.call("RunPodSandbox", run_sandbox(logs))
        (logs / "c1" / "0.log").write_text("hello", encoding="utf-8")
        (pod / "containers" / "c1" / "m").write_text("x" * 5000, encoding="utf-8")
        recorder.record("status", uid="u1")
        recorder.record("status", uid="u1")

    assert shown(recorder, tmp_path) == [
        ("folder", "/pods/u1", None),
        ("folder", "/pods/u1/volumes", None),
        ("folder", "/pods/u1/plugins", None),
        ("folder", "/logs", None),
        ("RunPodSandbox", "", None),
        ("written", "/pods/u1/containers/c1/m", None),
        ("written", "/logs/c1/0.log", "hello"),
        ("status", "", None),
        ("status", "", None),
    ]


@on_loop
async def test_removal_is_told_of_what_is_above_all_that_went(tmp_path: Path) -> None:
    """A volume that goes is told; with a folder everything in it has gone."""
    recorder, pods = Recorder(lambda: 0.0), tmp_path / "pods"
    volume = pods / "u1" / "volumes" / "kubernetes.io~empty-dir" / "data"
    volume.mkdir(parents=True)
    (pods / "u1" / "volumes" / "file").touch()
    async with PodFiles(recorder, pods, Path("/")):
        call = recorder.call("RunPodSandbox", run_sandbox(tmp_path / "logs"))
        recorder.reply(call, cri.RunPodSandboxResponse(pod_sandbox_id="s1"))
        recorder.records.clear()
        volume.rmdir()
        recorder.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id="s1"))
        volume.parent.rmdir()
        (pods / "u1" / "volumes" / "file").unlink()
        (pods / "u1" / "volumes").rmdir()
        (pods / "u1").rmdir()
        recorder.call("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id="s1"))

    assert shown(recorder, tmp_path) == [
        ("removed", "/pods/u1/volumes/kubernetes.io~empty-dir/data", None),
        ("StopPodSandbox", "", None),
        ("removed", "/pods/u1", None),
        ("RemovePodSandbox", "", None),
    ]
