"""Bugs of admission and of resize in place."""
