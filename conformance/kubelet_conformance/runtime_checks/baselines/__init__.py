"""What runtimes are known to do otherwise: a file for each, read through importlib.resources."""

__all__ = ()
