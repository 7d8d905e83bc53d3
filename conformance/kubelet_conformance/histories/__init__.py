"""Histories that nobody wrote: drawn by Hypothesis, played on virtual time, judged by all contracts."""
