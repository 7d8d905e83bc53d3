"""A source of chance that leaves nothing to it."""


class FixedRandom:
    """No chance at all: no jitter, always the first choice, names by number.

    `prefix` keeps the tokens of two runs of a kubelet distinct.
    """

    def __init__(self, prefix: str = "t") -> None:
        self._prefix = prefix
        self._tokens = 0

    def jitter(self, seconds: float, factor: float) -> float:  # noqa: ARG002 - the port's signature
        """Exactly `seconds`."""
        return seconds

    def pick(self, count: int) -> int:  # noqa: ARG002 - the port's signature
        """The first: 0."""
        return 0

    def token(self) -> str:
        """The prefix and a running number."""
        self._tokens += 1
        return f"{self._prefix}{self._tokens}"
