"""The reference kubelet on runtimes with historical bugs: it copes as far as a kubelet can."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from sampling import sampled

from kubelet_bugs import every_bug
from kubelet_conformance.node import Node, scenario_of
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.controls import ScenarioError, Target
from kubelet_conformance.targets.opening import open_stage

WITHOUT_EXPECTATION = {
    *("CTRD-CRI-75", "CTRD-5438", "K8S-92057"),
    # What it reported wrongly decides nothing, or no kubelet asks for it.
    *("MUT-CRI-18", "MUT-CRI-25", "MUT-CRI-27", "MUT-CRI-28", "MUT-CRI-29", "MUT-CRI-36", "MUT-CRI-37"),
    *("MUT-CRI-39", "MUT-CRI-40"),
}
"""Bugs that a kubelet cannot notice, let alone do anything about."""


@dataclass(frozen=True)
class Call:
    """One call to the runtime, with when it began and was answered."""

    rpc: str
    at: float
    seq: int
    request: Any
    end: float
    answered: int
    code: str
    response: Any


class Seen:
    """A trace, as far as these tests look at it."""

    def __init__(self, trace: bytes) -> None:
        self.records = [json.loads(line) for line in trace.splitlines()[1:]]
        replies = {each["id"]: each for each in self.records if each["kind"] == "reply"}
        full = {key: each.get("response") for key, each in replies.items()}
        self.calls = [
            _call(each, replies[each["id"]], full)
            for each in self.records
            if each["kind"] == "call" and each["id"] in replies
        ]

    def of(self, rpc: str, name: str = "") -> list[Call]:
        """The calls of one rpc, in order; `name` is that of the container or pod that is made."""
        return [each for each in self.calls if each.rpc == rpc and name in {"", _name(each)}]

    def first_seq(self, rpc: str, name: str = "") -> int:
        """The place of the first such call."""
        return self.of(rpc, name)[0].seq

    def statuses(self) -> list[Any]:
        """The statuses that were written."""
        return [each["status"] for each in self.records if each["kind"] == "status"]

    def reasons(self) -> set[str]:
        """Why containers ended, by their statuses."""
        every = [one for status in self.statuses() for one in status.get("containerStatuses") or ()]
        return {one["state"]["terminated"]["reason"] for one in every if "terminated" in one.get("state", {})}

    @property
    def has_deletion(self) -> bool:
        """Whether a pod was deleted for good."""
        return any(each["kind"] == "deleted" for each in self.records)


def _call(begun: Any, reply: Any, full: dict[str, Any]) -> Call:
    response = full.get(reply.get("same", begun["id"]))
    code = reply.get("error", {}).get("code", "")
    request = begun.get("request", {})
    return Call(begun["rpc"], begun["t"], begun["seq"], request, reply["t"], reply["seq"], code, response)


def _name(call: Call) -> str:
    name: str = call.request.get("config", {}).get("metadata", {}).get("name", "")
    return name


@cache
def lived(bug: str, scenario: str) -> Seen:
    """What was seen of the reference on a runtime with a bug, in one scenario, come what may of that."""
    body = every_scenario()[scenario]

    async def on(target: Target) -> None:
        await body(node=Node(target))

    stage = open_stage(Choice(runtime=f"bug:{bug}"))
    try:
        return Seen(stage.play(on, scenario, dict(scenario_of(body).settings), scenario_of(body).nearest()))
    except ScenarioError as error:
        if not isinstance(error.__cause__, AssertionError):
            raise
        return Seen(error.trace)


def gaps(calls: list[Call]) -> list[float]:
    """The seconds from the answer of each call to the begin of the next."""
    return [later.at - earlier.end for earlier, later in pairwise(calls)]


def retries_in_peace(seen: Seen) -> bool:
    """The same attempt is tried again, never in haste."""
    runs = seen.of("RunPodSandbox")
    attempts = {each.request["config"]["metadata"].get("attempt", 0) for each in runs}
    return attempts == {0} and len(runs) > 1 and min(gaps(runs)) >= 10


def lists_before_it_retries(seen: Seen) -> bool:
    """Before a sandbox is run again the runtime is asked what there is."""
    runs, lists = seen.of("RunPodSandbox"), seen.of("ListPodSandbox")
    pairs = list(pairwise(runs))
    return bool(pairs) and all(
        any(one.answered < each.seq < other.seq for each in lists) for one, other in pairs
    )


def stops_before_it_creates(seen: Seen) -> bool:
    """The lost container is stopped before another takes its place."""
    again = [each for each in seen.of("CreateContainer") if each.request["config"]["metadata"].get("attempt")]
    return seen.of("StopContainer")[0].answered < again[0].seq


def asks_again_with_less(seen: Seen) -> bool:
    """A second stop, with less time, is sent although the first is under way."""
    stops = [each for each in seen.records if each["kind"] == "call" and each["rpc"] == "StopContainer"]
    return [int(each["request"]["timeout"]) for each in stops][:2] == [300, 2]


def leaves_the_app_alone(seen: Seen) -> bool:
    """The app is not killed, and no init container runs again."""
    return not seen.of("StopContainer") and len(seen.of("CreateContainer", "i1")) == 1


def touches_nothing_blindly(seen: Seen) -> bool:
    """While lists fail nothing is created, stopped or removed that was not under way."""
    failing = [each for each in seen.of("ListContainers") if each.code]
    window = range(failing[0].seq, failing[-1].seq)
    changes = ("CreateContainer", "RunPodSandbox", "StopPodSandbox", "RemoveContainer", "RemovePodSandbox")
    return bool(failing) and not any(each.seq in window for rpc in changes for each in seen.of(rpc))


def never_uses_a_stopped_sandbox(seen: Seen) -> bool:
    """No container is made in a sandbox that was stopped before."""
    stopped = {each.request["pod_sandbox_id"]: each.seq for each in reversed(seen.of("StopPodSandbox"))}
    return bool(stopped) and not any(
        stopped.get(each.request["pod_sandbox_id"], each.seq) < each.seq
        for each in seen.of("CreateContainer")
    )


def runs_each_container_once(seen: Seen) -> bool:
    """No two instances of a container run at one time."""
    lists: list[Any] = [
        each.response or {} for each in seen.of("ListContainers") if not each.request.get("filter")
    ]
    for answer in lists:
        running = [
            (one["metadata"]["name"], one["pod_sandbox_id"])
            for one in answer.get("containers", ())
            if one.get("state") == "CONTAINER_RUNNING"
        ]
        if len(running) != len(set(running)):
            return False
    return bool(lists)


def waits_for_the_runtime(seen: Seen) -> bool:
    """On a runtime that does not say what it has to, nothing is run, and it is asked again."""
    return not seen.of("RunPodSandbox") and len(seen.of("Version") + seen.of("Status")) > 2


def restarts_nothing(seen: Seen) -> bool:
    """What has gone with its end is taken for ended, and not run again."""
    return len(seen.of("CreateContainer")) == 3 and seen.statuses()[-1]["phase"] == "Failed"


def pulls_nothing_unseen(seen: Seen) -> bool:
    """An image that cannot be inspected is inspected again, and not pulled."""
    return len(seen.of("ImageStatus")) > 2 and not seen.of("PullImage")


def leaves_alone_what_it_cannot_read(seen: Seen) -> bool:
    """Containers whose statuses are no statuses are neither made again nor stopped."""
    return len(seen.of("CreateContainer")) == 2 and not seen.of("StopContainer")


def makes_one_of_two_sandboxes(seen: Seen) -> bool:
    """Where two sandboxes are READY both are stopped for a third, and no container runs twice."""
    return len(seen.of("RunPodSandbox")) == 3 and runs_each_container_once(seen)


def lives_and_goes(seen: Seen) -> bool:
    """The pod lives as it should, and is deleted in the end."""
    return runs_each_container_once(seen) and seen.has_deletion


EXPECTATIONS: dict[str, tuple[str, Callable[[Seen], bool]]] = {
    "CTRD-4604": ("late_sandbox_is_made_all_the_same", retries_in_peace),
    "CRIO-2984": ("late_sandbox_is_made_all_the_same", lists_before_it_retries),
    "CTRD-7843": ("addresses_outlast_the_runtime", lambda seen: len(seen.of("RunPodSandbox")) == 2),
    "CRIO-1328": (
        "runtime.records_are_what_was_asked_for",
        lambda seen: min(gaps(seen.of("RunPodSandbox", "host"))) > 0.5,
    ),
    "CRIO-8030": ("second_stop_shortens_the_first", asks_again_with_less),
    "CTRD-4655": ("unknown_container_is_stopped_for_good", stops_before_it_creates),
    "CRIO-1419": ("runtime.stopping_stops", lambda seen: seen.has_deletion),
    "CTRD-255": (
        "ended_stays_ended_over_a_restart",
        lambda seen: not seen.of("StopContainer") and runs_each_container_once(seen),
    ),
    "CRIO-7004": ("ended_stays_ended_over_a_restart", leaves_the_app_alone),
    "CRIO-3041": ("lost_ends_are_no_success", lambda seen: seen.statuses()[-1]["phase"] == "Succeeded"),
    "CRIO-6580": (
        "runtime.the_dead_are_kept_with_their_ends",
        lambda seen: seen.reasons() == {"Error", "Completed", "OOMKilled"},
    ),
    "DOCK-35344": (
        "failed_start_is_an_end",
        lambda seen: len(seen.of("CreateContainer")) > 1,
    ),
    "CRIO-390": ("one_broken_record_spoils_no_list", touches_nothing_blindly),
    "DOCK-55028": ("runtime.removed_is_gone", lambda seen: seen.has_deletion),
    "CRIO-240": ("stopping_what_has_just_gone", lambda seen: seen.has_deletion),
    "K8S-110181": (
        "stopping_what_has_just_gone",
        lambda seen: sum(bool(each.code) for each in seen.of("PodSandboxStatus")) < 5,
    ),
    "PELAGOS-339": (
        "late_probe_leaves_its_container_alone",
        lambda seen: any(each["kind"] == "event" and each["reason"] == "Unhealthy" for each in seen.records),
    ),
    "CTRD-13599": ("sandbox_dies_before_its_container_is_made", never_uses_a_stopped_sandbox),
    "K8S-83068": ("sandbox_takes_its_containers_along", lambda seen: seen.has_deletion),
    "MUT-CRI-01": ("runtime.records_are_what_was_asked_for", waits_for_the_runtime),
    "MUT-CRI-02": ("runtime.records_are_what_was_asked_for", waits_for_the_runtime),
    "MUT-CRI-03": (
        "runtime.records_are_what_was_asked_for",
        lambda seen: len(seen.of("RunPodSandbox", "web")) == 1 and runs_each_container_once(seen),
    ),
    "MUT-CRI-04": ("runtime.work_goes_on_without_its_caller", runs_each_container_once),
    "MUT-CRI-08": ("runtime.stop_of_what_is_gone", lambda seen: seen.has_deletion),
    "MUT-CRI-17": ("runtime.the_dead_are_kept_with_their_ends", restarts_nothing),
    "MUT-CRI-20": ("dead_sandboxes_stay_dead_over_a_restart", makes_one_of_two_sandboxes),
    "MUT-CRI-23": ("runtime.pulled_image_is_known", pulls_nothing_unseen),
    "MUT-CRI-24": (
        "runtime.pulled_image_is_known",
        lambda seen: [bool(each.code) for each in seen.of("CreateContainer")] == [True, False],
    ),
    "MUT-CRI-30": ("pleg_evented.events_drive_the_workers", lives_and_goes),
    "MUT-CRI-33": (
        "runtime.pods_do_not_wait_for_each_other",
        lambda seen: max(gaps(seen.of("ListPodSandbox"))) < 2,
    ),
    "MUT-CRI-34": ("runtime.records_are_what_was_asked_for", leaves_alone_what_it_cannot_read),
    "MUT-CRI-35": ("sandbox.handler_that_the_runtime_lacks", runs_each_container_once),
    "MUT-CRI-16-B": ("runtime.the_dead_are_kept_with_their_ends", restarts_nothing),
    "MUT-CRI-30-B": ("pleg_evented.events_drive_the_workers", runs_each_container_once),
    "MUT-CRI-43": (
        "runtime.stopping_stops",
        lambda seen: runs_each_container_once(seen) and not seen.has_deletion,
    ),
    "CTRD-11312": ("pleg_evented.events_drive_the_workers", lives_and_goes),
    "K8S-83050": ("creation_times_order_attempts", runs_each_container_once),
}


@pytest.mark.parametrize("bug", sampled(EXPECTATIONS, 3))
def test_reference_copes(bug: str) -> None:
    """On this runtime the kubelet does what a kubelet can."""
    scenario, copes = EXPECTATIONS[bug]
    name = scenario if "." in scenario else f"runtime_bugs.{scenario}"

    assert copes(lived(bug, name))


def test_every_bug_of_runtimes_has_its_expectation() -> None:
    """Each is survived, or it is said that nothing is expected."""
    ids = {bug.id for bug in every_bug().values() if bug.is_of_runtimes}

    assert ids == EXPECTATIONS.keys() | WITHOUT_EXPECTATION
