"""Bugs of the runtime manager: sandboxes and containers, their start, restart and end."""
