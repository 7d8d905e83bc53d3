"""What texts of a spec refer to: variables as $(NAME), and fields and resources of the pod itself."""

import re
from collections.abc import Mapping
from math import ceil

from lightkube.models.core_v1 import Pod, ResourceFieldSelector

from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.resources import amount, limits, requests
from kubelet_reference.util.settings import Settings

_REFERENCE = re.compile(r"\$(?:(\$)|\(([^()]*)\))")
SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
"""How a field path names one label or annotation."""


class ConfigError(Exception):
    """The container's config cannot be made as the spec wants it: CreateContainerConfigError (START-02)."""


def expand(text: str, known: Mapping[str, str]) -> str:
    """The text with each $(NAME) replaced by its value, as far as it is known."""

    def value(match: re.Match[str]) -> str:
        dollar, name = match.groups()
        return dollar or known.get(name, match.group())

    return _REFERENCE.sub(value, text)


def references(text: str) -> list[str]:
    """The names that the text refers to as $(NAME)."""
    return [name for dollar, name in _REFERENCE.findall(text) if not dollar]


def resource_text(
    pod: Pod, container: AnyContainer | None, wanted: ResourceFieldSelector, settings: Settings
) -> str:
    """An amount in units of the divisor, rounded up; without a limit it is what the node has.

    `container` is the one that is meant where no other is named; raises `ConfigError`.
    """
    of = pods.container(pod, wanted.containerName) if wanted.containerName else container
    which, _, what = wanted.resource.partition(".")
    if of is None or which not in {"limits", "requests"}:
        raise ConfigError(f"unsupported container resource: {wanted.resource}")
    found = amount(limits(of) if which == "limits" else requests(of), what)
    if not found and which == "limits":
        found = {"cpu": settings.cpu_millicores / 1000, "memory": settings.memory_bytes}.get(what, found)
    divisor = amount({what: wanted.divisor or "1"}, what) or 1
    return str(ceil(found / divisor))
