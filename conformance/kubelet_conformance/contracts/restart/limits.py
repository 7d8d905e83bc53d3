"""BACKOFF, RESTART and LOOP: configured restart delays, foreign log files, and the health of the loop."""

import re
from collections.abc import Iterator
from typing import Any

from kubelet_conformance.contract import Finding, Moment, Pattern, Pod
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, ByVersion, is_on, since
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract, kept_if
from kubelet_conformance.contract.patterns import call, status
from kubelet_conformance.contracts.facts.container import asked, has_records
from kubelet_conformance.contracts.facts.disk import is_log, log_names
from kubelet_conformance.contracts.facts.timing import seconds_of
from kubelet_conformance.trace.format.records import Metrics
from kubelet_conformance.trace.world.kubelet_view import kubelet_view

_PERIOD_GATE, _REDUCED_GATE = "KubeletCrashLoopBackOffMax", "ReduceDefaultCrashLoopBackOffDecay"
_USUAL, _REDUCED = (10.0, 300.0), (1.0, 60.0)
_DELAY = re.compile(r"back-off ((?:\d+h)?(?:\d+m)?(?:[\d.]+s)?) restarting failed container")
_HEALTH = "healthz/syncloop"
_SILENT_MOST, _SLACK = 300.0, 10.0
"""The longest the loop may stand still; Status is asked every 5 s, and the loop checks again within 5 s."""


def _curve(m: Moment) -> tuple[float, float] | None:
    """The first and the longest delay; None where they are the usual ones, or not known."""
    gates, configured = m.header.feature_gates, m.header.configuration
    is_reduced, takes_period = (is_on(gate, gates, m.kubernetes) for gate in (_REDUCED_GATE, _PERIOD_GATE))
    base, cap = _REDUCED if is_reduced else _USUAL
    if takes_period:
        if configured is None:
            return None
        limits: dict[str, Any] = configured.get("crashLoopBackOff") or {}
        period = limits.get("maxContainerRestartPeriod")
        cap = seconds_of(period) if period else _USUAL[1]
    return (min(base, cap), cap) if is_reduced or takes_period else None


@contract("BACKOFF-11", on=status(), needs=(CRI, STATUS), versions=since("1.32"))
def configured_delays_are_kept(m: Moment) -> Findings:
    """The longest delay of restarts is what the node is configured with, and the first is 10 s or that, if it
    is less; with the reduced series they go from 1 s to 60 s, or to the former where it may be configured.
    """
    every = m.status.every_container if m.status is not None else ()
    waiting = [(one.name, one.state.waiting.message) for one in every if one.state.waiting is not None]
    reported = [(name, found[1]) for name, text in waiting if (found := _DELAY.match(text))]
    curve = _curve(m) if reported else None
    return _judged(reported, *curve) if curve is not None else None


def _judged(reported: list[tuple[str, str]], base: float, cap: float) -> Iterator[Finding]:
    """The delays of containers, by name, are of the series that begins and ends with these."""
    right = {min(cap, base * 2.0**power) for power in range(12)}
    for name, text in reported:
        delay = seconds_of(text)
        yield KEPT if delay in right else broken(f"{name} is held up {delay:g} s, expected {cap:g} at most")


_LOG, _LOOSE = re.compile(r"(\d+)\.log(?:\..*)?"), re.compile(r"(\d+).log")
_ANCHORED = ByVersion({"1.23..1.26": False, ">=1.27": True})


@contract("RESTART-15", on=call("CreateContainer"), needs=(CRI, PODS), versions=_ANCHORED)
def foreign_files_do_not_count(m: Moment, pod: Pod) -> Findings:
    """Of the files among a container's logs only those named <number>.log give its number; up to 1.26 any
    name with digits, a character and "log" in it did.
    """
    config = asked(m)
    if not pod.born or has_records(pod, config.metadata.name):
        return None
    newest = pod.newest(config.metadata.name)
    if newest is not None and not newest.vanished:
        return None
    names = log_names(m, pod, config.metadata.name)
    foreign = [one for one in names if not is_log(one)]
    if not foreign:
        return None
    expected = _number(names, anchored=_ANCHORED.at(m.kubernetes))
    got = config.metadata.attempt
    return kept_if(
        got == expected, f"{config.metadata.name} is number {got} beside {foreign[0]}, expected {expected}"
    )


def _number(names: list[str], *, anchored: bool) -> int:
    found = [_LOG.fullmatch(one) if anchored else _LOOSE.search(one) for one in names]
    return max((int(one[1]) + 1 for one in found if one is not None), default=0)


@contract("LOOP-19", on=Pattern(frozenset({"metrics"})), needs=(CRI,))
def silent_loop_is_not_healthy(m: Moment) -> Findings:
    """The loop is reported unhealthy when it has stood still for more than 5 minutes, and healthy before."""
    if not isinstance(m.record, Metrics) or _HEALTH not in m.record.values or m.node.started_t is None:
        return None
    healthy, view = bool(m.record.values[_HEALTH]), kubelet_view(m)
    # A loop that has not begun in this kubelet's life does not stand still (kubelet.go LatestLoopEntryTime).
    down = view.down_since(m.t) if view.good_t is not None else None
    silent = 0.0 if down is None else m.t - down
    if silent > _SILENT_MOST + _SLACK:
        return broken(f"the loop stands still for {silent:g} s, and is reported healthy") if healthy else KEPT
    if silent < _SILENT_MOST - _SLACK:
        return KEPT if healthy else broken(f"the loop is reported unhealthy after {silent:g} s")
    return None
