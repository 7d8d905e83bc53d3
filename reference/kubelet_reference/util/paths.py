"""Names that become parts of paths: what pods and runtimes say may not lead out of the kubelet's folders."""

import posixpath


class UnsafeNameError(OSError):
    """A name that would lead out of the folder in which its file belongs."""


def part_of_path(what: str, name: str) -> str:
    """The name of `what`, if it is fit for one part of a path; raises `UnsafeNameError`."""
    if name in {"", ".", ".."} or "/" in name or "\0" in name:
        raise UnsafeNameError(f"{what} {name!r} cannot be the name of a file")
    return name


def is_below(path: str, folder: str) -> bool:
    """Whether the path, as it is written, is below the folder and never leaves it on its way."""
    return ".." not in path.split("/") and posixpath.normpath(path).startswith(
        f"{posixpath.normpath(folder).rstrip('/')}/"
    )
