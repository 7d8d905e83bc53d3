"""Manifests in few words.

A container's command is its script: `run [stopdelay=S] [stopcode=N]` runs until it is stopped, `exit CODE
AFTER` ends by itself, `seq CODE@AFTER ...` has one ending for each attempt; a probe or hook runs `x CODE
SECONDS` or `xf FILE`.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

IMAGE = "img:1"


def container(name: str = "c1", command: str = "run", *, image: str = IMAGE, **fields: Any) -> Json:  # noqa: ANN401 - fields of the Container type
    """A container that runs `command`; other fields as the API names them."""
    return {"name": name, "image": image, "command": command.split(), **fields}


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
    """A pod with one running container unless told otherwise; `grace` in seconds; other spec fields."""
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


def runtime_class(name: str, handler: str) -> Json:
    """A runtime class, for pods whose `runtimeClassName` it is."""
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": handler,
    }
