"""What a fake runtime is made of, so that one part of it can be another."""

from __future__ import annotations

from dataclasses import dataclass

from kubelet_fakes.clock import Clock
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.images import Images
from kubelet_fakes.runtime.mishaps import Mishaps
from kubelet_fakes.runtime.node_calls import NodeCalls
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.settings import RuntimeSettings
from kubelet_fakes.runtime.store import Store


@dataclass(frozen=True, slots=True)
class RuntimeParts:
    """The parts of a right runtime; `dataclasses.replace` makes one that is wrong in a single way.

    Attributes:
        runtime: the calls as coroutines, and their waiting.
        core: what is accepted, refused and answered.
        store: the records and their steps.
        images: the images, and the calls about them.
        node_calls: what it says of itself.
        mishaps: restarts, reboots and whatever else happens uncalled.
    """

    runtime: type[FakeRuntime] = FakeRuntime
    core: type[RuntimeCore] = RuntimeCore
    store: type[Store] = Store
    images: type[Images] = Images
    node_calls: type[NodeCalls] = NodeCalls
    mishaps: type[Mishaps] = Mishaps

    def build(
        self, clock: Clock, settings: RuntimeSettings | None = None, *, epoch_ns: int = 0
    ) -> FakeRuntime:
        """A runtime of these parts; `epoch_ns` is the time of day at the clock's 0."""
        core = self.core(settings, epoch_ns=epoch_ns, store=self.store, images=self.images)
        return self.runtime(core, clock, mishaps=self.mishaps, node_calls=self.node_calls)
