"""termination."""
