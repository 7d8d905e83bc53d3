"""The report as a badge: a small picture, in SVG, of how many contracts are kept."""

from html import escape

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.run_record.record import Record

_COLOURS = {Exit.OK: "#2e7d32", Exit.FAILED: "#c62828"}
_OTHERWISE = "#8a6100"
"""Neither kept nor broken is proved: wrong input, inconclusive, interrupted."""
_CHARS_MAX = 60
_CHAR_PIXELS, _PADDING_PIXELS = 7, 10


def as_badge(record: Record) -> str:
    """The target, and `n of m kept`: of the contracts that were exercised or not judged for an error."""
    run = record.run
    decided = (Verdict.KEPT, Verdict.BROKEN, Verdict.KNOWN_DEVIATION, Verdict.ERROR)
    kept, of = run.totals[Verdict.KEPT], sum(run.totals[each] for each in decided)
    label = safe(run.target.kubelet or run.target.runtime or "traces", _CHARS_MAX)
    words = f"{kept} of {of} kept"
    left, right = (len(text) * _CHAR_PIXELS + 2 * _PADDING_PIXELS for text in (label, words))
    colour = _COLOURS.get(Exit(run.exit_code), _OTHERWISE)
    title = escape(f"{label}: {words}")
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img">
<title>{title}</title>
<rect width="{left}" height="20" fill="#444"/>
<rect x="{left}" width="{right}" height="20" fill="{colour}"/>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{left / 2}" y="14" textLength="{left - 2 * _PADDING_PIXELS}">{escape(label)}</text>
<text x="{left + right / 2}" y="14" textLength="{right - 2 * _PADDING_PIXELS}">{words}</text>
</g>
</svg>
"""
