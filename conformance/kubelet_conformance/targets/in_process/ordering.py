"""Choices of order that are made from outside: for histories that are drawn, reported and played again."""

from asyncio import Future, get_running_loop

from kubelet_reference.util.ports import Clock, Random

_NS = 1_000_000_000


class Orders:
    """What is picked next, where several things are ready.

    Before `choose` is called there is no choice. From then on the choices are taken one by one, over and
    over, each modulo what there is to choose from. Without any the first thing is taken, as with 0.
    """

    def __init__(self) -> None:
        self._choices: tuple[int, ...] | None = None
        self._taken = 0

    @property
    def chosen(self) -> bool:
        """Whether a choice was made."""
        return self._choices is not None

    def choose(self, *choices: int) -> None:
        """These are the next choices."""
        self._choices, self._taken = choices, 0

    def pick(self, count: int) -> int:
        """One of `count` choices, as an index; 0 is first in, first out."""
        if not self._choices or count < 2:  # noqa: PLR2004 - one thing leaves no choice
            return 0
        self._taken += 1
        return self._choices[(self._taken - 1) % len(self._choices)] % count


class OrderedRandom:
    """A chance whose picks are made by `orders`, once a choice was made, and the rest by another chance."""

    def __init__(self, random: Random, orders: Orders) -> None:
        self._orders = orders
        self._random = random
        self.jitter = random.jitter
        self.token = random.token

    def pick(self, count: int) -> int:
        """One of `count` choices, as an index; 0 is first in, first out."""
        return self._orders.pick(count) if self._orders.chosen else self._random.pick(count)


class OrderedClock:
    """A clock on which `orders` choose, once set, which of the tasks that wake at one moment comes first."""

    def __init__(self, clock: Clock, orders: Orders) -> None:
        self._clock = clock
        self._orders = orders
        self._loop = get_running_loop()
        self._sleeping: dict[int, list[Future[None]]] = {}
        self.monotonic = clock.monotonic
        self.wall_ns = clock.wall_ns

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`; 0 and less lets what is ready run first."""
        if seconds <= 0 or not self._orders.chosen:
            await self._clock.sleep(seconds)
            return
        loop = self._loop
        moment = round((loop.time() + seconds) * _NS)
        sleeping = self._sleeping.get(moment)
        if sleeping is None:
            sleeping = self._sleeping[moment] = []
            loop.call_later(seconds, self._wake, moment)
        waking: Future[None] = loop.create_future()
        sleeping.insert(len(sleeping) - self._orders.pick(len(sleeping) + 1), waking)
        try:
            await waking
        finally:
            if waking in sleeping:
                sleeping.remove(waking)

    def _wake(self, moment: int) -> None:
        for waking in self._sleeping.pop(moment):
            if not waking.done():
                waking.set_result(None)
