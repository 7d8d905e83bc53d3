"""The hash of a container's definition, which shows whether a running instance is still the desired one."""

from functools import lru_cache

import msgspec
from msgspec.structs import replace

from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.util.versions import Behaviour

_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193


def container_hash(container: AnyContainer, behaviour: Behaviour) -> str:
    """The hash in hex, as the annotation io.kubernetes.container.hash has it (RESTART-08).

    It covers name and image, and up to 1.30 the whole definition. The value for name and image is the one
    that Kubernetes computes: 32-bit FNV-1a over the canonical JSON, its bytes printed as decimal numbers.
    """
    if behaviour.hash_is_name_and_image:
        return _hash_of(msgspec.json.encode({"image": container.image or "", "name": container.name}))
    if behaviour.resizes_in_place:
        # Other resources are no other definition (RESIZE-03).
        container = replace(container, resources=None)
    return _hash_of(msgspec.json.encode(container, order="sorted"))


@lru_cache(maxsize=4096)
def _hash_of(definition: bytes) -> str:
    printed = f"([]uint8)[{' '.join(map(str, definition))}]"
    value = _FNV_OFFSET
    for byte in printed.encode():
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return f"{value:x}"
