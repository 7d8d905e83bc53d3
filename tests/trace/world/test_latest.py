"""What is kept of many names: the latest."""

from kubelet_conformance.trace.world.views import Latest


def test_the_oldest_is_forgotten_first() -> None:
    """Memory does not grow with the number of names; what is put in again is new."""
    known = Latest[int, str]()
    for number in range(10_000):
        known[number] = "first"
    known[0] = "again"
    known[10_000] = "last"

    assert len(known) == 10_000
    assert known[0] == "again"
    assert 1 not in known
    assert 2 in known
