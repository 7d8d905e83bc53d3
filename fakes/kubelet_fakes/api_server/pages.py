"""Long lists, page by page: each page is of the list as it was for the first one."""

import os
from itertools import islice

from kubelet_fakes.api.errors import ApiStatusError, bad_request
from kubelet_fakes.api.objects import FrozenDict, FrozenList, replaced

_KEPT_MAX = 64
"""How many lists are kept that have not been read to their end."""


class Pages:
    """Cuts lists, and keeps what is left of each for the client that comes back with its token."""

    def __init__(self) -> None:
        self._rests: dict[str, FrozenDict] = {}

    def page(self, found: FrozenDict, limit: str, token: str) -> FrozenDict:
        """The list's first part, or the part that the token stands for; an empty limit is none.

        Raises:
            ApiStatusError: Code 400 for a limit that is no number, 410 for a token that is forgotten.
        """
        if limit and not limit.isdecimal():
            raise bad_request(f"limit: a number is expected, not {limit!r}")
        if token and token not in self._rests:
            text = "The provided continue parameter is too old to display a consistent list result."
            raise ApiStatusError(410, "Expired", text)
        whole = self._rests[token] if token else found
        items, count = whole["items"], int(limit or 0)
        if not 0 < count < len(items):
            return whole
        rest = FrozenDict({**whole, "items": FrozenList(items[count:])})
        page = FrozenDict({**whole, "items": FrozenList(items[:count])})
        page = replaced(page, ("metadata", "continue"), self._keep(rest))
        return replaced(page, ("metadata", "remainingItemCount"), len(rest["items"]))

    def _keep(self, rest: FrozenDict) -> str:
        for oldest in tuple(islice(self._rests, max(0, len(self._rests) - _KEPT_MAX + 1))):
            del self._rests[oldest]
        token = os.urandom(16).hex()
        self._rests[token] = rest
        return token
