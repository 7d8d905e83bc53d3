"""in_process."""
