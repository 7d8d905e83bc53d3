"""Addresses of pods: the next free one, so that an address is not soon used again."""

from __future__ import annotations

_FIRST, _LAST = 2, 0xFFFE


class Addresses:
    """A network of some 65 000 addresses, `network` being the first two parts of each, such as `10.88`.

    While `given` is set every new owner gets that text instead of an address, and nothing if it is empty, as
    from a broken network plugin. Commas part several.
    """

    def __init__(self, network: str, *, dual_stack: bool = False) -> None:
        self._network = network
        self._dual_stack = dual_stack
        self.given: str | None = None
        self._latest = _FIRST - 1
        self._taken: dict[str, int] = {}
        self._numbers: set[int] = set()

    def take(self, owner: str) -> tuple[str, ...]:
        """Addresses for a new owner, IPv4 first; none when all are taken."""
        if self.given is not None:
            return tuple(one for one in self.given.split(",") if one)
        if len(self._numbers) > _LAST - _FIRST:
            return ()
        number = self._latest
        while number == self._latest or number in self._numbers:
            number = number + 1 if number < _LAST else _FIRST
        self._latest = number
        self._numbers.add(number)
        self._taken[owner] = number
        first = f"{self._network}.{number >> 8}.{number & 255}"
        return (first, f"fd00:10:88::{number:x}") if self._dual_stack else (first,)

    def release(self, owner: str) -> None:
        """Give an owner's addresses back; one that has none is fine."""
        number = self._taken.pop(owner, None)
        if number is not None:
            self._numbers.discard(number)
