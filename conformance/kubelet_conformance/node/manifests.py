"""Builds pod manifests for scenarios from short arguments.

A container's command is its script: `run [stopdelay=S] [stopcode=N]` runs until it is stopped, `exit CODE
AFTER` ends by itself, `seq CODE@AFTER ...` has one ending for each attempt; a probe or hook runs `x CODE
SECONDS` or `xf FILE`.
"""

from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

Json = dict[str, Any]

IMAGE = "img:1"
_OF_POD = ("containers", "initContainers", "restartPolicy", "terminationGracePeriodSeconds")
_OF_CONTAINER = ("name", "command", "image")
_SCRIPTS = ("run", "exit", "seq", "nostart")
_ALIKE = 0.8
_CONTAINER_FIELDS = frozenset(
    {
        "args",
        "command",
        "env",
        "envFrom",
        "image",
        "imagePullPolicy",
        "lifecycle",
        "livenessProbe",
        "name",
        "ports",
        "readinessProbe",
        "resizePolicy",
        "resources",
        "restartPolicy",
        "restartPolicyRules",
        "securityContext",
        "startupProbe",
        "stdin",
        "stdinOnce",
        "targetContainerName",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "tty",
        "volumeDevices",
        "volumeMounts",
        "workingDir",
    }
)
"""The fields of a container of any kind in the API."""


def container(name: str = "c1", command: str = "run", *, image: str = IMAGE, **fields: Any) -> Json:  # noqa: ANN401 - fields of the Container type
    """A container that runs `command`; other fields as the API names them.

    Raises:
        TypeError: The API has no such field.
        ValueError: The command looks like a misspelt script.
    """
    for field in fields:
        if field not in _CONTAINER_FIELDS:
            raise TypeError(f"a container has no field {field!r}{_meant(field, _CONTAINER_FIELDS)}")
    script = command.partition(" ")[0]
    if script not in _SCRIPTS and (hint := _meant(script, _SCRIPTS)):
        raise ValueError(f"there is no script {script!r}{hint}")
    return {"name": name, "image": image, "command": command.split(), **fields}


def _meant(word: str, known: Collection[str]) -> str:
    """The known word that a misspelt one is most like, as a question; empty if there is none."""
    near = get_close_matches(word, known, n=1, cutoff=_ALIKE)
    return f"; did you mean {near[0]!r}?" if near else ""


def exec_probe(command: str, **fields: Any) -> Json:  # noqa: ANN401 - fields of the Probe type
    """A probe that runs `command` in the container; other fields as the API names them."""
    return {"exec": {"command": command.split()}, **fields}


def exec_hook(command: str) -> Json:
    """A lifecycle handler that runs `command` in the container."""
    return {"exec": {"command": command.split()}}


def pod(
    *containers: Json,
    name: str = "web",
    init: tuple[Json, ...] = (),
    restart: str = "Always",
    grace: int = 30,
    metadata: Json | None = None,
    **spec: Any,  # noqa: ANN401 - fields of the PodSpec type
) -> Json:
    """A pod with one running container by default; `grace` in seconds; other spec fields."""
    inits = {"initContainers": list(init)} if init else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **(metadata or {})},
        "spec": {
            **inits,
            "containers": list(containers) or [container()],
            "restartPolicy": restart,
            "terminationGracePeriodSeconds": grace,
            **spec,
        },
    }


def pod_code(manifest: Json) -> str:
    """The expression that builds a manifest by `pod` and `container`."""
    spec = manifest["spec"]
    inits = [_container_code(each) for each in spec.get("initContainers") or ()]
    arguments = [_container_code(each) for each in spec["containers"]]
    arguments.append(f'name="{manifest["metadata"]["name"]}"')
    if inits:
        arguments.append(f"init=({', '.join(inits)},)")
    if spec["restartPolicy"] != "Always":
        arguments.append(f'restart="{spec["restartPolicy"]}"')
    arguments.append(f"grace={spec['terminationGracePeriodSeconds']}")
    arguments += [f"{name}={value!r}" for name, value in spec.items() if name not in _OF_POD]
    return f"pod({', '.join(arguments)})"


def _container_code(container: Json) -> str:
    arguments = [f'"{container["name"]}"', f'"{" ".join(container["command"])}"']
    if container["image"] != IMAGE:
        arguments.append(f'image="{container["image"]}"')
    arguments += [f"{name}={value!r}" for name, value in container.items() if name not in _OF_CONTAINER]
    return f"container({', '.join(arguments)})"


def runtime_class(name: str, handler: str) -> Json:
    """A runtime class, for pods whose `runtimeClassName` it is."""
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": handler,
    }
