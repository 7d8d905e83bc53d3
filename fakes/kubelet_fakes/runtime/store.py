"""The records of a runtime and every step they can take; what may be asked for is decided elsewhere.

The store has a time of its own, in nanoseconds from 0, which only `advance` moves. All that a record says
follows from these steps, so the lists and statuses always agree.
"""

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.events import Events
from kubelet_fakes.runtime.images import Image
from kubelet_fakes.runtime.logs import Logs
from kubelet_fakes.runtime.records import POD_UID, Container, ContainerKey, Sandbox
from kubelet_fakes.runtime.script import Script
from kubelet_fakes.runtime.settings import RuntimeSettings


class Index:
    """The records by the UID of their pod, so that asking for one pod costs nothing on a full node."""

    def __init__(self) -> None:
        self.sandboxes: dict[str, dict[str, Sandbox]] = {}
        self.containers: dict[str, dict[str, Container]] = {}

    def add_sandbox(self, sandbox: Sandbox) -> None:
        """A sandbox was made."""
        self.sandboxes.setdefault(sandbox.uid_label, {})[sandbox.id] = sandbox

    def add_container(self, container: Container) -> None:
        """A container was made."""
        self.containers.setdefault(container.uid_label, {})[container.id] = container

    def drop_sandbox(self, sandbox: Sandbox) -> None:
        """A sandbox is gone."""
        _drop(self.sandboxes, sandbox.uid_label, sandbox.id)

    def drop_container(self, container: Container) -> None:
        """A container is gone."""
        _drop(self.containers, container.uid_label, container.id)


def _drop(index: dict[str, dict[str, Sandbox]] | dict[str, dict[str, Container]], uid: str, key: str) -> None:
    records = index[uid]
    del records[key]
    if not records:
        del index[uid]


def has_labels(labels: Mapping[str, str], selector: Mapping[str, str]) -> bool:
    """Whether every pair of the selector is there, exactly."""
    return all(labels.get(key) == value for key, value in selector.items())


def sandboxes_that_match(
    asked: cri.PodSandboxFilter, everything: Mapping[str, Sandbox], index: Index
) -> Iterable[Sandbox]:
    """The sandboxes that meet the whole filter, oldest first."""
    found: Iterable[Sandbox] = everything.values()
    if asked.id:
        found = filter(None, [everything.get(asked.id)])
    elif POD_UID in asked.label_selector:
        found = index.sandboxes.get(asked.label_selector[POD_UID], {}).values()
    if asked.HasField("state"):
        found = [one for one in found if one.state == asked.state.state]
    if asked.label_selector:
        found = [one for one in found if has_labels(one.config.labels, asked.label_selector)]
    return found


def containers_that_match(
    asked: cri.ContainerFilter,
    everything: Mapping[str, Container],
    sandboxes: Mapping[str, Sandbox],
    index: Index,
) -> Iterable[Container]:
    """The containers that meet the whole filter, oldest first."""
    found: Iterable[Container] = everything.values()
    if asked.id:
        found = filter(None, [everything.get(asked.id)])
    elif asked.pod_sandbox_id:
        sandbox = sandboxes.get(asked.pod_sandbox_id)
        found = sandbox.containers.values() if sandbox else ()
    elif POD_UID in asked.label_selector:
        found = index.containers.get(asked.label_selector[POD_UID], {}).values()
    if asked.pod_sandbox_id:
        found = [one for one in found if one.sandbox.id == asked.pod_sandbox_id]
    if asked.HasField("state"):
        found = [one for one in found if one.state == asked.state.state]
    if asked.label_selector:
        found = [
            container for container in found if has_labels(container.config.labels, asked.label_selector)
        ]
    return found


_FIRST, _LAST = 2, 0xFFFE


class Addresses:
    """A network of some 65 000 addresses, `network` being the first two parts of each, such as `10.88`.

    While `given` is set every new owner gets that text instead of an address, and nothing if it is empty, as
    from a broken network plugin. Commas part several.
    """

    def __init__(self, network: str, *, dual_stack: bool = False) -> None:
        self._network = network
        self._dual_stack = dual_stack
        self.given: str | None = None
        self._latest = _FIRST - 1
        self._taken: dict[str, int] = {}
        self._numbers: set[int] = set()

    def take(self, owner: str) -> tuple[str, ...]:
        """Addresses for a new owner, IPv4 first; none when all are taken."""
        if self.given is not None:
            return tuple(one for one in self.given.split(",") if one)
        if len(self._numbers) > _LAST - _FIRST:
            return ()
        number = self._latest
        while number == self._latest or number in self._numbers:
            number = number + 1 if number < _LAST else _FIRST
        self._latest = number
        self._numbers.add(number)
        self._taken[owner] = number
        first = f"{self._network}.{number >> 8}.{number & 255}"
        return (first, f"fd00:10:88::{number:x}") if self._dual_stack else (first,)

    def release(self, owner: str) -> None:
        """Give an owner's addresses back; one that has none is fine."""
        number = self._taken.pop(owner, None)
        if number is not None:
            self._numbers.discard(number)


OnRuntime = Callable[[str, str, str, str, int | None], None]
"""Called with what happens in the runtime: op, container id, sandbox id, container name, exit code.

`op` is `exited`, `oom`, `sandbox-died`, `removed`, `unknown`, `restarted` or `rebooted`; what does not apply
is empty or None.
"""

#: The exit code of a process that SIGKILL ended: 128 and the number of the signal (CRI-16).
KILLED = 137


def _nobody(*_: object) -> None:
    """Ignore it."""


class Store:
    """Sandboxes and containers, oldest first, and their time.

    `epoch_ns` is the wall clock at time 0; `generation` grows with each change that a list or a status shows.
    `on_runtime` gets what happens, `on_exit` (for those that wait) each container whose process has ended.
    """

    def __init__(self, settings: RuntimeSettings, *, epoch_ns: int = 0) -> None:
        self.now = 0
        self.epoch_ns = epoch_ns
        self.generation = 0
        self.sandboxes: dict[str, Sandbox] = {}
        self.containers: dict[str, Container] = {}
        self.index = Index()
        self.events = Events()
        self.logs = Logs()
        self.on_runtime: OnRuntime = _nobody
        self.on_exit: Callable[[str], None] = _nobody
        self.sandbox_lists: dict[bytes, cri.ListPodSandboxResponse] = {}
        """The answers given since a sandbox last changed, by filter."""
        self.container_lists: dict[bytes, cri.ListContainersResponse] = {}
        self.container_keys: dict[ContainerKey, Container] = {}
        self.sandbox_keys: dict[tuple[str, str, str, int], Sandbox] = {}
        self.addresses = Addresses(settings.pod_network, dual_stack=settings.dual_stack)
        self._ends: list[tuple[int, int, Container]] = []
        self._latest_stamp = 0
        self._numbers = 0

    # Time.

    @property
    def due(self) -> int | None:
        """When the next process ends by itself or is killed, in the store's time."""
        ends = self._ends
        while ends and not _still_ends(ends[0][2], ends[0][0]):
            heappop(ends)
        return ends[0][0] if ends else None

    def advance(self, now: int) -> None:
        """Let happen, in order, what is due by `now`; time never goes back."""
        ends = self._ends
        while ends and ends[0][0] <= now:
            moment, _, container = heappop(ends)
            if _still_ends(container, moment):
                self.now = max(self.now, moment)
                self._end_as_foreseen(container)
        self.now = max(self.now, now)

    @property
    def wall(self) -> int:
        """The time of day in nanoseconds."""
        return self.epoch_ns + self.now

    def stamp(self) -> int:
        """The time of day in nanoseconds, but no two stamps are equal: later ones are greater (CRI-10)."""
        self._latest_stamp = max(self.wall, self._latest_stamp + 1)
        return self._latest_stamp

    def new_id(self) -> str:
        """An id that is not given twice; its first half is scattered, so a short form distinguishes ids."""
        self._numbers += 1
        return f"{self._numbers * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF:016x}{self._numbers:016x}"

    # Sandboxes.

    def add_sandbox(
        self, config: cri.PodSandboxConfig, runtime_handler: str, *, host_network: bool
    ) -> Sandbox:
        """A new READY sandbox; one in the node's network has no address of its own."""
        sandbox_id = self.new_id()
        ips = () if host_network else self.addresses.take(sandbox_id)
        sandbox = Sandbox(sandbox_id, config, runtime_handler, self.stamp(), ips)
        self.sandboxes[sandbox_id] = sandbox
        self.sandbox_keys[sandbox.key] = sandbox
        self.index.add_sandbox(sandbox)
        self._sandboxes_changed()
        self.events.publish(cri.CONTAINER_CREATED_EVENT, sandbox_id, sandbox, self.stamp())
        self.events.publish(cri.CONTAINER_STARTED_EVENT, sandbox_id, sandbox, self.stamp())
        return sandbox

    def unready(self, sandbox: Sandbox) -> None:
        """The sandbox becomes NOTREADY for ever and gives its address back."""
        sandbox.ready = False
        self.addresses.release(sandbox.id)
        self._sandboxes_changed()
        self.events.publish(cri.CONTAINER_STOPPED_EVENT, sandbox.id, sandbox, self.stamp())

    def drop_sandbox(self, sandbox: Sandbox) -> None:
        """The record of the sandbox goes; its containers must be gone."""
        del self.sandboxes[sandbox.id]
        self.sandbox_keys.pop(sandbox.key, None)
        self.addresses.release(sandbox.id)
        self.index.drop_sandbox(sandbox)
        self._sandboxes_changed()
        self.events.publish(cri.CONTAINER_DELETED_EVENT, sandbox.id, sandbox, self.stamp())

    # Containers.

    def add_container(
        self, sandbox: Sandbox, config: cri.ContainerConfig, image: Image, script: Script
    ) -> Container:
        """A new CREATED container."""
        container = Container(
            self.new_id(), self.stamp(), sandbox=sandbox, config=config, image=image, script=script
        )
        self.containers[container.id] = container
        self.container_keys[container.key] = container
        sandbox.containers[container.id] = container
        self.index.add_container(container)
        self._container_changed(container)
        self._report(cri.CONTAINER_CREATED_EVENT, container)
        return container

    def start(self, container: Container) -> None:
        """CREATED becomes RUNNING; its log file is there from then on. `OSError` if that cannot be made."""
        self.logs.open(container)
        container.state = cri.CONTAINER_RUNNING
        container.started_at = max(self.wall, container.created_at)
        self._container_changed(container)
        self._report(cri.CONTAINER_STARTED_EVENT, container)
        self.logs.say(container, container.started_at)
        script = container.script
        if script.ends_after_ns is not None:
            container.own_end = self.now + script.ends_after_ns, script.code
            self.foresee(container)

    def foresee(self, container: Container) -> None:
        """Let the container end when it will; at once if that is now."""
        end = container.next_end()
        if end is None:
            return
        if end[0] <= self.now:
            self._end_as_foreseen(container)
        else:
            self._numbers += 1
            heappush(self._ends, (end[0], self._numbers, container))

    def _end_as_foreseen(self, container: Container) -> None:
        end = container.next_end()
        if end is not None:
            self.finish(container, end[1])

    def finish(self, container: Container, code: int, *, reason: str = "", op: str = "exited") -> None:
        """Any state becomes EXITED; the reason follows from the code unless it is given."""
        container.state = cri.CONTAINER_EXITED
        container.finished_at = max(self.wall, container.started_at, container.created_at)
        container.exit_code = code
        container.reason = reason or ("Error" if code else "Completed")
        container.own_end = container.kill_at = None
        self._container_changed(container)
        self.logs.write_termination_message(container)
        self.on_runtime(op, container.id, container.sandbox.id, container.name, code)
        self._report(cri.CONTAINER_STOPPED_EVENT, container)
        self.on_exit(container.id)

    def forget_state(self, container: Container) -> None:
        """RUNNING becomes UNKNOWN: the runtime no longer knows what its process does."""
        container.state = cri.CONTAINER_UNKNOWN
        container.own_end = container.kill_at = None
        self._container_changed(container)
        self.on_exit(container.id)

    def drop_container(self, container: Container) -> None:
        """The record of the container goes; it must not run."""
        del self.containers[container.id]
        self.container_keys.pop(container.key, None)
        del container.sandbox.containers[container.id]
        self.index.drop_container(container)
        self._container_changed(container)
        self._report(cri.CONTAINER_DELETED_EVENT, container)
        self.on_exit(container.id)

    def resized(self, container: Container) -> None:
        """What the container's configuration says of its resources has changed."""
        self._container_changed(container)

    # What is reported.

    def _report(self, kind: cri.ContainerEventType.ValueType, container: Container) -> None:
        self.events.publish(kind, container.id, container.sandbox, self.stamp())

    def _container_changed(self, container: Container) -> None:
        self.generation += 1
        container.changed()
        if self.container_lists:
            self.container_lists = {}

    def _sandboxes_changed(self) -> None:
        self.generation += 1
        if self.sandbox_lists:
            self.sandbox_lists = {}


def _still_ends(container: Container, moment: int) -> bool:
    """The container runs, and ends at that moment and no other."""
    end = container.next_end()
    return end is not None and end[0] == moment
