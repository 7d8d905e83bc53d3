"""Fetches the manifest URL, as the kubelet does: redirects are followed, certificates are checked."""

from collections.abc import Mapping, Sequence

import aiohttp

from kubelet_reference.config.documents import LARGEST
from kubelet_reference.util.ports import FetchError

_TIMEOUT_SECONDS = 10


class FetchedManifests:
    """Fits the port `ManifestUrl`; `headers` go with each request, a list of values for each name."""

    def __init__(self, headers: Mapping[str, Sequence[str]]) -> None:
        self._headers = [(name, value) for name, values in headers.items() for value in values]

    async def fetch(self, url: str) -> tuple[int, bytes]:
        """The status and the body, cut one byte after the largest manifest that there may be."""
        limit = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=limit) as session,
                session.get(url, headers=self._headers) as answer,
            ):
                return answer.status, await _limited(answer.content)
        except TimeoutError as error:
            raise FetchError(f"no answer within {_TIMEOUT_SECONDS} s") from error
        except (aiohttp.ClientError, ValueError, OSError) as error:
            raise FetchError(str(error) or type(error).__name__) from error


async def _limited(content: aiohttp.StreamReader) -> bytes:
    """The body as far as it is of use."""
    found = bytearray()
    async for part in content.iter_any():
        found += part
        if len(found) > LARGEST:
            break
    return bytes(found[: LARGEST + 1])
