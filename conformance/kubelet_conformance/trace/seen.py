"""When the kubelet saw the manifest of a static pod, as it says itself in annotations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from kubelet_conformance.trace.header import Header
from kubelet_conformance.trace.written_keys import Annotation


@lru_cache(maxsize=1024)
def _seconds(stamp: str) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return None


def seen_at(header: Header, annotations: Mapping[str, str]) -> float | None:
    """On the trace's clock; None where that is not known."""
    began, seen = _seconds(header.started or ""), _seconds(annotations.get(Annotation.SEEN, ""))
    return None if began is None or seen is None else round(seen - began, 6)
