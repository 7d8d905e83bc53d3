"""The report as a page: one HTML file that needs nothing else."""

from kubelet_conformance.reports.html.contracts import BreakView, break_views
from kubelet_conformance.reports.html.page import levels_of, page, render, timeline_pages, verdicts_shown
from kubelet_conformance.reports.html.scenarios import state_of

__all__ = (
    "BreakView",
    "break_views",
    "levels_of",
    "page",
    "render",
    "state_of",
    "timeline_pages",
    "verdicts_shown",
)
