"""Why containers could not be started."""

from kubelet_reference.status.reason_cache import ReasonCache, StartFailure


def test_remembers_until_a_start_succeeds() -> None:
    """The last failure of each container counts until it is removed (SYNC-15)."""
    cache = ReasonCache()
    cache.add("u1", "c1", "ErrImagePull", "first")
    cache.add("u1", "c1", "ImagePullBackOff", "second")
    cache.add("u1", "c2", "CreateContainerError", "other")
    cache.remove("u1", "c2")
    cache.remove("u1", "unknown")

    assert cache.get("u1", "c1") == StartFailure("ImagePullBackOff", "second")
    assert cache.get("u1", "c2") is None
