"""The real network to pods: what probes and hooks send over it, and what their users read when it fails."""

import asyncio
import os
import ssl
from collections.abc import Mapping

import aiohttp
import grpc
from grpc_health.v1 import health_pb2

from kubelet_reference.api.go_text import duration_text, quoted
from kubelet_reference.api.requests import bracketed
from kubelet_reference.util.ports import FetchError, HttpAnswer, PlainAnswerError

BODY_BYTES_MAX = 10 * 1024
HOOK_SECONDS_MAX = 600
"""A hook over HTTP has no limit of its own; the pod's grace period ends it long before this."""
_PLAIN_ANSWER = "WRONG_VERSION_NUMBER"
"""What the TLS library calls an answer that is no TLS at all."""


class RealPodNetwork:
    """Fits the ports `PodNetwork` and `HttpGet`; each request is a connection of its own."""

    async def http_get(self, url: str, headers: Mapping[str, str], *, seconds: float) -> HttpAnswer:
        """Send one request; a redirect is an answer like any other."""
        limit = aiohttp.ClientTimeout(total=seconds)
        # Probes trust any certificate, as the kubelet's do: the pod is known by its address.
        connector = aiohttp.TCPConnector(ssl=False, force_close=True)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=limit) as session,
                session.get(url, headers=headers, allow_redirects=False) as answer,
            ):
                body = await answer.content.read(BODY_BYTES_MAX)
                location = answer.headers.get("Location", "")
                return HttpAnswer(answer.status, location, body.decode(errors="replace"))
        except aiohttp.ClientConnectorSSLError as error:
            if _PLAIN_ANSWER in str(error):
                raise PlainAnswerError("server gave HTTP response to HTTPS client") from error
            raise FetchError(str(error)) from error
        except TimeoutError as error:
            raise FetchError("context deadline exceeded") from error
        except aiohttp.ClientConnectorError as error:
            raise FetchError(_dial_text(error.host or "", error.port or 0, error.os_error)) from error
        except (aiohttp.ClientError, ValueError, OSError) as error:
            raise FetchError(str(error) or type(error).__name__) from error

    async def get(self, url: str, headers: Mapping[str, str]) -> int:
        """Send the request of a hook; its answer's status."""
        return (await self.http_get(url, headers, seconds=HOOK_SECONDS_MAX)).status

    async def tcp_connect(self, host: str, port: int, *, seconds: float) -> None:
        """Open a connection and close it."""
        try:
            async with asyncio.timeout(seconds):
                _, writer = await asyncio.open_connection(host, port)
        except TimeoutError as error:
            raise FetchError(f"dial tcp {bracketed(host)}:{port}: i/o timeout") from error
        except (OSError, ssl.SSLError) as error:
            raise FetchError(_dial_text(host, port, error)) from error
        writer.close()

    async def grpc_check(self, host: str, port: int, service: str, *, seconds: float) -> str:
        """Ask the server's health service; its answer by name, such as SERVING."""
        address = f"{bracketed(host)}:{port}"
        # A proxy of the environment is none of the pod's.
        options = [("grpc.enable_http_proxy", 0)]
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            check = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
                response_deserializer=health_pb2.HealthCheckResponse.FromString,
            )
            try:
                reply = await check(health_pb2.HealthCheckRequest(service=service), timeout=seconds)
            except grpc.aio.AioRpcError as error:
                raise FetchError(_health_text(address, seconds, error)) from error
        return health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status)


def _dial_text(host: str, port: int, error: OSError) -> str:
    """What a connection failed of, as the kubelet's users know it."""
    why = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
    return f"dial tcp {bracketed(host)}:{port}: connect: {why}"


def _health_text(address: str, seconds: float, error: grpc.aio.AioRpcError) -> str:
    """What a health check failed of."""
    match error.code():
        case grpc.StatusCode.UNAVAILABLE:
            return (
                f"timeout: failed to connect service {quoted(address)} within "
                f"{duration_text(seconds)}: {error.details()}"
            )
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"timeout: health rpc did not complete within {duration_text(seconds)}"
        case grpc.StatusCode.UNIMPLEMENTED:
            what = "this server does not implement the grpc health protocol (grpc.health.v1.Health)"
            return f"error: {what}: {error.details()}"
        case _:
            return f"error: health rpc probe failed: {error.details()}"
