"""Container runtimes that are wrong in one named, historical way; `--runtime bug:ID` chooses one."""

from kubelet_bugs.runtime import (
    accepting,
    content,
    execs,
    images,
    names,
    node,
    records,
    recovery,
    removal,
    stops,
    telling,
)

__all__ = ("BUGS",)

BUGS = (
    *accepting.BUGS,
    *content.BUGS,
    *execs.BUGS,
    *images.BUGS,
    *names.BUGS,
    *node.BUGS,
    *records.BUGS,
    *recovery.BUGS,
    *removal.BUGS,
    *stops.BUGS,
    *telling.BUGS,
)
