"""The report as a page: one HTML file that needs nothing else."""

from kubelet_conformance.reports.html.page import page, timeline_pages

__all__ = ("page", "timeline_pages")
