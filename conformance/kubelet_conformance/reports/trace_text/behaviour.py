"""The behaviour that a trace shows, as text for a person to read and review.

A scene begins with what happened to the kubelet, or with a pause; then come its calls, its events and what
it wrote. Times are the pauses, in round numbers; what repeats is counted where it began.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from kubelet_conformance.reports.trace_text.steps import STIMULI, Step, steps

_PAUSE_SECONDS = 2.0
_FINE_UNTIL_SECONDS = 60.0
_REPEATING = frozenset({"ExecSync", "event"})
"""What a kubelet does again and again as long as nothing changes."""
_BEGUN_TOGETHER = "CreateContainer", "StartContainer"


@dataclass(slots=True)
class _Line:
    """A line, and how often it is true."""

    step: Step
    times: int = 1

    @property
    def text(self) -> str:
        return self.step.line + self.count

    @property
    def count(self) -> str:
        return f" (x{self.times})" if self.times > 1 else ""


@dataclass(slots=True)
class _Scene:
    """What belongs together: what happened, and what the kubelet made of it."""

    pause: int = 0
    happened: list[_Line] = field(default_factory=list[_Line])
    calls: list[_Line] = field(default_factory=list[_Line])
    events: list[_Line] = field(default_factory=list[_Line])
    written: list[_Line] = field(default_factory=list[_Line])

    @property
    def has_answer(self) -> bool:
        """The kubelet did something in it."""
        return bool(self.calls or self.events or self.written)

    def add(self, line: _Line) -> None:
        """Put a line where it belongs; a deletion before what it led to, though it is answered after that."""
        lane, step = self._lane(line.step), line.step
        caused = step.what == "api" and lane and lane[-1].step.what == "deleted" and lane[-1].step.t == step.t
        lane.insert(len(lane) - 1 if caused else len(lane), line)

    def _lane(self, step: Step) -> list[_Line]:
        if step.what == "event":
            return self.events
        if step.what in {"api", "awaited", "deleted", "status"}:
            return self.written
        if step.what == "end" or (step.what in STIMULI and not self.calls):
            return self.happened
        return self.calls


def behaviour(path: str) -> str:
    """The whole behaviour as text, in scenes; raises TraceError where the file is no trace."""
    return in_scenes(steps(path))


def in_scenes(every: list[Step]) -> str:
    """The behaviour in these steps as text; the last of them is the end."""
    if every[-2:-1] and every[-2].what == "kubelet" and every[-2].t == every[-1].t:
        del every[-2]  # A node that ends takes its kubelet with it.
    return "\n\n".join("\n".join(_scene_lines(scene)) for scene in _scenes(every)) + "\n"


def _scenes(every: Iterable[Step]) -> Iterator[_Scene]:
    scene = _Scene()
    latest: dict[tuple[str, str, str], _Line] = {}
    stopping: dict[str, None] = {}
    conditions: dict[str, list[str]] = {}
    before = 0.0
    for step in every:
        again = _again(latest, step)
        if again is not None:
            again.times += 1
            continue
        pause, begins = _folded(step.t - before), _begins(step, stopping)
        before = step.t
        if pause or step.what == "end" or (begins and scene.has_answer):
            if scene.happened or scene.has_answer:
                yield scene
            scene = _Scene(pause)
        line = _Line(_short(step, conditions) if step.what == "status" else step)
        scene.add(line)
        if step.what in _REPEATING:
            latest[_kind(step)] = line
    yield scene


def _begins(step: Step, stopping: dict[str, None]) -> bool:
    """Whether it begins a scene: the end of a container that the kubelet is stopping is part of the stop."""
    if step.what == "StopContainer":
        stopping[step.whom] = None
    elif step.what == "StopPodSandbox":
        stopping[step.whom.partition("#")[0]] = None
    elif step.what == "RunPodSandbox":
        stopping.pop(step.whom.partition("#")[0], None)
    if step.what == "runtime":
        return not (step.whom in stopping or step.whom.partition("/")[0] in stopping)
    return step.what in STIMULI


def _kind(step: Step) -> tuple[str, str, str]:
    """What a repeating step is an instance of: a command in a container, or events about an object."""
    if step.what == "ExecSync":
        return step.what, step.whom, step.detail.partition(" -> ")[0]
    return step.what, step.whom, ""


def _again(latest: dict[tuple[str, str, str], _Line], step: Step) -> _Line | None:
    """The line that said the same, if nothing else was said of the same kind since."""
    if step.what not in _REPEATING:
        return None
    line = latest.get(_kind(step))
    return line if line is not None and line.step.detail == step.detail else None


def _short(step: Step, known: dict[str, list[str]]) -> Step:
    """A status with the news of its conditions: `+` what became true, `-` what is not, the reason behind."""
    text, _, conditions = step.detail.partition(" | ")
    first, before, now = step.whom not in known, known.get(step.whom, []), conditions.split()
    known[step.whom] = now
    by_reason: dict[str, list[str]] = {}
    for each in now:
        name, _, value = each.partition("=")
        value, _, reason = value.partition(":")
        if each not in before and not (first and value != "True"):
            by_reason.setdefault(reason, []).append(("+" if value == "True" else "-") + name)
    news = [" ".join(names) + (f" ({reason})" if reason else "") for reason, names in by_reason.items()]
    return replace(step, detail="; ".join([text, *news]))


def _folded(seconds: float) -> int:
    """A pause in round seconds: 0 under two, by fives up to a minute, by thirties above."""
    if seconds < _PAUSE_SECONDS:
        return 0
    grain = 5 if seconds < _FINE_UNTIL_SECONDS else 30
    return max(grain * round(seconds / grain), 2)


def _scene_lines(scene: _Scene) -> Iterator[str]:
    if scene.pause:
        yield f"about {scene.pause} s later"
    for line in scene.happened:
        yield line.text
    for text in _call_lines(scene.calls):
        yield f"  {text}"
    for text in _event_lines(scene.events):
        yield f"  {text}"
    for line in scene.written:
        yield f"  {line.text}"


def _call_lines(calls: list[_Line]) -> Iterator[str]:
    """A line a call; creating a container and starting it at once is one."""
    rest = iter(zip_longest(calls, calls[1:]))
    for line, following in rest:
        if following is not None and _is_begun(line.step, following.step):
            next(rest)
            yield " ".join(filter(None, (", ".join(_BEGUN_TOGETHER), line.step.whom, following.step.detail)))
        else:
            yield line.text


def _is_begun(made: Step, started: Step) -> bool:
    """Whether both together begin a container, the first without an error."""
    return (made.what, started.what) == _BEGUN_TOGETHER and made.whom == started.whom and not made.detail


def _event_lines(events: list[_Line]) -> Iterator[str]:
    """A line an object, in the order of their names, with all its events in order."""
    of: dict[str, list[str]] = {}
    for line in events:
        of.setdefault(line.step.whom, []).append(line.step.detail + line.count)
    for whom, reasons in sorted(of.items()):
        yield f"events {whom}: {', '.join(reasons)}"
