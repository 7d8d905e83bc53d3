"""Play one scenario and judge its trace."""

import base64
import math
import pickle
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubelet_conformance.contract.checking import Judged, Trace, judge_file
from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.node import Node, scenario_of
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.run_record.system_clock import monotonic_ns
from kubelet_conformance.targets.controls import EndlessPlayError, KubeletEndedError, ScenarioError, Target
from kubelet_conformance.targets.stage import Stage

_PACKAGE = f"{__name__.partition('.')[0]}."


@deferred_gc()
def play(  # noqa: PLR0913, PLR0917 - a scenario, a stage, judges, and where the trace goes
    function: Callable[..., Awaitable[None]],
    name: str,
    stage: Stage,
    contracts: Iterable[Contract],
    path: Path,
    version: str = "",
    arguments: Mapping[str, Any] | None = None,
) -> Played:
    """Play a scenario, write its trace to `path`, and judge it by `contracts`; see `perform`."""
    start = monotonic_ns()
    done = perform(function, name, stage, version, arguments)
    write_trace(path, done.trace)
    judged, wrong = judge(path, contracts, name)
    seconds = (monotonic_ns() - start) / 1e9
    return Played(
        name,
        judged,
        done.unmet,
        wrong or done.failed,
        died=done.died,
        seconds=seconds,
        witnesses=scenario_of(function).witnesses,
        endless=done.endless,
    )


class TraceNotWrittenError(Exception):
    """A trace cannot be written, which ends the run; the message names its file and says why."""


def write_trace(path: Path, trace: bytes) -> None:
    """Write a trace whole or not at all; raises `TraceNotWrittenError`."""
    try:
        path.write_bytes(trace)
    except OSError as error:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise TraceNotWrittenError(f"{path}: cannot be written: {error.strerror or error}") from None


@dataclass(frozen=True, slots=True)
class Performed:
    """What came of a scenario: its trace, the wait that timed out, what went wrong in the suite itself.

    `died` says how the kubelet ended, if it did by itself; `endless` that what is `unmet` is the play's end.
    """

    trace: bytes
    unmet: str = ""
    failed: str = ""
    died: str = ""
    endless: bool = False


def perform(  # noqa: PLR0913, PLR0917 - a scenario, a stage, and how it is played
    function: Callable[..., Awaitable[None]],
    name: str,
    stage: Stage,
    version: str = "",
    arguments: Mapping[str, Any] | None = None,
    wait_seconds_max: float = math.inf,
) -> Performed:
    """Play a scenario and judge nothing.

    `version` is what it is played as, else what it is meant for; `arguments` what it takes beside its node;
    `wait_seconds_max` the longest that it may wait for something, in seconds.
    """

    async def on(target: Target) -> None:
        target.wait_seconds_max = min(target.wait_seconds_max, wait_seconds_max)
        await function(**{**(arguments or {}), "node": Node(target)})

    declared = scenario_of(function)
    try:
        played_as = version or declared.nearest()
        settings, then = dict(declared.settings), declared.then_kubernetes
        return Performed(stage.play(on, name, settings, played_as, declared.exempt, then=then))
    except ScenarioError as error:
        if isinstance(error.__cause__, KubeletEndedError):
            return Performed(error.trace, died=str(error.__cause__))
        is_endless = isinstance(error.__cause__, EndlessPlayError)
        failure = classify_failure(error.__cause__ or error, error.report, function)
        return Performed(error.trace, *failure, endless=is_endless)


def classify_failure(cause: BaseException, report: str, function: Callable[..., object]) -> tuple[str, str]:
    """The wait, assertion or other line that failed with `cause`, or else what is wrong in the suite itself.

    In a scenario of this package only assertions fail: any other exception is a mistake of the suite.
    """
    frames = _reached(cause, function)
    where = f"{Path(frames[0].filename).name}:{frames[0].lineno}: " if frames else ""
    if isinstance(cause, AssertionError):
        return f"{where}{cause or 'an assert failed'}", ""
    is_own = not function.__module__.startswith(_PACKAGE)
    if is_own and frames:
        what = f"{where}{type(cause).__name__}: {cause}"
        return f"{what}\n{''.join(traceback.format_list(frames)).rstrip()}", ""
    return "", f"{where}{report}"


def judge(
    path: Path,
    contracts: Iterable[Contract],
    name: str | None,
    trace: bytes | None = None,
) -> tuple[Judged, str]:
    """Judge a trace, of the scenario of that name if of one; and what went wrong in that, if anything did.

    It is read from `path` unless it is given.
    """
    try:
        return judge_file(str(path), contracts, content=trace), ""
    except Exception as error:  # noqa: BLE001 - the others are played and judged all the same
        failed = f"its trace cannot be judged: {error}\n{''.join(traceback.format_exception(error))}"
        return Judged(Trace(str(path), None, None, None, name, 0), {}, ()), failed


def _reached(error: BaseException, function: Callable[..., object]) -> list[traceback.FrameSummary]:
    """The calls from the last line of the scenario's file that was reached, which is the first, inwards."""
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    frames = traceback.extract_tb(error.__traceback__)
    place = max((number for number, each in enumerate(frames) if each.filename == file), default=None)
    return [] if place is None else frames[place:]


def packed(played: Played) -> str:
    """As text, which crosses from a worker's process to the controller's."""
    return base64.b64encode(pickle.dumps(played)).decode()


def unpacked(text: str) -> Played:
    """What `packed` made."""
    played = pickle.loads(base64.b64decode(text))  # noqa: S301 - made by a worker of this very run
    if not isinstance(played, Played):
        raise TypeError(f"expected what became of a scenario, got {type(played).__name__}")
    return played
