"""The HTTP client of the API server: requests with a JSON answer, and watches."""

import json
import os
import platform
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from importlib.metadata import version as version_of
from typing import Any, Self, TypedDict, Unpack, cast

import aiohttp
import msgspec

from kubelet_reference.server.api_client.json_fields import Json, part
from kubelet_reference.server.api_client.kubeconfig import Access
from kubelet_reference.util.ports import ApiError, Clock

MERGE_PATCH = "application/strategic-merge-patch+json"
CONFLICT, GONE, TIMEOUT = 409, 410, 504
UNTRUSTED = "Untrusted"
"""The reason of an error: the server has a certificate of nobody whom the kubeconfig trusts."""
_FAILED = 400
_ANSWER_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_TRIES_TOLD_TO_WAIT = 10
"""So often a request is sent again that the server has put off."""
_READ_BYTES = 1 << 20


class _Options(TypedDict, total=False):
    """What differs from one request to another, in aiohttp's words."""

    params: Mapping[str, str] | None
    data: bytes | None
    timeout: aiohttp.ClientTimeout


@dataclass(eq=False)
class ApiClient:
    """One kubelet's connections to the API server; every method raises `ApiError`."""

    access: Access
    clock: Clock
    _session: aiohttp.ClientSession | None = field(default=None, init=False)

    async def __aenter__(self) -> Self:
        machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        agent = f"kubelet-reference/{version_of('kubelet-conformance')} (linux/{machine})"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            headers={"User-Agent": agent, "Accept": "application/json"},
            read_bufsize=_READ_BYTES,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Read an object or a list."""
        return await self._ask("GET", path, query)

    async def create(self, path: str, body: Mapping[str, Any]) -> Json:
        """Create an object in a collection."""
        return await self._ask("POST", path, body=body)

    async def replace(self, path: str, body: Mapping[str, Any]) -> Json:
        """Replace an object."""
        return await self._ask("PUT", path, body=body)

    async def patch(self, path: str, body: Mapping[str, Any]) -> Json:
        """Send a strategic merge patch."""
        return await self._ask("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def delete(self, path: str, options: Mapping[str, Any]) -> None:
        """Delete an object."""
        await self._ask("DELETE", path, body={"kind": "DeleteOptions", "apiVersion": "v1", **options})

    async def watch(self, path: str, query: Mapping[str, str], seconds: float) -> AsyncGenerator[Json]:
        """The events of a watch, as they come, for so many seconds at most; a stream that breaks just ends.

        An event that reports an error is raised.
        """
        limit = aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT_SECONDS)
        try:
            response = await self._begin("GET", path, {}, params=query, timeout=limit)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unreachable(error) from error
        async with response:
            if response.status >= _FAILED:
                raise await _refusal(response)
            async with aclosing(_lines(response.content)) as lines:
                async for line in lines:
                    event = _decoded(line)
                    if event.get("type") == "ERROR":
                        raise _status_error(part(event, "object"))
                    yield event

    async def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        """Send a request, again where the server says when to; the answer."""
        headers = {"Content-Type": content_type} if body is not None else {}
        options: _Options = {
            "params": query,
            "data": msgspec.json.encode(body) if body is not None else None,
            "timeout": aiohttp.ClientTimeout(total=_ANSWER_SECONDS, sock_connect=_CONNECT_SECONDS),
        }
        for tries_left in reversed(range(_TRIES_TOLD_TO_WAIT + 1)):
            try:
                async with await self._begin(method, path, headers, **options) as response:
                    if response.status < _FAILED:
                        return _decoded(await response.read())
                    error, later = await _refusal(response), response.headers.get("Retry-After", "")
            except (aiohttp.ClientError, OSError, TimeoutError) as reason:
                raise _unreachable(reason) from reason
            if not (later.isdecimal() and tries_left):
                raise error
            await self.clock.sleep(int(later))
        raise AssertionError("the last try has returned or raised")

    async def _begin(
        self, method: str, path: str, headers: Mapping[str, str], **options: Unpack[_Options]
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open")
        bearer = self.access.bearer()
        who = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        return await self._session.request(
            method,
            self.access.server + path,
            headers={**headers, **who},
            **options,
            allow_redirects=False,
            ssl=self.access.tls if self.access.tls is not None else True,
            server_hostname=self.access.server_name or None,
        )


async def _lines(content: aiohttp.StreamReader) -> AsyncGenerator[bytes]:
    """The lines of a stream, of whatever length; what breaks it off ends it."""
    rest = b""
    try:
        async for part in content.iter_any():
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                if line.strip():
                    yield line
    except (aiohttp.ClientError, OSError, TimeoutError):
        return


def _decoded(text: bytes) -> Json:
    """A JSON object."""
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ApiError(0, "BadReply", f"the answer is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ApiError(0, "BadReply", "the answer is no JSON object")
    return cast("Json", found)


async def _refusal(response: aiohttp.ClientResponse) -> ApiError:
    """What an answer of 400 and more says."""
    text = await response.read()
    try:
        status: object = json.loads(text)
    except ValueError:
        status = None
    if isinstance(status, dict) and cast("Json", status).get("kind") == "Status":
        return _status_error({**cast("Json", status), "code": response.status})
    said = text[:200].decode(errors="replace").strip() or response.reason or "no text"
    return ApiError(response.status, "", f"HTTP {response.status}: {said}")


def _status_error(status: Mapping[str, Any]) -> ApiError:
    code, reason = status.get("code") or 0, str(status.get("reason") or "")
    return ApiError(code, reason, str(status.get("message") or reason or f"HTTP {code}"))


def _cause(error: OSError) -> str:
    """Why no connection came about; asyncio puts the address where the system's own text should be."""
    is_told = isinstance(error, ssl.SSLError | socket.gaierror)
    return str(error.strerror) if is_told else os.strerror(error.errno or 0).lower()


def _unreachable(error: Exception) -> ApiError:
    """No answer at all."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return ApiError(0, UNTRUSTED, f"its certificate is not trusted: {error.certificate_error}")
        case TimeoutError():
            text = "no answer in time"
        case aiohttp.ClientConnectorError():
            text = f"cannot connect: {_cause(error.os_error)}"
        case _:
            text = str(error) or type(error).__name__
    return ApiError(0, "Unreachable", text)
