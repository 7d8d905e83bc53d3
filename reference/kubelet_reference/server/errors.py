"""What ends the command before the kubelet runs."""


class BadInputError(Exception):
    """What was asked for cannot be done; the text says where, what is wrong there, and what to do."""
