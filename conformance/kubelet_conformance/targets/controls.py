"""What a target lets a scenario do to it: a kubelet and a runtime under test, and the world around them.

A control has all its methods from the start, and what a target does not override raises `NotPossibleError`.
"""

# ruff: noqa: ARG002 - a default refuses whatever it is asked for
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_fakes import faults

Json = dict[str, Any]
MANIFEST_FOLDER = "/etc/kubernetes/manifests"
"""The folder that the kubelet reads unless a scenario sets `static_pod_path`."""
MANIFEST_URL = "http://127.0.0.1/manifests"
"""The URL that a scenario sets as `static_pod_url` to have the kubelet read it."""
ObjectKind = Literal["ConfigMap", "Secret", "Node", "RuntimeClass"]
"""The kinds of objects besides pods that a scenario can put into the API server."""
OF_THE_CLUSTER: frozenset[ObjectKind] = frozenset({"Node", "RuntimeClass"})
"""Of these, the ones that are in no namespace."""
SHUTDOWN_GOES_ON = "nothing holds the shutdown up"
"""What a record says when the kubelet lets the machine go down."""
PLUGIN_USE = "plugin.prepare"
"""Stands beside the controls that a scenario uses where its pods need a plugin of dynamic resources."""
THEN_USE = "kubelet.then"
"""Stands there where the kubelet of a scenario comes back as one of another version."""
Effect = faults.Effect
Fault = faults.Fault
"""The vocabulary of faults is the fakes' own."""


class RuntimeSandbox(msgspec.Struct, frozen=True):
    """A sandbox as the runtime has it."""

    id: str
    pod_uid: str
    pod_name: str
    namespace: str
    attempt: int
    ready: bool


class RuntimeContainer(msgspec.Struct, frozen=True):
    """A container as the runtime has it; `state` is CREATED, RUNNING, EXITED or UNKNOWN."""

    id: str
    name: str
    attempt: int
    state: str
    sandbox: RuntimeSandbox


class ActiveFault(Protocol):
    """A fault that is in force."""

    def heal(self) -> None:
        """End it; again is fine."""
        ...


class ActiveCallFault(ActiveFault, Protocol):
    """A fault of calls that is in force."""

    def when_it_applies(self, act: Callable[[], None]) -> None:
        """Call this with each call that it applies to, before it does anything to it."""
        ...

    async def until_holding(self) -> None:
        """Return when it holds a call, or the reply to one that has taken place."""
        ...


class InjectedFault:
    """A fault that is in force as long as a context is open; see `Fault`."""

    def __init__(self, context: AbstractContextManager[object]) -> None:
        self._open = ExitStack()
        self._open.enter_context(context)

    def heal(self) -> None:
        """Leave the context; again is fine."""
        self._open.close()


class NotPossibleError(Exception):
    """A target cannot do what a scenario asks of it; the text says what is missing, to follow "needs"."""


class KubeletEndedError(Exception):
    """The kubelet ended by itself; the text says how, and in further lines what it wrote last."""


class EndlessPlayError(AssertionError):
    """What is played repeats itself without end; the text says what. It counts as a wait that timed out."""


def _not_scripted(control: str) -> NotPossibleError:
    return NotPossibleError(f"a scripted runtime: {control}")


def no_api_server(what: str) -> NotPossibleError:
    """The target has no API server, which this needs."""
    return NotPossibleError(f"an API server: {what}")


class RuntimeControl(Protocol):
    """What may be done to the runtime from outside; by default only a scripted one can do it."""

    def sandboxes(self) -> Sequence[RuntimeSandbox]:
        """All records, oldest first."""
        ...

    def containers(self) -> Sequence[RuntimeContainer]:
        """All records, oldest first."""
        ...

    def exit(self, container_id: str, code: int) -> None:
        """Its process ends by itself."""
        raise _not_scripted("exit")

    def oom(self, container_id: str, code: int = 137) -> None:
        """A process of it is killed for lack of memory, and it ends with `code`."""
        raise _not_scripted("oom")

    def lose_track(self, container_id: str) -> None:
        """Its state becomes UNKNOWN."""
        raise _not_scripted("lose_track")

    def kill_sandbox(self, sandbox_id: str) -> None:
        """The sandbox becomes NOTREADY; containers go on."""
        raise _not_scripted("kill_sandbox")

    def remove_container(self, container_id: str) -> None:
        """Its record vanishes."""
        raise _not_scripted("remove_container")

    def remove_sandbox(self, sandbox_id: str) -> None:
        """Its record and those of its containers vanish."""
        raise _not_scripted("remove_sandbox")

    def restart(self, *, lose_state: bool = False) -> None:
        """The runtime goes down and comes up at once."""
        raise _not_scripted("restart")

    def reboot(self) -> None:
        """The node went down and up: nothing runs, all records remain."""
        raise _not_scripted("reboot")

    def set_conditions(self, *, runtime_ready: bool = True, network_ready: bool = True) -> None:
        """What Status answers from now on."""
        raise _not_scripted("set_conditions")

    def set_address(self, address: str | None) -> None:
        """What sandboxes run from now on get as their address: a text, nothing if empty, or None for one."""
        raise _not_scripted("set_address")

    # The stream of container events. A count of 0 ends what was begun.

    def lose_events(self, count: int) -> None:
        """The next `count` events are not sent."""
        raise _not_scripted("lose_events")

    def delay_events(self, count: int, seconds: float) -> None:
        """Each of the next `count` events is sent so much later; those that come after them overtake."""
        raise _not_scripted("delay_events")

    def reverse_events(self, count: int) -> None:
        """The next `count` events are held back, and then sent in reverse order."""
        raise _not_scripted("reverse_events")

    def cut_events(self) -> None:
        """The stream breaks; what happens before it is opened anew is not reported."""
        raise _not_scripted("cut_events")

    # What containers find, in their files and over the network.

    def set_file(self, name: str, *, there: bool) -> None:
        """What an `xf NAME` command finds."""
        raise _not_scripted("set_file")

    def answer_http(  # noqa: PLR0913 - each is a side of an answer
        self,
        path: str,
        status: int,
        *,
        location: str = "",
        delay: float = 0,
        body: str = "",
        plain: bool = False,
    ) -> None:
        """What servers in pods answer to probes and hooks at this path, 200 by default.

        0 refuses; `location` is where a redirect leads, `delay` how late the answer is, in seconds. A `plain`
        server knows no TLS.
        """
        raise _not_scripted("answer_http")

    def headers(self, path: str) -> Mapping[str, str]:
        """The headers of the last probe or hook that came for this path, by names in lower case."""
        raise _not_scripted("headers")

    def open_port(self, port: int, *, is_open: bool) -> None:
        """Whether servers in pods accept TCP connections at this port, which they do by default."""
        raise _not_scripted("open_port")

    def report_health(self, service: str, status: str) -> None:
        """What servers in pods answer to health checks, SERVING by default; "" refuses.

        With UNIMPLEMENTED they know of no health checks.
        """
        raise _not_scripted("report_health")

    def add_image(self, name: str, *, user: str = "") -> None:
        """Put an image onto the node."""
        raise _not_scripted("add_image")

    def remove_image(self, name: str) -> None:
        """Take an image off the node."""
        raise _not_scripted("remove_image")

    def protect_image(self, name: str, username: str, password: str) -> None:
        """Let the registry give it only to this user."""
        raise _not_scripted("protect_image")

    def publish_image(self, name: str, *, there: bool = True) -> None:
        """Whether the registry has it."""
        raise _not_scripted("publish_image")

    def remove_cgroup(self, uid: str) -> None:
        """The cgroup of the pod with this UID vanishes."""
        raise _not_scripted("remove_cgroup")

    def inject(self, fault: Fault) -> ActiveCallFault:
        """Let calls, probes or hooks fail or be late until healed."""
        raise _not_scripted("inject")


RUNTIME_CONTROLS = frozenset(name for name in vars(RuntimeControl) if not name.startswith("_"))
"""What may be done to a runtime, by the names of the methods."""


class ApiControl(Protocol):
    """What users and controllers do at the API server; by default it is not there."""

    def create(self, manifest: Json) -> Json:
        """Create a pod bound to the node; what is stored comes back."""
        ...

    def needs_ordinary_pods(self) -> None:
        """Refuse a target all of whose pods are static: those are critical, and admitted by other rules."""
        raise no_api_server("pods that are not critical, as static ones are")

    def create_unbound(self, manifest: Json) -> Json:
        """Create a pod that no node has yet, and give it back as stored."""
        raise no_api_server("pods that no node has yet")

    def bind(self, namespace: str, name: str) -> None:
        """Give a pod to the node, as a scheduler does."""
        raise no_api_server("pods that no node has yet")

    def update(self, namespace: str, name: str, changes: Mapping[str, Any]) -> Json:
        """Merge `changes` into a pod's metadata and spec (containers by name)."""
        ...

    def update_status(self, namespace: str, name: str, changes: Mapping[str, Any]) -> Json:
        """Another writer merges `changes` into a pod's status."""
        raise no_api_server("other writers of statuses")

    def resize(self, namespace: str, name: str, sizes: Mapping[str, Json]) -> Json:
        """Change the resources of containers, by name."""
        raise no_api_server("other resources of pods that run")

    def add_ephemeral(self, namespace: str, name: str, container: Json) -> Json:
        """Add an ephemeral container."""
        raise no_api_server("ephemeral containers")

    def delete(self, namespace: str, name: str, grace_seconds: int | None = None) -> None:
        """Ask for deletion; 0 forces it."""
        ...

    def get(self, namespace: str, name: str) -> Json | None:
        """The stored pod, if there is one."""
        ...

    def put(self, kind: ObjectKind, manifest: Json) -> None:
        """Create or replace another object."""
        raise no_api_server(f"objects of kind {kind}")

    def remove(self, kind: ObjectKind, namespace: str, name: str) -> Json:
        """Remove another object; what was stored comes back."""
        raise no_api_server(f"objects of kind {kind}")

    def inject(self, fault: Fault) -> ActiveCallFault:
        """Let requests of the kubelet fail or be late, and its watches too, until healed."""
        what = "an outage of it" if fault.call == "*" else "requests to it that fail or are late"
        raise no_api_server(what)

    def forget_history(self) -> None:
        """Watches break with 410 Gone: changes that they had not reported yet are lost."""
        raise no_api_server("a history that it forgets")

    def tolerate(self) -> ActiveFault:
        """What would be invalid is stored all the same until healed."""
        raise no_api_server("objects that are not valid")


class Manifests(Protocol):
    """The manifest folder and URL that the kubelet reads."""

    def make_folder(self) -> None:
        """Make the folder, where it is missing."""
        ...

    def write(self, file: str, text: str) -> None:
        """Write a file into the folder."""
        ...

    def remove(self, file: str) -> None:
        """Remove a file from the folder."""
        ...

    def serve(self, status: int, body: str) -> None:
        """What the URL answers from now on; status 0 refuses the connection."""
        ...


class KubeletControl(Protocol):
    """The kubelet's process."""

    async def start(self) -> None:
        """Start it, unless it runs: a fault may have had it killed and started meanwhile."""
        ...

    async def stop(self) -> None:
        """Ask it to end (SIGTERM); containers go on."""
        ...

    async def kill(self) -> None:
        """End it at once (SIGKILL)."""
        ...

    @property
    def running(self) -> bool:
        """Whether it runs."""
        ...

    async def metrics(self) -> str:
        """What its /metrics says, in Prometheus' text format."""
        ...

    async def healthy(self) -> bool:
        """What its /healthz says."""
        ...

    def choose_orders(self, *choices: int) -> None:
        """Which of several ready things comes first, choice by choice and over and over; 0 is FIFO."""
        raise NotPossibleError("a kubelet that takes its inputs in an order of choice")


class MachineControl(Protocol):
    """What the kubelet measures of its machine; by default it cannot be changed."""

    def press(self, signal: str, available: str) -> None:
        """Leave so much of a signal such as `memory.available`, an amount or a share such as 5%."""
        raise NotPossibleError(f"a node whose {signal} can be set to {available}")

    def relieve(self, signal: str) -> None:
        """There is enough of it again."""
        raise NotPossibleError(f"a node whose {signal} can be set")

    def use(self, uid: str, amounts: Mapping[str, str]) -> None:
        """Let a pod use so much: `memory`, `ephemeral-storage`, `volume NAME`, `container NAME`."""
        raise NotPossibleError(f"a node on which pod {uid} can be made to use {', '.join(amounts)}")

    def shut_down(self) -> None:
        """Announce that the machine goes down."""
        raise NotPossibleError("a node that can be shut down")

    def leave_file(self, path: str) -> None:
        """Put an empty file on the node's disk, as another program might."""
        raise NotPossibleError(f"a foreign file {path}")

    def shown(self, path: str) -> Mapping[str, tuple[str, int]]:
        """The files that a container finds where `path` is mounted, and "" for it: text and permissions."""
        raise NotPossibleError(f"a disk on which {path} can be read")

    def damage(self, path: str) -> ActiveFault:
        """Nothing at `path` and below can be read, written or removed until healed."""
        raise NotPossibleError(f"a disk that fails at {path}")


@dataclass(slots=True)
class Target:
    """A kubelet and a runtime under test, with everything around them.

    Attributes:
        node_name: the node's.
        wait_seconds_max: the longest that a scenario may wait for something, in seconds.
        recheck_seconds: how often a wait looks again though nothing was recorded; None where nothing changes
            without a record.
        recorder: takes desired pods and observations.
        now: the seconds since the start of the trace.
        sleep: lets so many seconds pass.
        namespace: the namespace that stands for one here: scenarios that share a node have their own.
        wait_seconds_min: the least that a scenario waits for something before it gives up, in seconds.
        is_disturbed: a fault that the scenario knows nothing of comes at one of its calls.
        patient: nothing is to be overdue while calls fail; the trace says so.
    """

    node_name: str
    wait_seconds_max: float
    recheck_seconds: float | None
    recorder: Recorder
    runtime: RuntimeControl
    api: ApiControl
    manifests: Manifests
    kubelet: KubeletControl
    machine: MachineControl
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    namespace: Callable[[str], str]
    wait_seconds_min: float = 0.0
    is_disturbed: bool = False
    patient: bool = False


def failure_report(error: BaseException) -> str:
    """What went wrong in a line or more, then where it was raised: a traceback."""
    return f"{type(error).__name__}: {error}\n{''.join(traceback.format_exception(error))}"


class ScenarioError(Exception):
    """A scenario did not come to its end; `__cause__` is why.

    Attributes:
        trace: what was seen until then, a complete trace.
        report: its `failure_report`.
    """

    def __init__(self, trace: bytes, report: str) -> None:
        super().__init__(report)
        self.trace = trace
        self.report = report
