"""How a mistake of our own is told: what to report, and a traceback only where one is wanted."""

from __future__ import annotations

import traceback

from kubelet_conformance.reports.output import complain
from kubelet_conformance.reports.run import Exit


def tell_internal_error(error: BaseException, *, debug: bool) -> Exit:
    """Tell of it on standard error; the exit code."""
    if debug:
        complain("".join(traceback.format_exception(error)), plain=True)
    notes = "; ".join(getattr(error, "__notes__", ()))
    what = f"{type(error).__name__}: {error}" + (f" ({notes})" if notes else "")
    complain(
        f"internal error, {what}; this is a mistake in kubelet-conformance: "
        "please report it with the trace and with what --debug prints"
    )
    return Exit.INTERNAL_ERROR
