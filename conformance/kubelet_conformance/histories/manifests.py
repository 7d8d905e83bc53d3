"""Pods of histories, in words and as the code that builds them."""

from __future__ import annotations

from typing import Any

from kubelet_conformance.node.pods import IMAGE

Json = dict[str, Any]
_OF_POD = ("containers", "initContainers", "restartPolicy", "terminationGracePeriodSeconds")
_OF_CONTAINER = ("name", "command", "image")


def in_words(manifest: Json) -> str:
    """A pod in one line."""
    spec = manifest["spec"]
    inits = [_container_words(each) for each in spec.get("initContainers") or ()]
    apps = [_container_words(each) for each in spec["containers"]]
    others = [f"{name} {_value(value)}" for name, value in spec.items() if name not in _OF_POD]
    parts = [
        *([f"init {', '.join(inits)}"] if inits else []),
        ", ".join(apps),
        f"restart {spec['restartPolicy']}",
        f"grace {spec['terminationGracePeriodSeconds']} s",
        *others,
    ]
    return "; ".join(parts)


def _container_words(container: Json) -> str:
    others = [f"{name} {_value(value)}" for name, value in container.items() if name not in _OF_CONTAINER]
    image = [] if container["image"] == IMAGE else [f"image {container['image']}"]
    told = "".join(f", {each}" for each in (*image, *others))
    return f"{container['name']} ({' '.join(container['command'])}{told})"


def _value(value: object) -> str:
    return str(value)


def pod_code(manifest: Json) -> str:
    """The expression that builds the pod in a scenario."""
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


def with_image(manifest: Json, container: str, image: str) -> Json:
    """The manifest with another image for one of its containers."""
    spec = manifest["spec"]
    containers = [
        {**each, "image": image} if each["name"] == container else each for each in spec["containers"]
    ]
    return {**manifest, "spec": {**spec, "containers": containers}}


def without_sidecars(manifest: Json) -> Json:
    """The manifest without the init containers that only a kubelet from 1.29 on takes (SIDECAR-01)."""
    spec = manifest["spec"]
    inits = [each for each in spec.get("initContainers") or () if not each.get("restartPolicy")]
    return {**manifest, "spec": {**spec, "initContainers": inits}}
