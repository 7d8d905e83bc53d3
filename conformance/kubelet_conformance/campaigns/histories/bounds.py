"""Bounds a history for wall time: the same things happen, and none of them takes long.

A kubelet in a process of its own runs on the machine's clock. What a history asks for in minutes it asks for
in seconds then, and what such a kubelet cannot be given is replaced by what comes nearest to it.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kubelet_conformance.campaigns.histories.history import History
from kubelet_conformance.campaigns.histories.steps import (
    DelayWatch,
    Delete,
    DeleteMirror,
    DisturbEvents,
    ExpireWatch,
    InjectFault,
    Outage,
    RestartKubelet,
    Step,
    Wait,
    Want,
)

Json = dict[str, Any]
_WAIT_SECONDS_MAX = 12.0
"""More than a first back-off, and than a few probes and relists."""
_WAITS_SECONDS_MAX = 48.0
"""All waits of a history together."""
_DELAY_SECONDS_MAX = 5.0
_DOWN_SECONDS_MAX = 3.0
_GRACE_SECONDS_MAX = 5
_RUN_SECONDS_MAX = 8
"""What a command takes: more than the longest grace period."""
_OF_SPEC = {"terminationGracePeriodSeconds": _GRACE_SECONDS_MAX, "activeDeadlineSeconds": 10}
_OF_PROBE = {"periodSeconds": 3, "initialDelaySeconds": 4}
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_SECONDS = re.compile(r"(?<=@)\d+|(?<=stopdelay=)\d+")
_OF_API = (Outage, DelayWatch, ExpireWatch, DeleteMirror)
"""What happens at the API server alone."""


def bounded(history: History, *, by_files: bool) -> History:
    """The history for a kubelet on wall time; a bounded history stays as it is.

    Pods are `by_files` where the kubelet has no API server: all are static then. The order of ready inputs is
    the kubelet's own. No pod is on the node's network, which is that of this machine. No container event is
    lost or late: that is found out minutes later.
    """
    left = _WAITS_SECONDS_MAX
    steps: list[Step] = []
    for step in history.steps:
        if isinstance(step, DisturbEvents) and step.how != "cut":
            continue
        if by_files and _is_of_api(step):
            continue
        bound = _bounded(step, by_files=by_files)
        if isinstance(bound, Wait):
            bound = Wait(min(bound.seconds, left))
            left -= bound.seconds
        steps.append(bound)
    return replace(history, steps=tuple(steps), orders=(), seed=0)


def _is_of_api(step: Step) -> bool:
    return isinstance(step, _OF_API) or (isinstance(step, InjectFault) and step.fault.is_of_api)


def _bounded(step: Step, *, by_files: bool) -> Step:
    bound: Step = step
    match step:
        case Wait(seconds=seconds):
            bound = Wait(min(seconds, _WAIT_SECONDS_MAX))
        case Want(manifest=manifest):
            bound = Want(_pod(manifest), step.static or by_files)
        case Delete(grace=int(grace)):
            bound = Delete(step.pod, None if by_files else min(grace, _GRACE_SECONDS_MAX))
        case DeleteMirror(grace=int(grace)):
            bound = DeleteMirror(step.pod, min(grace, _GRACE_SECONDS_MAX))
        case InjectFault():
            bound = replace(step, delay=min(step.delay, _DELAY_SECONDS_MAX))
        case DelayWatch(seconds=seconds):
            bound = DelayWatch(min(seconds, _DELAY_SECONDS_MAX))
        case RestartKubelet():
            bound = replace(step, down=min(step.down, _DOWN_SECONDS_MAX))
        case _:
            pass
    return bound


def _pod(manifest: Json) -> Json:
    spec = _at_most(manifest["spec"], _OF_SPEC)
    spec.pop("hostNetwork", None)
    for name in ("initContainers", "containers"):
        if spec.get(name):
            spec[name] = [_container(each) for each in spec[name]]
    return {**manifest, "spec": spec}


def _container(container: Json) -> Json:
    bound: Json = {**container, "command": _command(container["command"])}
    for name in _PROBES:
        if name in bound:
            bound[name] = _handler(_at_most(bound[name], _OF_PROBE))
    if "lifecycle" in bound:
        hooks: dict[str, Json] = bound["lifecycle"]
        bound["lifecycle"] = {when: _handler(hook) for when, hook in hooks.items()}
    return bound


def _handler(given: Json) -> Json:
    """A probe or hook whose command is of bounded length."""
    if "exec" not in given:
        return given
    return {**given, "exec": {**given["exec"], "command": _command(given["exec"]["command"])}}


def _command(words: list[str]) -> list[str]:
    match words:
        case ["exit" | "x" as what, code, seconds]:
            return [what, code, min(seconds, str(_RUN_SECONDS_MAX), key=float)]
        case ["run" | "seq", *_]:
            return [_SECONDS.sub(_run_seconds, each) for each in words]
        case _:
            return words


def _run_seconds(found: re.Match[str]) -> str:
    return str(min(int(found[0]), _RUN_SECONDS_MAX))


def _at_most(fields: Json, bounds: Mapping[str, int]) -> Json:
    return {**fields, **{name: min(fields[name], most) for name, most in bounds.items() if name in fields}}
