"""What real runtimes are known to do otherwise when scenarios are played on them: a file for each."""

__all__ = ()
