"""The images on the node and in the registry, and the calls of the ImageService about them.

An image's id is `sha256:` and the digest of its name, or the digest a reference names, so it is the same in
every run. The registry has every image unless a test says otherwise.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.errors import CallError


@dataclass(frozen=True, slots=True)
class Image:
    """An image on the node; `user` is a user name or a number, as the image sets it."""

    id: str
    tags: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    size: int = 1_000_000
    user: str = ""
    pinned: bool = False
    _message: list[cri.Image] = field(default_factory=list[cri.Image], repr=False, compare=False)

    @property
    def ref(self) -> str:
        """The reference by digest, which a container's status has as image_ref (CRI-39)."""
        return self.digests[0] if self.digests else self.id

    def message(self) -> cri.Image:
        """The image as the API reports it; size and id are never empty."""
        if not self._message:
            uid = cri.Int64Value(value=int(self.user)) if self.user.isdigit() else None
            self._message.append(
                cri.Image(
                    id=self.id,
                    repo_tags=self.tags,
                    repo_digests=self.digests,
                    size=self.size,
                    uid=uid,
                    username="" if uid else self.user,
                    pinned=self.pinned,
                )
            )
        return self._message[0]


def full_name(name: str) -> str:
    """A reference with the tag that goes without saying."""
    last = name.rpartition("/")[2]
    return name if ":" in last or "@" in last or name.startswith("sha256:") else f"{name}:latest"


@lru_cache(maxsize=4096)
def image_id(name: str) -> str:
    """The id of the image of that name, in this world."""
    _, at, digest = name.partition("@")
    return digest if at else "sha256:" + hashlib.sha256(full_name(name).encode()).hexdigest()


class Images:
    """What is on the node (by id), and what the registry does."""

    def __init__(self, present: Iterable[str] = ()) -> None:
        self.by_id: dict[str, Image] = {}
        self._ids: dict[str, str] = {}
        """The id by each name, tag or digest, and by the id itself with and without its scheme."""
        self._unpublished: set[str] = set()
        self._passwords: dict[str, tuple[str, str]] = {}
        self.registry_up = True
        self._replies: dict[str, cri.ImageStatusResponse] = {}
        for name in present:
            self.add(name)

    # What a test sets up.

    def add(self, name: str, *, image: str = "", user: str = "", size: int = 1_000_000) -> Image:
        """Put an image onto the node, or one more name to the image with the id `image`."""
        name = full_name(name)
        key = image or image_id(name)
        known = self.by_id.get(key) or Image(key, size=size)
        repository = name.partition("@")[0].rpartition(":")[0] if "@" not in name else name.partition("@")[0]
        tags = known.tags if "@" in name or name in known.tags else (*known.tags, name)
        digest = f"{repository}@{key}"
        digests = known.digests if digest in known.digests else (*known.digests, digest)
        made = replace(known, tags=tags, digests=digests, user=user or known.user, _message=[])
        self._forget_name(name)
        self.by_id[key] = made
        for each in (*tags, *digests, key, key.removeprefix("sha256:")):
            self._ids[each] = key
        self._replies.clear()
        return made

    def publish(self, name: str, *, there: bool = True) -> None:
        """Whether the registry has the image."""
        (self._unpublished.discard if there else self._unpublished.add)(full_name(name))

    def protect(self, name: str, username: str, password: str) -> None:
        """Let the registry give the image only to this user."""
        self._passwords[full_name(name)] = username, password

    def _forget_name(self, name: str) -> None:
        """Take the tag from the image that had it: a tag names one image."""
        owner = self.by_id.get(self._ids.get(name, ""))
        if owner is not None and name in owner.tags:
            tags = tuple(tag for tag in owner.tags if tag != name)
            self.by_id[owner.id] = replace(owner, tags=tags, _message=[])

    # What the kubelet asks.

    def find(self, name: str) -> Image | None:
        """The image by name, by digest or by id, if the node has it."""
        return self.by_id.get(self._ids.get(name) or self._ids.get(full_name(name), ""))

    def list_images(self, request: cri.ListImagesRequest) -> cri.ListImagesResponse:
        """Everything, or the one image that the filter names."""
        name = request.filter.image.image
        found = self.by_id.values() if not name else filter(None, [self.find(name)])
        return cri.ListImagesResponse(images=[image.message() for image in found])

    def image_status(self, request: cri.ImageStatusRequest) -> cri.ImageStatusResponse:
        """The image; an answer without one if it is not there (CRI-23)."""
        name = request.image.image
        reply = self._replies.get(name)
        if reply is None:
            image = self.find(name)
            reply = cri.ImageStatusResponse(image=image.message()) if image else cri.ImageStatusResponse()
            self._replies[name] = reply
        if request.verbose and reply.HasField("image"):
            return cri.ImageStatusResponse(image=reply.image, info={"info": "{}"})
        return reply

    def pull_image(self, request: cri.PullImageRequest) -> cri.PullImageResponse:
        """Bring the image onto the node; the answer is its id (CRI-24)."""
        name = full_name(request.image.image)
        if not self.registry_up:
            # The prefix says which error it is (CRI-40).
            raise CallError(grpc.StatusCode.UNKNOWN, f"RegistryUnavailable: no answer when pulling {name}")
        if name in self._unpublished:
            raise CallError(grpc.StatusCode.NOT_FOUND, f"failed to resolve reference {name!r}: not found")
        needed = self._passwords.get(name)
        if needed is not None and needed != (request.auth.username, request.auth.password):
            raise CallError(grpc.StatusCode.UNKNOWN, f"failed to authorize: {name}: 401 Unauthorized")
        return cri.PullImageResponse(image_ref=(self.find(name) or self.add(name)).id)

    def remove_image(self, request: cri.RemoveImageRequest) -> cri.RemoveImageResponse:
        """Remove the image with all its names; one that is gone is fine (CRI-25)."""
        image = self.find(request.image.image)
        if image is not None:
            del self.by_id[image.id]
            self._ids = {name: key for name, key in self._ids.items() if key != image.id}
            self._replies.clear()
        return _REMOVED


_REMOVED = cri.RemoveImageResponse()
