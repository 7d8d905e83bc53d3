"""Plays scenarios on a mutant of the reference, in a process of its own."""

import logging
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from types import FrameType
from typing import NoReturn

from changed_code import change
from mutant_sample import Mutant

from kubelet_conformance.contracts import every_contract
from kubelet_conformance.plugin.play import judge, perform
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.targets.stage import Stage

_SECONDS_MAX = 10.0
"""So much of the processor's time has a scenario; the slowest takes some two seconds."""
_TIMED_OUT_MAX = 2
"""After so many scenarios without an end a mutant is not played in more."""


class NoKubeletError(Exception):
    """There is no kubelet to play on: it could not be made of its parts."""


class _TimedOutError(BaseException):
    """A scenario has taken more of the processor's time than it may."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a mutant.

    Attributes:
        outcome: "caught", "survived", "timed out", or "import" where it cannot even be imported.
        scenario: the scenario that broke a contract, if one did.
        broken: the contracts that it broke.
        played: how many scenarios were played.
        unmet: a wait that timed out or an error of the suite, which are not counted, with its scenario.
        seconds: the time of the processor.
    """

    outcome: str
    scenario: str = ""
    broken: tuple[str, ...] = ()
    played: int = 0
    unmet: str = ""
    seconds: float = 0.0


def play(name: str, stage: Stage | None = None, version: str = "") -> Played:
    """Play a scenario, as that version or the one it is meant for, and judge its trace by every contract."""
    try:
        done = perform(every_scenario()[name], name, stage or open_stage(Choice()), version)
    except Exception as error:
        # What goes wrong in a scenario is returned: this went wrong before it began.
        raise NoKubeletError(repr(error)) from error
    if done.failed and b'"op":"started"' not in done.trace:
        raise NoKubeletError(done.failed)
    judged, wrong = judge(Path(name), every_contract().values(), name, done.trace)
    return Played(name, judged, done.unmet, wrong or done.failed, died=done.died)


def play_mutant(mutant: Mutant, scenarios: Iterable[tuple[str, str]], *, anew: bool) -> Result:
    """Play a mutant in these scenarios until one breaks a contract; for a process of its own.

    Each is played as that version, "" is the one it is meant for.
    """
    began = process_time()
    try:
        change(mutant, anew=anew)
        stage = open_stage(Choice())
    except Exception as error:  # noqa: BLE001 - whatever it is, there is no kubelet
        return Result("import", unmet=repr(error))
    signal.signal(signal.SIGPROF, _time_out)
    # A mutant may log where the reference does not; nobody reads that.
    logging.lastResort = None
    timed_out, unmet, number = 0, "", 0
    for number, (name, version) in enumerate(scenarios, start=1):
        try:
            # Again each second: what catches the error once may catch it twice.
            signal.setitimer(signal.ITIMER_PROF, _SECONDS_MAX, 1)
            played = play(name, stage, version)
            signal.setitimer(signal.ITIMER_PROF, 0)
        except _TimedOutError:
            signal.setitimer(signal.ITIMER_PROF, 0)
            timed_out += 1
            if timed_out == _TIMED_OUT_MAX:
                return Result("timed out", name, played=number, seconds=process_time() - began)
            continue
        except NoKubeletError as error:
            return Result("import", unmet=str(error).partition("\n")[0])
        except Exception as error:  # noqa: BLE001 - the suite itself cannot play it to its end
            signal.setitimer(signal.ITIMER_PROF, 0)
            unmet = unmet or f"{name}: {error!r}"
            continue
        if played.broken:
            return Result("caught", name, tuple(played.broken), number, unmet, process_time() - began)
        unmet = unmet or (f"{name}: {wrong[:200]}" if (wrong := _wrong(played)) else "")
    outcome = "timed out" if timed_out else "survived"
    return Result(outcome, played=number, unmet=unmet, seconds=process_time() - began)


def _wrong(played: Played) -> str:
    """The wait that timed out, or what went wrong in the suite itself."""
    return (played.unmet or played.failed).partition("\n")[0]


def _time_out(signum: int, frame: FrameType | None) -> NoReturn:
    """Ends a scenario."""
    del signum, frame
    raise _TimedOutError
