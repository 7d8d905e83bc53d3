"""Any sequence of calls and spontaneous events keeps the runtime's records in order."""

import pytest
from cri_api.v1 import api_pb2 as cri
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kubelet_fakes.runtime import CallError, RuntimeCore
from kubelet_fakes.runtime.spontaneous_events import SpontaneousEvents

S = 1_000_000_000

scripts = st.sampled_from(["run", "run stopdelay=3", "exit 0 2", "exit 1 5 stopdelay=9", "seq 1@1 run"])
#: Which of the records there are, counted round; one too many is an id that is gone or never was.
which = st.integers(0, 7)


class AnyHistory(RuleBasedStateMachine):
    """A runtime to which anything is done; the invariants are those of the catalogue."""

    def __init__(self) -> None:
        super().__init__()
        self.core = RuntimeCore(epoch_ns=1_767_225_600 * S)
        self.spontaneous_events = SpontaneousEvents(self.core)
        self.exits: list[str] = []
        self.core.store.on_runtime = self.hear
        self.ids: list[str] = []
        self.sandbox_ids: list[str] = []
        self.states: dict[str, int] = {}
        self.ready: dict[str, bool] = {}
        self.stopped: set[str] = set()

    def hear(self, op: str, container_id: str, *_: object) -> None:
        """Take note of exits."""
        if op in {"exited", "oom"}:
            self.exits.append(container_id)

    def container(self, number: int) -> str:
        """The id of a container that was once made, or one that never was."""
        return (self.ids or ["unknown"])[number % max(len(self.ids), 1)]

    def sandbox(self, number: int) -> str:
        """The id of a sandbox that was once made, or one that never was."""
        return (self.sandbox_ids or ["unknown"])[number % max(len(self.sandbox_ids), 1)]

    @rule(seconds=st.floats(0, 10))
    def pass_time(self, seconds: float) -> None:
        """Time passes, and all that is due by then happens."""
        self.core.advance(self.core.now + round(seconds * S))
        due = self.core.due

        assert due is None or due > self.core.now

    @rule(pod=st.sampled_from("ab"), attempt=st.integers(0, 2))
    def run_sandbox(self, pod: str, attempt: int) -> None:
        """A sandbox is run, or refused because its twin is there (CRI-04)."""
        metadata = cri.PodSandboxMetadata(name=pod, uid=pod, attempt=attempt)
        labels = {"io.kubernetes.pod.uid": pod}
        config = cri.PodSandboxConfig(metadata=metadata, labels=labels)
        there = {(s.pod_uid, s.config.metadata.attempt) for s in self.core.store.sandboxes.values()}
        try:
            reply = self.core.run_pod_sandbox(cri.RunPodSandboxRequest(config=config))
        except CallError:
            assert (pod, attempt) in there
        else:
            assert (pod, attempt) not in there
            self.sandbox_ids.append(reply.pod_sandbox_id)

    @rule(number=which, name=st.sampled_from(["c1", "c2"]), attempt=st.integers(0, 1), script=scripts)
    def create(self, number: int, name: str, attempt: int, script: str) -> None:
        """A container is created, or refused."""
        sandbox = self.core.store.sandboxes.get(self.sandbox(number))
        config = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name=name, attempt=attempt),
            image=cri.ImageSpec(image="img:1"),
            command=script.split(),
            labels=dict(sandbox.config.labels) if sandbox else {},
        )
        request = cri.CreateContainerRequest(pod_sandbox_id=self.sandbox(number), config=config)
        try:
            self.ids.append(self.core.create_container(request).container_id)
        except CallError:
            taken = sandbox and (name, attempt) in {(c.name, c.attempt) for c in sandbox.containers.values()}
            assert sandbox is None or not sandbox.ready or taken

    @rule(number=which)
    def start(self, number: int) -> None:
        """Only what is CREATED, in a READY sandbox, starts (CRI-12)."""
        container = self.core.store.containers.get(self.container(number))
        could = container is not None and container.state_name == "CREATED" and container.sandbox.ready
        try:
            self.core.start_container(cri.StartContainerRequest(container_id=self.container(number)))
        except CallError:
            assert not could
        else:
            assert could

    @rule(number=which, grace=st.integers(-1, 5))
    def stop(self, number: int, grace: int) -> None:
        """A stop is never refused, and its container has ended when the grace is over (CRI-13)."""
        container_id = self.container(number)
        self.core.stop_container(cri.StopContainerRequest(container_id=container_id, timeout=grace))
        container = self.core.store.containers.get(container_id)
        end = container.next_end() if container and container.is_running else None

        assert container is None or not container.is_running or end is not None
        assert end is None or end[0] <= self.core.now + max(grace, 0) * S

    @rule(number=which)
    def remove(self, number: int) -> None:
        """A removal is never refused (CRI-15)."""
        for _ in range(2):
            self.core.remove_container(cri.RemoveContainerRequest(container_id=self.container(number)))

        assert self.container(number) not in self.core.store.containers

    @rule(number=which)
    def stop_sandbox(self, number: int) -> None:
        """A stop of a sandbox is never refused (CRI-05)."""
        for _ in range(2):
            self.core.stop_pod_sandbox(cri.StopPodSandboxRequest(pod_sandbox_id=self.sandbox(number)))
        self.stopped.add(self.sandbox(number))

    @rule(number=which)
    def remove_sandbox(self, number: int) -> None:
        """A removal of a sandbox is never refused (CRI-06)."""
        for _ in range(2):
            self.core.remove_pod_sandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=self.sandbox(number)))

    @rule(number=which, what=st.sampled_from(["exit", "oom", "lose_track", "remove_container"]))
    def spontaneous_event(self, number: int, what: str) -> None:
        """Something happens to a container by itself."""
        container_id = self.container(number)
        try:
            if what == "exit":
                self.spontaneous_events.exit(container_id, 2)
            else:
                getattr(self.spontaneous_events, what)(container_id)
        except (CallError, ValueError):
            pass

    @rule(number=which, what=st.sampled_from(["kill", "remove", "restart", "lose", "reboot"]))
    def restart_of_the_runtime(self, number: int, what: str) -> None:
        """Something happens to a sandbox, or to the whole node."""
        if what == "kill" and self.sandbox(number) in self.core.store.sandboxes:
            self.spontaneous_events.kill_sandbox(self.sandbox(number))
        elif what == "remove" and self.sandbox(number) in self.core.store.sandboxes:
            self.spontaneous_events.remove_sandbox(self.sandbox(number))
        elif what == "restart":
            self.spontaneous_events.restart()
        elif what == "lose" and number == 0:
            self.spontaneous_events.restart(lose_state=True)
        elif what == "reboot":
            self.spontaneous_events.reboot()

    @invariant()
    def lists_and_statuses_agree(self) -> None:
        """Each list holds exactly the records, once, and says what the statuses say."""
        containers = self.core.list_containers(cri.ListContainersRequest())
        sandboxes = self.core.list_pod_sandbox(cri.ListPodSandboxRequest())

        assert containers is self.core.list_containers(cri.ListContainersRequest())
        assert [each.id for each in containers.containers] == list(self.core.store.containers)
        assert [each.id for each in sandboxes.items] == list(self.core.store.sandboxes)
        for one in containers.containers:
            status = self.core.container_status(cri.ContainerStatusRequest(container_id=one.id)).status
            assert (one.id, one.state, one.created_at) == (status.id, status.state, status.created_at)
            # One that was stopped before it was started is EXITED and was never started.
            assert status.started_at == 0 or status.state != cri.CONTAINER_CREATED
            assert status.started_at > 0 or status.state in {cri.CONTAINER_CREATED, cri.CONTAINER_EXITED}
            assert (status.finished_at > 0) == (status.state == cri.CONTAINER_EXITED)
        for box in sandboxes.items:
            asked = cri.PodSandboxStatusRequest(pod_sandbox_id=box.id)
            reported = self.core.pod_sandbox_status(asked).status
            assert (box.state, box.created_at) == (reported.state, reported.created_at)
            assert bool(reported.network.ip) == (reported.state == cri.SANDBOX_READY)

    @invariant()
    def lists_of_one_pod_are_parts_of_the_whole(self) -> None:
        """What is listed for one pod is what the whole list has of it."""
        for uid in "ab":
            labels = {"io.kubernetes.pod.uid": uid}
            asked = cri.ListContainersRequest(filter=cri.ContainerFilter(label_selector=labels))
            everything = self.core.list_containers(cri.ListContainersRequest()).containers
            mine = [each for each in everything if each.labels["io.kubernetes.pod.uid"] == uid]

            assert list(self.core.list_containers(asked).containers) == mine

    @invariant()
    def states_go_on_only(self) -> None:
        """No container goes back, no sandbox is READY again, and nothing runs where all was stopped."""
        for container in self.core.store.containers.values():
            before = self.states.get(container.id, 0)
            # UNKNOWN (3) comes before EXITED (2): it is left by a stop only.
            order = (0, 1, 3, 2)
            assert order.index(container.state) >= order.index(before)
            self.states[container.id] = container.state
            assert not (container.is_running and container.sandbox.id in self.stopped)
        for sandbox in self.core.store.sandboxes.values():
            assert not sandbox.ready or self.ready.get(sandbox.id, True)
            self.ready[sandbox.id] = sandbox.ready

    @invariant()
    def creation_times_order_records(self) -> None:
        """All records have different times of creation, in the order in which they were made."""
        times = [one.created_at for one in self.core.store.containers.values()]
        boxes = [one.created_at for one in self.core.store.sandboxes.values()]

        assert times == sorted(set(times))
        assert boxes == sorted(set(boxes))

    @invariant()
    def every_end_is_reported_once(self) -> None:
        """Each exit is reported, and reported once."""
        ended = {c.id for c in self.core.store.containers.values() if c.state == cri.CONTAINER_EXITED}

        assert len(self.exits) == len(set(self.exits))
        assert ended <= set(self.exits)


@pytest.mark.slow
def test_any_history_keeps_the_records_in_order() -> None:
    """Whatever is called and whatever happens, in any order, the invariants hold after each step."""
    tried = settings(max_examples=60, stateful_step_count=40, derandomize=True)

    run_state_machine_as_test(AnyHistory, settings=tried)
