"""How a run ends: the exit codes of commands, and which of them a run comes to."""

from enum import IntEnum

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.run_record.model import Ended, Kind, Run


class Exit(IntEnum):
    """The exit codes of the command."""

    OK = 0
    FAILED = 1
    BAD_INPUT = 2
    INCONCLUSIVE = 3
    INTERNAL_ERROR = 4
    INTERRUPTED = 130


_BY_GRAVITY = (
    Exit.INTERRUPTED,
    Exit.INTERNAL_ERROR,
    Exit.BAD_INPUT,
    Exit.FAILED,
    Exit.INCONCLUSIVE,
    Exit.OK,
)


def gravest(*ends: Exit) -> Exit:
    """The one that counts where several things happened."""
    return min(ends, key=_BY_GRAVITY.index)


def concluded(run: Run) -> Exit:
    """How a run ends: the gravest of what happened.

    A kubelet that ends by itself has failed, and so has one in a play that does not end, and a node that does
    not settle after a history or a fault, whatever else was kept.
    """
    has_error = bool(run.having(Verdict.ERROR) or run.failed)
    settles = run.kind in {Kind.HISTORIES, Kind.SWEEP}
    unsettled = any(each.endless or (settles and each.unmet) for each in run.scenarios)
    has_failed = bool(run.stale or run.died or unsettled) or any(map(run.fails, run.contracts))
    is_open = bool(run.waits or run.unexplained) or not any(each.activations for each in run.contracts)
    return gravest(
        Exit.OK if run.ended is Ended.COMPLETE else Exit.INTERRUPTED,
        Exit.INTERNAL_ERROR if has_error else Exit.OK,
        Exit.BAD_INPUT if run.unreadable else Exit.OK,
        Exit.FAILED if has_failed else Exit.OK,
        Exit.INCONCLUSIVE if is_open else Exit.OK,
    )
