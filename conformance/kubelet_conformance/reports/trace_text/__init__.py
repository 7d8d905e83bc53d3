"""trace_text."""
