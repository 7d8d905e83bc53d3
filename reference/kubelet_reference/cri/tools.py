"""What all components that call the runtime share: the client, events, metrics, clock and settings."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from kubelet_reference.api.events import Recorder
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.cri.client import CriClient
from kubelet_reference.util.ports import Clock
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour


@dataclass(frozen=True, slots=True, kw_only=True)
class CriTools:
    """The runtime, the ways to report what happens, and the settings.

    `spawn` runs a coroutine as a task that ends with the kubelet.
    """

    client: CriClient
    recorder: Recorder
    metrics: Metrics
    clock: Clock
    settings: Settings
    behaviour: Behaviour
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]] = asyncio.create_task
