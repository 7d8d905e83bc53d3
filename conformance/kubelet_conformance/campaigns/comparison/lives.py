"""What a kubelet did in one scenario, cut out of the trace of its node and put into comparable form.

Nothing is compared with a clock: a life is divided into spans by what the scenario did to each pod, and what
the kubelet did is kept in streams, within which the order means something.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path

from kubelet_conformance.reports.trace_text.steps import MUTATING, Step, steps
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.live.namespaces import Scope, scope_of
from kubelet_conformance.trace.format.header import Header
from kubelet_conformance.trace.format.reader import Reader

Stream = tuple[str, str, str]
"""What names a stream: the pod, its container or the call, and the command or what the call is about."""
_STARTS, _STOPS = "order of starts", "order of stops"
ORDERS = frozenset({_STARTS, _STOPS})
"""The streams that hold an order between containers; the calls themselves are in others."""
_REMOVALS = frozenset({"RemoveContainer", "RemovePodSandbox"})
_SCOPED_FILE = re.compile(r"\bxf kcrun-\d+\.")
"""A scenario on a node of many has files of its own, which its commands look for."""
_FOREIGN = re.compile(r" [\w.-]+/\S+=\S+")
"""A condition of somebody else, whose name has a domain."""
_NUMBER = re.compile(r"-(\d+)")


@dataclass(frozen=True, slots=True)
class PodLife:
    """What a kubelet did for one pod.

    Attributes:
        marks: what the scenario did to the pod, and to the kubelet: at each of them a wait of it has ended.
        streams: its calls, each stream in order.
        statuses: its statuses in order, without times.
        calls: all that it did for its containers and sandboxes, in order.
    """

    marks: list[Step] = field(default_factory=list[Step])
    streams: dict[Stream, list[Step]] = field(default_factory=dict[Stream, list[Step]])
    statuses: list[Step] = field(default_factory=list[Step])
    calls: list[Step] = field(default_factory=list[Step])


@dataclass(frozen=True, slots=True)
class Life:
    """What a kubelet did in one scenario.

    Attributes:
        scenario: its name; the name of the trace where that is of none.
        kubelet: who it was, such as `kubelet 1.36.2`.
        kubernetes: its version as "1.36", "" where that is not known.
        is_virtual: time was simulated.
        is_shared: other scenarios were played on the node too.
        is_served: statuses are as the kubelet itself serves them, before a terminal phase is held back.
        steps: all that was seen, in order; times are those of the node.
        ends: when it ended.
    """

    scenario: str
    kubelet: str
    kubernetes: str
    is_virtual: bool
    is_shared: bool
    is_served: bool
    steps: tuple[Step, ...]
    ends: float

    def pods(self) -> dict[str, PodLife]:
        """What was done for each pod, by its name; "" for the node."""
        found: dict[str, PodLife] = {"": PodLife()}
        kubelet = [] if self.is_shared else self._kubelet_marks()
        place = {id(step): at for at, step in enumerate(self.steps)}
        for step in self.steps:
            if step.what != "runtime" and step.namespace:
                found.setdefault(_pod(step), PodLife())
            if step.what == "pod":
                found[_pod(step)].marks.append(step)
            elif step.what == "status" and not step.detail.endswith("| "):
                found[_pod(step)].statuses.append(replace(step, detail=_FOREIGN.sub("", step.detail)))
            elif step.what in MUTATING and (step.namespace or not self.is_shared):
                life = found[_pod(step) if step.namespace else ""]
                life.calls.append(step)
                _add(life.streams, step)
        for name, life in found.items():
            life.marks[:] = sorted([*life.marks, *kubelet], key=lambda each: place[id(each)])
            life.streams[name, _STARTS, ""] = _starts(life.calls)
            life.streams[name, _STOPS, ""] = _stops(life.calls)
        return found

    def _kubelet_marks(self) -> list[Step]:
        """What was done to the kubelet, but for its first start and its end, which each life has."""
        found = [each for each in self.steps if each.what == "kubelet"][1:]
        if found and found[-1].whom in {"killed", "stopped"} and found[-1] in self.steps[-2:]:
            del found[-1]
        return found


def lives(path: Path, content: bytes | None = None) -> list[Life]:
    """The lives that a trace holds, one of each scenario; raises TraceError where it is none."""
    with Reader(path, None if content is None else BytesIO(content)) as reader:
        header = reader.header
    seen = steps(str(path), content)
    owners = _owners(header, seen)
    known = {name for name in owners.values() if name}
    if not known:
        known = {header.scenario or path.stem}
    made: list[Life] = []
    for name in sorted(known):
        shared = not header.scenario and bool(owners)
        own = [each for each in seen if owners.get(each.namespace, "" if shared else name) == name]
        own = own if shared else seen
        if own:
            ends = own[-1].t
            made.append(
                Life(
                    name,
                    header.kubelet or "a kubelet",
                    header.kubernetes or "",
                    header.clock == "virtual",
                    shared,
                    header.channels.api == "served",
                    tuple(_renamed(own, header.node or "")),
                    ends,
                )
            )
    return made


def _owners(header: Header, seen: Iterable[Step]) -> dict[str, str]:
    """The scenario of each namespace on a node that scenarios share."""
    namespaces = {each.namespace for each in seen if scope_of(each.namespace)}
    if header.scenario or not namespaces:
        return {}
    if header.scenarios:
        return {each: header.scenario_of(each) or "" for each in namespaces}
    return {each: _by_slug(each) for each in namespaces}


def _by_slug(namespace: str) -> str:
    """The scenario that a namespace is named after, in a trace whose header does not say so."""
    number = _NUMBER.search(namespace)
    fitting = [
        name
        for name in every_scenario()
        if number is not None and f"{namespace}-".startswith(f"{Scope(int(number[1]), name).own}-")
    ]
    return fitting[0] if len(fitting) == 1 else ""


def _renamed(seen: Iterable[Step], node: str) -> Iterator[Step]:
    """The steps with the names that pods have in their manifests: a static pod's ends with its node's."""
    suffix = re.compile(rf"-{re.escape(node.lower())}(?=$|[/#])") if node else None
    for step in seen:
        whom = step.whom if suffix is None or step.what == "PullImage" else suffix.sub("", step.whom)
        yield replace(step, whom=whom, detail=_SCOPED_FILE.sub("xf ", step.detail))


def _pod(step: Step) -> str:
    return "" if step.what == "PullImage" else re.split("[/#]", step.whom)[0]


def _add(streams: dict[Stream, list[Step]], step: Step) -> None:
    """Put a call into its stream; what is done again with the same result is done once."""
    pod, whom = _pod(step), step.whom.partition("#")[0]
    if step.what in _REMOVALS:
        name: Stream = (pod, step.what, step.whom)
    elif step.what == "ExecSync" and step.role != "hook":
        name = (pod, step.whom, step.detail.partition(" -> ")[0])
    elif step.what in {"PullImage", "RemoveImage"}:
        name = (pod, step.what, step.whom)
    else:
        name = (pod, whom, "")
    stream = streams.setdefault(name, [])
    if step.what == "ExecSync" and step.role != "hook" and "->" not in step.detail:
        return
    if step.what == "StopPodSandbox" and any(each.line == step.line for each in stream):
        return
    if not (stream and stream[-1].line == step.line):
        stream.append(step)


def _starts(calls: list[Step]) -> list[Step]:
    """The order in which containers are first made in each sandbox, as the manifest has them."""
    starts: list[Step] = []
    begun: set[str] = set()
    for each in calls:
        whom = each.whom.partition("#")[0]
        if each.what == "RunPodSandbox":
            begun.clear()
        elif each.what == "CreateContainer" and each.role != "ephemeral" and whom not in begun:
            begun.add(whom)
            starts.append(replace(each, what="first made:", whom=whom, detail=""))
    return starts


def _stops(calls: list[Step]) -> list[Step]:
    """The order of stops at the end of each sandbox: sidecars in turn, after all others, then the sandbox.

    The stops of app containers, whose order is free, count as one.
    """
    found: list[Step] = []
    since: list[Step] = []
    for each in calls:
        if each.what in {"CreateContainer", "RunPodSandbox"}:
            since = []
        elif each.what == "StopContainer" and each.role in {"app", "sidecar"}:
            if not (since and each.role == since[-1].role == "app"):
                whom = "the app containers" if each.role == "app" else each.whom
                since.append(replace(each, what="stop of", whom=whom, detail=""))
        elif each.what == "StopPodSandbox":
            found += [*since, replace(each, what="stop of", detail="")] if since else []
            since = []
    return found
