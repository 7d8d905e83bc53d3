"""Which manifests end a kubelet: those of the scenario that does it, fewer where fewer do it as well."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kubelet_conformance.targets.controls import Target
from kubelet_conformance.trace.format.json_values import object_of, text_of
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import PodChange

_MANIFESTS_MAX = 6
_SECONDS_MAX = 30.0
"""More manifests than these, or such that take longer, are not replayed: that takes a node each time."""
_END_SECONDS = 5.0
"""What a kubelet is given to end after the last one."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest that was written at a time, or removed, if it has no text; `pod` names its pod."""

    t: float
    source: str
    pod: str
    text: bytes


def manifests_before(trace: Path, seq: int) -> list[Manifest]:
    """The manifests that came and went before this record."""
    found: list[Manifest] = []
    with Reader(str(trace)) as reader:
        for record in reader:
            if record.seq >= seq:
                break
            if isinstance(record, PodChange):
                text = bytes(record.pod) if record.op == "set" else b""
                meta = object_of(msgspec.json.decode(text), "metadata") if text else {}
                namespace = record.namespace or text_of(meta, "namespace") or "default"
                pod = f"{namespace}/{record.name or text_of(meta, 'name')}"
                found.append(Manifest(record.t, record.source, pod, text))
    return found


def alive(manifests: Sequence[Manifest]) -> list[str]:
    """The pods that are desired in the end."""
    return [pod for pod, text in {each.pod: each.text for each in manifests}.items() if text]


async def smallest(
    manifests: Sequence[Manifest], ends: Callable[[Sequence[Manifest]], Awaitable[bool]]
) -> str:
    """The manifests, in words; as few as end the kubelet, where replaying them alone ends it, and soon."""
    title = "the manifests that it had read:"
    if _is_quick(manifests) and await ends(manifests):
        title = "the fewest manifests that end it:"
        for each in tuple(manifests):
            fewer = [one for one in manifests if one is not each]
            if fewer and await ends(fewer):
                manifests = fewer
    return "\n".join([title, *(line for each in manifests for line in _lines(each, manifests[0].t))])


def _is_quick(manifests: Sequence[Manifest]) -> bool:
    if not 0 < len(manifests) <= _MANIFESTS_MAX or any(each.source != "file" for each in manifests):
        return False
    return manifests[-1].t - manifests[0].t <= _SECONDS_MAX


def _lines(manifest: Manifest, start: float) -> list[str]:
    if not manifest.text:
        return [f"--- # +{manifest.t - start:.1f} s: {manifest.pod} is removed"]
    text = msgspec.yaml.encode(msgspec.json.decode(manifest.text)).decode()
    return [f"--- # +{manifest.t - start:.1f} s", *text.splitlines()]


def written(manifests: Sequence[Manifest]) -> Callable[[Target], Awaitable[None]]:
    """A scenario that writes and removes these manifests at their times, and nothing else."""

    async def scenario(target: Target) -> None:
        t = manifests[0].t
        for each in manifests:
            await target.sleep(each.t - t)
            t, file = each.t, f"{each.pod.replace('/', '.')}.json"
            if each.text:
                target.manifests.write(file, each.text.decode())
            else:
                target.manifests.remove(file)
        await target.sleep(_END_SECONDS)

    return scenario
