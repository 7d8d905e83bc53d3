"""garbage."""
