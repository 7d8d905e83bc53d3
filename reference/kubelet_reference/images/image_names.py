"""Names of images: whether they are names at all, and what they stand for where they say little."""

import re
from functools import lru_cache

from kubelet_reference.api.pods import AnyContainer

DEFAULT_TAG = "latest"
DEFAULT_REGISTRY = "docker.io"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_TAG = r"(?P<tag>:\w[\w.-]{0,127})"
_DIGEST = r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})"
_NAME = re.compile(rf"(?:{_DOMAIN}/)?{_PART}(?:/{_PART})*{_TAG}?{_DIGEST}?", re.ASCII)


@lru_cache(maxsize=1024)
def with_default_tag(image: str) -> str:
    """The image with the tag latest, if it has neither tag nor digest; `ValueError` if it is no name.

    A short name is not completed by a registry: that is the runtime's business (IMAGE-04, IMAGE-05).
    """
    found = _NAME.fullmatch(image)
    if found is None:
        raise ValueError(f'couldn\'t parse image name "{image}": invalid reference format')
    return image if found["tag"] or found["digest"] else f"{image}:{DEFAULT_TAG}"


def pull_policy(container: AnyContainer) -> str:
    """The container's pull policy; without one it follows from the tag (IMAGE-19)."""
    if container.imagePullPolicy:
        return container.imagePullPolicy
    found = _NAME.fullmatch(container.image or "")
    fixed = found is not None and (found["digest"] or (found["tag"] or ":latest") != f":{DEFAULT_TAG}")
    return "IfNotPresent" if fixed else "Always"


def registry_of(image: str) -> tuple[str, str]:
    """The registry of an image, and the repository in it, without tag and digest."""
    name = image.partition("@")[0]
    first, slash, rest = name.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        first, rest = DEFAULT_REGISTRY, name if slash else f"library/{name}"
    return first, rest.partition(":")[0]
