"""The prober on virtual time: when workers probe, what they publish, and what statuses make of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fixed_random import FixedRandom
from lightkube.models.core_v1 import PodStatus
from observation import clock, probed_pod, shown
from on_loop import run_by

from kubelet_fakes.clock import run
from kubelet_reference.api.results import ProbeKind, ProbeOutcome
from kubelet_reference.prober.prober import ProbeTarget
from kubelet_reference.prober.prober_manager import Prober
from kubelet_reference.prober.worker import ProbeTools
from kubelet_reference.util.versions import Behaviour

LIVENESS, READINESS, STARTUP = ProbeKind
SUCCESS, FAILURE, UNKNOWN = ProbeOutcome


class Late(FixedRandom):
    """Jitter is three quarters of what it may be."""

    def jitter(self, seconds: float, factor: float) -> float:
        """Three quarters."""
        return seconds * (1 + 0.75 * factor)


class Bench:
    """A prober with scripted probes and statuses; `began` long ago, by default."""

    def __init__(self, version: str = "1.32", *, began: float = -1000) -> None:
        self.clock = clock()
        self.statuses: dict[str, PodStatus] = {}
        self.outcomes: dict[ProbeKind, list[ProbeOutcome | None]] = {}
        self.seconds = 0.0
        self.runs: list[tuple[float, ProbeKind, str]] = []
        self.prober = Prober(
            ProbeTools(self.run, self.statuses.get, self.clock, Late(), Behaviour.of(version), began)
        )

    async def run(self, target: ProbeTarget) -> ProbeOutcome | None:
        """Probe: take the time set, and give the next outcome, the last one for ever."""
        self.runs.append((self.clock.monotonic(), target.kind, target.container_id))
        outcomes = self.outcomes.get(target.kind, [SUCCESS])
        outcome = outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]
        await self.clock.sleep(self.seconds)
        return outcome

    async def let(self, seconds: float) -> None:
        """Let time pass."""
        await self.clock.sleep(seconds)

    def moments(self, kind: ProbeKind | None = None) -> list[float]:
        """When a probe of this kind ran."""
        return [moment for moment, one, _ in self.runs if kind in {None, one}]

    def updates(self) -> list[tuple[ProbeKind, str, ProbeOutcome]]:
        """The updates that nobody has taken yet."""
        found: list[tuple[ProbeKind, str, ProbeOutcome]] = []
        while not self.prober.updates.empty():
            update = self.prober.updates.get_nowait()
            found.append((update.kind, update.container_id, update.outcome))
        return found


def on_bench(work: Callable[[Bench], Awaitable[None]], **options: Any) -> None:
    """Do this work while the prober runs."""

    async def main() -> None:
        bench = Bench(**options)
        running = asyncio.ensure_future(bench.prober.run())
        await bench.let(0)
        await work(bench)
        assert not running.done()
        running.cancel()
        await asyncio.wait([running])

    run(main())


@run_by(on_bench)
async def test_probes_fall_on_the_grid_of_the_worker(bench: Bench) -> None:
    """The grid begins with the worker: a container's first probe comes with a tick (PROBE-05)."""
    bench.prober.add_pod(probed_pod(liveness={"periodSeconds": 3}))
    await bench.let(1)
    bench.statuses["u"] = shown(started=True)
    await bench.let(9)

    assert bench.moments() == [3, 6, 9]


@run_by(on_bench, began=0)
async def test_a_kubelet_that_has_just_started_spreads_its_probes(bench: Bench) -> None:
    """While its uptime is below the period, the grid begins after a random part of it (PROBE-05)."""
    bench.statuses["u"] = shown(started=True)
    bench.prober.add_pod(probed_pod(liveness={"periodSeconds": 4}))
    await bench.let(8)
    assert bench.moments() == [3, 7]

    bench.runs.clear()
    bench.statuses["v"] = shown("c2", started=True)
    bench.prober.add_pod(probed_pod(uid="v", liveness={"periodSeconds": 8}))
    await bench.let(1)
    assert bench.runs == [(8, LIVENESS, "c2")]


@run_by(on_bench)
async def test_the_delay_counts_from_the_containers_start(bench: Bench) -> None:
    """What the kubelet did meanwhile does not matter, and startedAt is in whole seconds (PROBE-04)."""
    await bench.let(2.5)
    bench.statuses["u"] = shown(started=True)
    bench.prober.add_pod(probed_pod(liveness={"periodSeconds": 1, "initialDelaySeconds": 5}))
    await bench.let(4.2)

    assert bench.moments() == [5.5, 6.5]


@run_by(on_bench)
async def test_a_new_instance_starts_over(bench: Bench) -> None:
    """A failed container is not probed; the next has its initial result and counts anew (PROBE-02, 08)."""
    bench.outcomes[LIVENESS] = [FAILURE]
    bench.statuses["u"] = shown("c1", started=True)
    bench.prober.add_pod(probed_pod(liveness={"periodSeconds": 1, "failureThreshold": 2}))
    await bench.let(9.5)
    assert bench.moments() == [0, 1]
    assert bench.updates() == [(LIVENESS, "c1", SUCCESS), (LIVENESS, "c1", FAILURE)]

    bench.statuses["u"] = shown("c2", started=True)
    await bench.let(1)
    assert bench.runs[2:] == [(10, LIVENESS, "c2")]
    assert bench.updates() == [(LIVENESS, "c2", SUCCESS)]
    assert bench.prober.liveness("c1") is None

    await bench.let(1)
    assert bench.updates() == [(LIVENESS, "c2", FAILURE)]


@run_by(on_bench)
async def test_an_outcome_of_an_old_instance_does_not_count_for_the_new_one(bench: Bench) -> None:
    """A probe that ends after its container was replaced is published for the old id only (PROBE-26)."""
    bench.seconds = 5
    bench.outcomes[LIVENESS] = [FAILURE, SUCCESS]
    bench.statuses["u"] = shown("c1", started=True)
    bench.prober.add_pod(probed_pod(liveness={"periodSeconds": 6, "failureThreshold": 1}))
    await bench.let(1)
    bench.statuses["u"] = shown("c2", started=True)
    await bench.let(6)

    assert bench.prober.liveness("c2") is SUCCESS
    assert bench.updates() == [
        (LIVENESS, "c1", SUCCESS),
        (LIVENESS, "c1", FAILURE),
        (LIVENESS, "c2", SUCCESS),
    ]


@run_by(on_bench)
async def test_no_outcome_changes_nothing(bench: Bench) -> None:
    """A probe that could not be carried out neither counts nor resets the count (PROBE-14)."""
    bench.outcomes[LIVENESS] = [FAILURE, None, FAILURE]
    bench.statuses["u"] = shown(started=True)
    bench.prober.add_pod(probed_pod(liveness={"periodSeconds": 1, "failureThreshold": 2}))
    await bench.let(1.5)
    assert bench.prober.liveness("c1") is SUCCESS

    await bench.let(1)
    assert bench.prober.liveness("c1") is FAILURE


@run_by(on_bench)
async def test_a_stopped_worker_publishes_nothing_more(bench: Bench) -> None:
    """A probe under way goes on, but its outcome is thrown away (PROBE-12)."""
    bench.seconds = 5
    bench.outcomes[LIVENESS] = [FAILURE]
    bench.statuses["u"] = shown(started=True)
    pod = probed_pod(liveness={"periodSeconds": 1, "failureThreshold": 1})
    bench.prober.add_pod(pod)
    await bench.let(1)
    bench.prober.remove_pod(pod)
    await bench.let(10)

    assert bench.moments() == [0]
    assert bench.updates() == [(LIVENESS, "c1", SUCCESS)]


def _flags(bench: Bench, status: PodStatus, **probes: Any) -> tuple[bool | None, bool]:
    """What the prober says of the container: started, ready."""
    found = bench.prober.update_statuses(probed_pod(**probes), status).containerStatuses or []
    return found[0].started, found[0].ready


@run_by(on_bench)
async def test_without_probes_running_is_started_and_ready(bench: Bench) -> None:
    """A container without probes is ready as soon as it runs (PROBE-24)."""
    assert _flags(bench, shown()) == (True, True)
    assert _flags(bench, shown(state="waiting")) == (False, False)
    assert _flags(bench, shown(state="terminated")) == (False, False)


@run_by(on_bench)
async def test_ready_follows_the_readiness_probe(bench: Bench) -> None:
    """Not ready before the first success, and only for the instance that succeeded (PROBE-02, PROBE-26)."""
    bench.outcomes[READINESS] = [FAILURE, SUCCESS]
    bench.statuses["u"] = shown(started=True)
    bench.prober.add_pod(probed_pod(readiness={"periodSeconds": 1, "failureThreshold": 1}))
    await bench.let(0.5)
    assert _flags(bench, shown()) == (True, False)

    await bench.let(0.1)
    assert _flags(bench, shown()) == (True, True)
    assert _flags(bench, shown("c2")) == (True, False)


@pytest.mark.parametrize(("version", "moments"), [("1.26", [0, 1, 3]), ("1.32", [0, 1, 4])])
@run_by(on_bench, takes=("version",))
async def test_a_status_triggers_the_readiness_probe(bench: Bench, moments: list[float]) -> None:
    """Statuses of a started container that is not ready cause one probe, in 1.26 an extra one (PROBE-23)."""
    bench.outcomes[READINESS] = [FAILURE]
    bench.statuses["u"] = shown(started=True)
    bench.prober.add_pod(probed_pod(readiness={"periodSeconds": 3}))
    await bench.let(1)
    _flags(bench, shown())
    _flags(bench, shown())
    await bench.let(3.5)

    assert bench.moments() == moments


@run_by(on_bench)
async def test_no_trigger_for_what_is_ready_or_not_started(bench: Bench) -> None:
    """Neither a ready container nor one that does not run is probed out of turn (PROBE-23)."""
    bench.statuses["u"] = shown(started=True)
    bench.prober.add_pod(probed_pod(readiness={"periodSeconds": 3}))
    await bench.let(1)
    _flags(bench, shown())
    _flags(bench, shown(state="waiting"))
    await bench.let(1)

    assert bench.moments() == [0]


@pytest.mark.parametrize(
    ("version", "flags"),
    [("1.26", [(None, True), (None, False)]), ("1.32", [(False, True), (True, False)])],
)
@run_by(on_bench, takes=("version",))
async def test_init_containers_are_ready_once_they_succeeded(
    bench: Bench, flags: list[tuple[bool | None, bool]]
) -> None:
    """An init container is ready with exit code 0; whether it is started is reported from 1.28 on."""
    ended = shown(state="terminated").containerStatuses or []
    running = shown().containerStatuses or []
    status = PodStatus(initContainerStatuses=[*ended, *running])
    found = bench.prober.update_statuses(probed_pod(), status).initContainerStatuses or []

    assert [(one.started, one.ready) for one in found] == flags
