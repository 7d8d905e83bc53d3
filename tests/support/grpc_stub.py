"""gRPC servers at a unix socket whose methods are given as functions from bytes to bytes."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio


@asynccontextmanager
async def grpc_server(
    path: Path, service: str, methods: Mapping[str, Callable[..., Any]], *, streams: bool = False
) -> AsyncGenerator[None]:
    """A server with these methods of a service; with `streams` they answer with one message after another."""
    server = grpc.aio.server()
    handler: Any = grpc.unary_stream_rpc_method_handler if streams else grpc.unary_unary_rpc_method_handler
    handlers = {name: handler(method) for name, method in methods.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)
