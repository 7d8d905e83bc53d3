"""The zoo: kubelets that are wrong in one named, historical way. A suite that misses one is not finished."""

import pkgutil
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from kubelet_bugs.bug import Bug
from kubelet_bugs.bug import registered_bugs as _registered_bugs

__all__ = ("Bug", "every_bug", "find_bug")


@cache
def every_bug() -> dict[str, Bug]:
    """All bugs by id, in the order of their ids; each module of this package registers some.

    Other packages bring theirs by entry points of the group `kubelet_conformance.bugs`.
    """
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        import_module(module.name)
    for each in entry_points(group="kubelet_conformance.bugs"):
        each.load()
    return dict(sorted(_registered_bugs().items(), key=lambda each: _order(each[0])))


def find_bug(name: str) -> Bug:
    """The bug of that id or alias; raises `LookupError`, which names those that resemble it."""
    bugs = every_bug()
    if name in bugs:
        return bugs[name]
    for bug in bugs.values():
        if name in bug.aliases:
            return bug
    near = get_close_matches(name, [*bugs, *(alias for bug in bugs.values() for alias in bug.aliases)])
    hint = f"did you mean {' or '.join(near)}?" if near else "`kubelet-conformance zoo --list` names them all"
    raise LookupError(f"no bug is named {name!r}: {hint}")


def _order(name: str) -> tuple[str, int, str]:
    project, _, number = name.rpartition("-")
    return project, int(number) if number.isdecimal() else 0, number
