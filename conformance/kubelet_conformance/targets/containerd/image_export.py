"""The images that scenarios use, as an archive that any runtime can import."""

from collections.abc import Iterable
from pathlib import Path

from kubelet_conformance.targets.containerd.archive import archive, full_name, image_source
from kubelet_conformance.targets.containerd.host_commands import ToolError
from kubelet_conformance.targets.containerd.private_containerd import IMAGES
from kubelet_conformance.targets.containerd.requirements import BUSYBOX
from kubelet_conformance.trace.format.errors import BadInputError


class ImagesError(BadInputError):
    """The archive cannot be written; the text says why and what to do."""


def write_images(path: Path, names: Iterable[str] = IMAGES) -> list[str]:
    """Write an OCI archive of the images of these names; their full names come back.

    Raises:
        ImagesError: There is no busybox to make them of, or the file cannot be written.
    """
    if not BUSYBOX.exists():
        raise ImagesError(f"{BUSYBOX}: is missing, and the images are made of it: install busybox-static")
    try:
        sources = {full_name(name): image_source(name) for name in names}
        path.write_bytes(archive(sources))
    except ToolError as error:
        raise ImagesError(f"the images cannot be made: {error}") from None
    except OSError as error:
        raise ImagesError(f"{path}: cannot be written: {error.strerror or error}") from None
    return list(sources)
