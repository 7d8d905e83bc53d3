"""The requests of recorded kubelets are rebuilt from their pods, field by field."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from cri_api.v1 import api_pb2 as cri
from google.protobuf.json_format import MessageToDict
from lightkube.models.core_v1 import Pod

from kubelet_fixtures import traces
from kubelet_reference.api import pods
from kubelet_reference.kuberuntime.container.container_config import Instance, container_config
from kubelet_reference.kuberuntime.sandbox_config import sandbox_config
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

SETTINGS = Settings(pod_logs_dir="/run/scenario/logs")
RECORDED = sorted(traces().glob("kubernetes-*/*.jsonl"))
IMAGE = cri.Image(id="any", size=1)
_HIDES_MORE = 32
_HASH = "io.kubernetes.container.hash"


def _plain(message: Any) -> dict[str, Any]:
    return MessageToDict(message, preserving_proto_field_name=True)


def _pod(manifest: dict[str, Any], reported: dict[str, Any]) -> Pod:
    """The pod with the kubelet's own annotations, as the recorded sandbox config tells them."""
    about = manifest["metadata"]
    seen = {**about, "annotations": {**about.get("annotations", {}), **reported.get("annotations", {})}}
    pod = Pod.from_dict({**manifest, "metadata": seen})  # pyright: ignore[reportUnknownMemberType]
    return cast("Pod", pod)


def _requests(trace: Path) -> Iterator[tuple[Pod, dict[str, Any]]]:
    """Each request that makes something for a pod of the API server, with the pod as it was then."""
    known: dict[str, dict[str, Any]] = {}
    for record in map(json.loads, trace.read_text().splitlines()):
        if record.get("kind") == "pod" and record["op"] == "set" and record["source"] == "api":
            known[record["pod"]["metadata"]["uid"]] = record["pod"]
        if record.get("kind") == "call" and record["rpc"] in {"RunPodSandbox", "CreateContainer"}:
            request = record["request"]
            reported = request.get("sandbox_config") or request["config"]
            if reported["metadata"]["uid"] in known:
                yield _pod(known[reported["metadata"]["uid"]], reported), request


def _as_here(sandbox: dict[str, Any]) -> dict[str, Any]:
    """Without what depends on that machine, and without a field that was given up when 1.26 was current."""
    here = {key: value for key, value in sandbox.items() if key not in {"dns_config", "log_directory"}}
    security = dict(here["linux"]["security_context"])
    security.pop("seccomp_profile_path", None)
    return {**here, "linux": {**here["linux"], "security_context": security}}


@pytest.mark.parametrize("trace", RECORDED, ids=lambda path: f"{path.parent.name[-4:]}-{path.stem}")
def test_requests(trace: Path) -> None:
    """Sandboxes and containers are asked for as the real kubelet did, its hash included (START-05)."""
    for pod, request in _requests(trace):
        reported = request.get("sandbox_config") or request["config"]
        made = _plain(sandbox_config(pod, reported["metadata"].get("attempt", 0), SETTINGS))

        assert _as_here(made) == _as_here(reported)
        if "sandbox_config" in request:
            behaviour = Behaviour.of(trace.parent.name.removeprefix("kubernetes-"))
            assert _rebuilt(pod, request["config"], behaviour) == request["config"]


def _rebuilt(pod: Pod, config: dict[str, Any], behaviour: Behaviour) -> dict[str, Any]:
    """The config for the same instance, with the recorded mounts, image and environment."""
    one = pods.container(pod, config["metadata"]["name"])
    assert one is not None
    instance = Instance(
        image_ref=config["image"]["image"],
        image=IMAGE,
        restarts=config["metadata"].get("attempt", 0),
        environment={env["key"]: env.get("value", "") for env in config["envs"]},
        mounts=[cri.Mount(**mount) for mount in config["mounts"]],
        target_id=config["linux"]["security_context"]["namespace_options"].get("target_id", ""),
    )
    made = container_config(pod, one, instance, SETTINGS, behaviour)
    if not behaviour.hash_is_name_and_image:
        # It covered everything that Go prints of a container; it only has to change with the container.
        made.annotations[_HASH] = config["annotations"][_HASH]
    rebuilt = _plain(made)
    # Patches have hidden more of the host since.
    rebuilt["linux"]["security_context"] |= _hidden(config) if behaviour.minor < _HIDES_MORE else {}
    return rebuilt


def _hidden(config: dict[str, Any]) -> dict[str, Any]:
    return {name: config["linux"]["security_context"][name] for name in ("masked_paths", "readonly_paths")}
