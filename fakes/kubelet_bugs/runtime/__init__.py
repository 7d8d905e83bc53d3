"""Container runtimes that are wrong in one named, historical way; `--runtime bug:ID` chooses one."""

from kubelet_bugs.runtime import content, execs, names, recovery, removal, stops

__all__ = ("BUGS",)

BUGS = (*content.BUGS, *execs.BUGS, *names.BUGS, *recovery.BUGS, *removal.BUGS, *stops.BUGS)
