"""The report as a page: one HTML file that needs nothing else."""

from kubelet_conformance.reports.html.page import page

__all__ = ("page",)
