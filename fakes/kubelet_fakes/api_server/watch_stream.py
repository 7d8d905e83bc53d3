"""A watch over HTTP: one JSON object per line, bookmarks in between, and an end after its timeout."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec
from aiohttp import web

from kubelet_fakes.api.errors import ApiStatusError
from kubelet_fakes.api.objects import FrozenDict, frozen
from kubelet_fakes.api.watching import Watch, WatchEvent

_BOOKMARK_SECONDS = 60.0
_TIMEOUT_SECONDS = 1800.0
_GONE = 410
_END_OF_INITIAL = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What the client asked for."""

    kind: str
    api_version: str
    render: Callable[[FrozenDict], FrozenDict]
    """The form in which it wants objects."""
    bookmarks: bool = False
    initial_events: bool = False
    """Whether the end of the objects that are there already is marked by a bookmark."""
    timeout_seconds: float = _TIMEOUT_SECONDS


async def stream(request: web.Request, watch: Watch, options: WatchOptions) -> web.StreamResponse:
    """Deliver what the watch reports until it ends, the client goes, or the time is over."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    try:
        await response.prepare(request)
        await _deliver(response, watch, options)
    except ApiStatusError as error:
        if error.code != _GONE:
            # What a server that goes down does.
            abort(request)
        else:
            await response.write(_line("ERROR", frozen(error.status())))
    except ConnectionError:
        return response
    finally:
        watch.stop()
    return response


def abort(request: web.Request) -> None:
    """Break the connection off, without an answer."""
    if request.transport is not None:
        request.transport.abort()


async def _deliver(response: web.StreamResponse, watch: Watch, options: WatchOptions) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + options.timeout_seconds
    if options.initial_events:
        await response.write(_lines(watch.taken(), options) + _bookmark(watch, options, initial_end=True))
    while loop.time() < end:
        try:
            async with asyncio.timeout_at(min(end, loop.time() + _BOOKMARK_SECONDS)):
                first = await anext(watch)
        except StopAsyncIteration:
            return
        except TimeoutError:
            if options.bookmarks:
                await response.write(_bookmark(watch, options))
            continue
        await response.write(_lines([first, *watch.taken()], options))


def _lines(events: Iterable[WatchEvent], options: WatchOptions) -> bytes:
    return b"".join([_line(each.type, options.render(each.object)) for each in events])


def _line(what: str, thing: FrozenDict) -> bytes:
    return msgspec.json.encode({"type": what, "object": thing}) + b"\n"


def _bookmark(watch: Watch, options: WatchOptions, *, initial_end: bool = False) -> bytes:
    """How far the reader has got; nothing while something is still held back from it."""
    revision = watch.taken_up_to()
    if revision is None:
        return b""
    metadata = FrozenDict(resourceVersion=str(revision), creationTimestamp=None)
    if initial_end:
        metadata = FrozenDict({**metadata, "annotations": FrozenDict({_END_OF_INITIAL: "true"})})
    return _line("BOOKMARK", FrozenDict(kind=options.kind, apiVersion=options.api_version, metadata=metadata))
