"""What ends the command before the kubelet runs."""

from __future__ import annotations


class BadInputError(Exception):
    """What was asked for cannot be done; the text says where, what is wrong there, and what to do."""
