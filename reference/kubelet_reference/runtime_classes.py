"""Which handler of the runtime a pod's runtime class stands for (SANDBOX-16, KEP-585)."""

from __future__ import annotations

from kubelet_reference.ports import ApiError, ApiServer

DEFAULT_HANDLER = ""
_NOT_FOUND = 404


class UnknownClassError(Exception):
    """The handler of a class cannot be told: there is no such class, or nobody could be asked."""


class RuntimeClasses:
    """Asks the API server, and goes by what it last said while it is away.

    A kubelet without an API server knows no classes, and takes the default handler whatever is asked for.
    """

    def __init__(self, api: ApiServer | None) -> None:
        self._api = api
        self._handlers: dict[str, str] = {}

    async def handler(self, name: str | None) -> str:
        """The handler of the class of that name; raises `UnknownClassError`."""
        if not name or self._api is None:
            return DEFAULT_HANDLER
        try:
            self._handlers[name] = (await self._api.get_runtime_class(name)).handler
        except ApiError as error:
            if error.code == _NOT_FOUND:
                self._handlers.pop(name, None)
                raise UnknownClassError(f'runtimeclass.node.k8s.io "{name}" not found') from error
            if name not in self._handlers:
                raise UnknownClassError(f"failed to lookup RuntimeClass {name}: {error}") from error
        return self._handlers[name]
