"""A container runtime in memory: a state machine whose time is set from outside, and the CRI around it.

- `RuntimeCore` decides every call, without I/O and without a clock.
- `FakeRuntime` is the core in process: coroutines by the names of the calls, on any event loop.
- `FakeRuntime.faults` lets calls fail, hang or be late; its other methods let things happen by themselves.
- What a container does is written in its command (`script`).
"""

from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.settings import RuntimeSettings

__all__ = (
    "CallError",
    "FakeRuntime",
    "RuntimeCore",
    "RuntimeSettings",
)
