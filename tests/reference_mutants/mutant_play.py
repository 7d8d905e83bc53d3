"""Plays what a mutant of the reference is played in, in a process of its own."""

import logging
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from time import process_time
from types import FrameType
from typing import NoReturn

from changed_code import change
from mutant_sample import Mutant
from plays import NoKubeletError, Play, perform_play

from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage

_SECONDS_MAX = 10.0
"""So much of the processor's time has a play; the slowest takes some two seconds."""
_TIMED_OUT_MAX = 2
"""After so many plays without an end there are no more."""


class _TimedOutError(BaseException):
    """A play has taken more of the processor's time than it may."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a mutant.

    Attributes:
        outcome: "caught", "survived", "timed out", or "import" where it cannot even be imported.
        play: the play that broke a contract, if one did.
        broken: the contracts that it broke.
        played: how many there were.
        unmet: a wait that timed out or an error of the suite, which are not counted, with its play.
        seconds: the time of the processor.
    """

    outcome: str
    play: str = ""
    broken: tuple[str, ...] = ()
    played: int = 0
    unmet: str = ""
    seconds: float = 0.0


def play_mutant(mutant: Mutant, plays: Iterable[Play], *, anew: bool) -> Result:
    """Play a mutant in these until one breaks a contract; for a process of its own."""
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
    for number, play in enumerate(plays, start=1):
        try:
            # Again each second: what catches the error once may catch it twice.
            signal.setitimer(signal.ITIMER_PROF, _SECONDS_MAX, 1)
            judged = perform_play(play, stage)
            signal.setitimer(signal.ITIMER_PROF, 0)
        except _TimedOutError:
            signal.setitimer(signal.ITIMER_PROF, 0)
            timed_out += 1
            if timed_out == _TIMED_OUT_MAX:
                return Result("timed out", str(play), played=number, seconds=process_time() - began)
            continue
        except NoKubeletError as error:
            return Result("import", unmet=str(error).partition("\n")[0])
        except Exception as error:  # noqa: BLE001 - the suite itself cannot play it to its end
            signal.setitimer(signal.ITIMER_PROF, 0)
            unmet = unmet or f"{play}: {error!r}"
            continue
        if judged.broken:
            return Result("caught", str(play), judged.broken, number, unmet, process_time() - began)
        if judged.unmet and not unmet:
            unmet = f"{play}: {judged.unmet.partition(chr(10))[0][:200]}"
    outcome = "timed out" if timed_out else "survived"
    return Result(outcome, played=number, unmet=unmet, seconds=process_time() - began)


def _time_out(signum: int, frame: FrameType | None) -> NoReturn:
    """Ends a play."""
    del signum, frame
    raise _TimedOutError
