"""Redaction: no secret survives in any field, and what judges compare stays comparable."""

import io
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cri_api.v1 import api_pb2 as cri
from google.protobuf.descriptor import Descriptor
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from judging import outcomes
from sampling import of_recorded_traces

from kubelet_conformance.trace.format.json_values import strings
from kubelet_conformance.trace.redaction.api_secrets import redacted_fields, redacted_pod, redacted_status
from kubelet_conformance.trace.redaction.cri_secrets import (
    redacted_message,
    redacted_request,
    redacted_response,
)
from kubelet_conformance.trace.redaction.redactor import REMEMBERED_SECRETS, Redactor
from kubelet_conformance.trace.redaction.slicing import Cut, slice_trace

KEY = b"a key that tests may know"
PASSWORD = "correct-horse"  # noqa: S105 - planted, to be found
TOKEN = re.compile(r"redacted:[0-9a-f]{16}")

#: Text fields of the CRI that stay as they are: what things are called, where they are, how they are meant.
OPEN_FIELDS = {
    "AuthConfig": "server_address",
    "CDIDevice": "name",
    "Capability": "add_ambient_capabilities add_capabilities drop_capabilities",
    "CheckpointContainerRequest": "location",
    "Container": "id image_id image_ref labels pod_sandbox_id",
    "ContainerAttributes": "id labels",
    "ContainerConfig": "labels log_path working_dir",
    "ContainerEventResponse": "container_id",
    "ContainerFilter": "id label_selector pod_sandbox_id",
    "ContainerMetadata": "name",
    "ContainerMetrics": "container_id",
    "ContainerStatsFilter": "id label_selector pod_sandbox_id",
    "ContainerStatus": "id image_id image_ref labels log_path reason",
    "DNSConfig": "options searches servers",
    "Device": "container_path host_path permissions",
    "FilesystemIdentifier": "mountpoint",
    "HugepageLimit": "page_size",
    "Image": "id repo_digests repo_tags username",
    "ImageSpec": "image runtime_handler user_specified_image",
    "KeyValue": "key",
    "LinuxContainerResources": "cpuset_cpus cpuset_mems unified",
    "LinuxContainerSecurityContext": (
        "apparmor_profile masked_paths readonly_paths run_as_username seccomp_profile_path"
    ),
    "LinuxPodSandboxConfig": "cgroup_parent sysctls",
    "LinuxSandboxSecurityContext": "seccomp_profile_path",
    "Metric": "label_values name",
    "MetricDescriptor": "help label_keys name",
    "Mount": "container_path host_path image_sub_path",
    "NamespaceOption": "target_id",
    "NetworkConfig": "pod_cidr",
    "NetworkInterfaceUsage": "name",
    "PodIP": "ip",
    "PodSandbox": "id labels runtime_handler",
    "PodSandboxAttributes": "id labels",
    "PodSandboxConfig": "hostname labels log_directory",
    "PodSandboxFilter": "id label_selector",
    "PodSandboxMetadata": "name namespace uid",
    "PodSandboxMetrics": "pod_sandbox_id",
    "PodSandboxNetworkStatus": "ip",
    "PodSandboxStatsFilter": "id label_selector",
    "PodSandboxStatus": "id labels runtime_handler",
    "PortMapping": "host_ip",
    "RuntimeCondition": "reason type",
    "RuntimeHandler": "name",
    "SELinuxOption": "level role type user",
    "SecurityProfile": "localhost_ref",
    "VersionRequest": "version",
    "VersionResponse": "runtime_api_version runtime_name runtime_version version",
    "WindowsContainerSecurityContext": "run_as_username",
    "WindowsNetworkInterfaceUsage": "name",
    "WindowsSandboxSecurityContext": "run_as_username",
}
#: Every message has these by right: ids that a request names, and that its reply gives.
OPEN_EVERYWHERE = {"container_id", "pod_sandbox_id", "image_ref", "runtime_handler"}
#: Commands are shown, without what is known to be secret in them; so are texts for people.
SEARCHED = {
    *("ContainerConfig.command", "ContainerConfig.args", "ExecSyncRequest.cmd", "ExecRequest.cmd"),
    "RuntimeCondition.message",
}


def messages() -> list[Descriptor]:
    """The requests and responses of every method of the CRI."""
    services = cri.DESCRIPTOR.services_by_name.values()
    methods: list[Any] = [method for service in services for method in service.methods]
    return [message for method in methods for message in (method.input_type, method.output_type)]


def filled(message: Any) -> dict[str, Any]:
    """The message in JSON with every text in it set to the name of its field."""
    made: dict[str, Any] = {}
    for field in message.fields:
        name = f"{message.name}.{field.name}"
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            value: Any = {"some/key": name} if inner.fields_by_name["value"].message_type is None else {}
        elif inner is not None:
            value = filled(inner)
        elif field.type == field.TYPE_STRING:
            value = name
        elif field.type == field.TYPE_BYTES:
            value = b64encode(name.encode()).decode()
        else:
            continue
        is_map = inner is not None and inner.GetOptions().map_entry
        made[field.name] = [value] if field.is_repeated and not is_map else value
    return made


def seen(value: Any) -> Iterator[str]:
    """Every text in the value, what is in base64 included."""
    for text in strings(value):
        yield text
        try:
            yield b64decode(text, validate=True).decode()
        except ValueError:
            continue


@pytest.mark.parametrize("message", messages(), ids=lambda message: message.name)
def test_every_text_of_the_cri_is_known_to_be_open_or_gone(message: Descriptor) -> None:
    """What is left of a message full of texts is only what the list above names; the rest are digests."""
    redacted = redacted_message(Redactor(KEY), message, filled(message))
    left = {text for text in seen(redacted) if re.fullmatch(r"\w+\.\w+", text)}
    open_names = {f"{of}.{field}" for of, fields in OPEN_FIELDS.items() for field in fields.split()}
    surprising = {
        name for name in left - open_names - SEARCHED if name.partition(".")[2] not in OPEN_EVERYWHERE
    }

    assert not surprising
    assert ParseDict(redacted, GetMessageClass(message)()).DESCRIPTOR is message


def create_request() -> dict[str, Any]:
    """A container with a secret wherever a kubelet may put one."""
    meta = cri.PodSandboxMetadata(name="web", namespace="default", uid="1")
    config = cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name="app"),
        image=cri.ImageSpec(image="img:1"),
        command=["serve", f"--dsn=postgres://db:{PASSWORD}@db/x"],
        args=["--key", PASSWORD, f"-p{PASSWORD}", "--port=8080"],
        envs=[cri.KeyValue(key="PASSWORD", value=PASSWORD), cri.KeyValue(key="POD", value="web-0-name")],
        labels={"io.kubernetes.pod.name": "web-0-name"},
        annotations={"io.kubernetes.container.hash": "abc", "example.com/config": f"p={PASSWORD}"},
    )
    request = cri.CreateContainerRequest(
        pod_sandbox_id="s1", config=config, sandbox_config=cri.PodSandboxConfig(metadata=meta)
    )
    return MessageToDict(request, preserving_proto_field_name=True)


def pod() -> dict[str, Any]:
    """A manifest with a secret wherever one may be."""
    get = {"path": f"/health?token={PASSWORD}", "httpHeaders": [{"name": "X", "value": PASSWORD}]}
    container = {
        "name": "app",
        "image": "img:1",
        "env": [
            {"name": "P", "value": PASSWORD},
            {"name": "Q", "valueFrom": {"secretKeyRef": {"name": "s"}}},
        ],
        "args": [f"--password={PASSWORD}", "--token", PASSWORD, "$(PASSWORD)"],
        "lifecycle": {"preStop": {"httpGet": get}, "postStart": {"exec": {"command": [f"token={PASSWORD}"]}}},
        "livenessProbe": {"httpGet": get},
    }
    volumes: list[dict[str, Any]] = [
        {"name": "a", "csi": {"driver": "d", "volumeAttributes": {"key": PASSWORD}}},
        {"name": "b", "flexVolume": {"driver": "d", "options": {"key": PASSWORD}}},
        {"name": "c", "gitRepo": {"repository": f"https://me:{PASSWORD}@git/x"}},
    ]
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    return {
        "metadata": {"name": "web", "annotations": {applied: f'{{"value":"{PASSWORD}"}}'}},
        "spec": {
            "containers": [container],
            "initContainers": [container],
            "ephemeralContainers": [container],
            "volumes": volumes,
        },
        "status": status(),
    }


def status() -> dict[str, Any]:
    """A status with a secret in everything that is said."""
    ended = {"terminated": {"exitCode": 1, "message": f"cannot log in with {PASSWORD}"}}
    waiting = {"waiting": {"reason": "ErrImagePull", "message": f"GET https://u:{PASSWORD}@r/v2"}}
    return {
        "phase": "Running",
        "message": f"Authorization: Bearer {PASSWORD}",
        "conditions": [{"type": "Ready", "message": f"secret={PASSWORD}"}],
        "containerStatuses": [{"name": "app", "state": waiting, "lastState": ended}],
    }


def test_no_planted_secret_survives() -> None:
    """A secret is nowhere in what is written of it: requests, replies, manifests, statuses, events."""
    redactor = Redactor(KEY)
    printed = b64encode(f"{PASSWORD}\n".encode()).decode()
    hook = '{"httpGet":{"port":1,"httpHeaders":[{"name":"X","value":"correct-horse"}]}}'
    made: list[Any] = [
        redacted_request(redactor, "CreateContainer", create_request()),
        redacted_request(
            redactor,
            "PullImage",
            {"image": {"image": "img:1"}, "auth": {"username": "me", "password": PASSWORD, "auth": PASSWORD}},
        ),
        redacted_request(redactor, "ExecSync", {"container_id": "c1", "cmd": ["login", PASSWORD]}),
        redacted_response(redactor, "ExecSync", {"stdout": printed, "stderr": printed, "exit_code": 1}),
        redacted_response(
            redactor, "ContainerStatus", {"status": {"message": PASSWORD}, "info": {"a": PASSWORD}}
        ),
        redacted_response(redactor, "Exec", {"url": f"http://127.0.0.1/exec/{PASSWORD}"}),
        redacted_response(redactor, "Version", {"of_a_later_version": [{"deep": PASSWORD}]}),
        redacted_request(redactor, "OfALaterVersion", {"any": PASSWORD}),
        redacted_pod(redactor, pod()),
        redacted_pod(
            redactor,
            {"metadata": {"annotations": {"io.kubernetes.container.preStopHandler": hook}}},
        ),
        redacted_status(redactor, status()),
        redacted_fields(redactor, "pod", {"op": "set", "pod": pod()}),
        redacted_fields(redactor, "status", {"uid": "1", "status": status()}),
        redacted_fields(
            redactor, "event", {"reason": "Unhealthy", "message": f"Liveness probe failed: {PASSWORD}"}
        ),
        redacted_fields(redactor, "event", {"reason": "Failed", "message": f"cannot use {PASSWORD}"}),
        redacted_fields(redactor, "api", {"resource": "pods", "body": pod()}),
        redacted_fields(redactor, "api", {"resource": "secrets", "body": {"data": {"k": PASSWORD}}}),
        redacted_fields(redactor, "probe", {"url": f"http://10.0.0.1/x?token={PASSWORD}"}),
        redacted_fields(redactor, "of-a-later-version", {"any": {"thing": PASSWORD}}),
        redactor.text(f"rpc failed: bad {PASSWORD} for me"),
    ]
    left = [text for value in made for text in seen(value) if PASSWORD in text]

    assert not left


def test_equal_secrets_are_equal_and_others_are_not() -> None:
    """One secret has one digest wherever it stands; another has another, and so has another trace."""
    redactor = Redactor(KEY)
    first = redacted_request(redactor, "CreateContainer", create_request())
    env = first["config"]["envs"][0]["value"]
    manifest = redacted_pod(redactor, pod())
    printed = redacted_response(redactor, "ExecSync", {"stdout": b64encode(PASSWORD.encode()).decode()})

    assert TOKEN.fullmatch(env)
    assert manifest["spec"]["containers"][0]["env"][0]["value"] == env
    assert b64decode(printed["stdout"]).decode() == env
    assert first["config"]["args"] == ["--key", env, f"-p{env}", "--port=8080"]
    assert redactor.digest("another") != env
    assert Redactor(KEY[::-1]).digest(PASSWORD) != env


def test_what_is_open_stays() -> None:
    """Names, images, commands, the kubelet's annotations, and a variable's value that a label tells too."""
    redactor = Redactor(KEY)
    made = redacted_request(redactor, "CreateContainer", create_request())["config"]
    reported = redactor.text('Container web-0-name, image "img:1", on node-1')

    assert (made["metadata"], made["image"]) == ({"name": "app"}, {"image": "img:1"})
    assert made["annotations"]["io.kubernetes.container.hash"] == "abc"
    assert made["command"][0] == "serve"
    assert made["envs"][0]["key"] == "PASSWORD"
    assert reported == 'Container web-0-name, image "img:1", on node-1'


def test_files_of_a_container_lose_what_it_wrote() -> None:
    """A log keeps the form of its lines and a hosts file its text; of a message file a digest is left."""
    redactor, log = Redactor(KEY), f"2026-01-01T00:00:00.1Z stdout F {PASSWORD}\n"
    texts = [
        redacted_fields(redactor, "disk", {"op": "written", "path": path, "text": text})["text"]
        for path, text in (("/c1/0.log", log), ("/containers/c1/ab", PASSWORD), ("/p/etc-hosts", "::1 web"))
    ]

    assert texts == [log.replace(PASSWORD, texts[1]), redactor.digest(PASSWORD), "::1 web"]


def test_claims_stay_and_other_fields_of_their_calls_go() -> None:
    """What is prepared for which claim is no secret; what a later plugin may add is taken for one."""
    claim = {"namespace": "default", "name": "fast"}
    made = redacted_request(
        Redactor(KEY), "NodePrepareResources", {"claims": [claim | {"more": PASSWORD}], "token": PASSWORD}
    )

    assert made["claims"][0] == claim | {"more": made["token"]}
    assert TOKEN.fullmatch(made["token"])


def test_redacting_twice_changes_nothing() -> None:
    """A digest stays itself, so that a slice of a redacted trace can be compared with it."""
    once = redacted_pod(Redactor(KEY), pod())

    assert redacted_pod(Redactor(KEY[::-1]), once) == once


def test_odd_shapes_are_taken_for_secrets() -> None:
    """A field that is not what the protocol says loses its texts, and nothing fails."""
    redactor = Redactor(KEY)
    made = redacted_request(redactor, "CreateContainer", {"config": [PASSWORD], "pod_sandbox_id": "s1"})
    other = redacted_pod(redactor, {"metadata": PASSWORD, "spec": {"containers": [PASSWORD, {"env": 3}]}})

    assert PASSWORD not in str(made)
    assert made["pod_sandbox_id"] == "s1"
    assert other["spec"]["containers"][1] == {"env": 3}


def test_only_the_latest_secrets_are_searched_for() -> None:
    """Memory is bounded: the oldest secret is forgotten when there are too many."""
    redactor = Redactor(KEY)
    redactor.remember([PASSWORD, *(f"secret-number-{n}" for n in range(REMEMBERED_SECRETS))])

    assert redactor.text(PASSWORD) == PASSWORD
    assert TOKEN.fullmatch(redactor.text("secret-number-1"))


@of_recorded_traces()
def test_verdicts_are_the_same_without_secrets(path: Path) -> None:
    """Every contract has the same verdict, exercised as often, on a real trace and on its redacted copy."""
    copy = io.BytesIO()
    slice_trace(path, Cut(), copy, Redactor(KEY))
    whole, redacted = outcomes(path.name, path.read_bytes()), outcomes(path.name, copy.getvalue())

    assert {key: (one.verdict, one.activations) for key, one in redacted.items()} == {
        key: (one.verdict, one.activations) for key, one in whole.items()
    }
    assert msgspec.json.decode(copy.getvalue().partition(b"\n")[0])["redacted"] is True
