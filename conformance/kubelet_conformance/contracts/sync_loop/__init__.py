"""sync_loop."""
