"""Generated histories: drawn by Hypothesis, played on virtual time, judged by all contracts."""
