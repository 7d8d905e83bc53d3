"""What probes and hooks send over the network: the port that they name, and their requests over HTTP."""

from lightkube.models.core_v1 import HTTPGetAction

from kubelet_reference.api.go_text import quoted
from kubelet_reference.api.pods import AnyContainer


class PortError(Exception):
    """The spec names a port that the container does not have."""


def port_number(container: AnyContainer, port: int | str) -> int:
    """The port's number; a name is looked up in the container itself (HOOK-08, PROBE-20)."""
    if isinstance(port, int):
        return port
    for one in container.ports or ():
        if one.name == port:
            return one.containerPort
    raise PortError(f"couldn't find port {quoted(port)} in container {container.name}")


def bracketed(host: str) -> str:
    """The host as it stands before a colon and a port."""
    return f"[{host}]" if ":" in host else host


def http_url(container: AnyContainer, action: HTTPGetAction, host: str) -> str:
    """Where the request goes, with the host that it is sent to; raises `PortError`."""
    scheme, path = (action.scheme or "HTTP").lower(), (action.path or "").removeprefix("/")
    return f"{scheme}://{bracketed(host)}:{port_number(container, action.port)}/{path}"


def http_headers(action: HTTPGetAction, user_agent: str) -> dict[str, str]:
    """The headers of the spec, and two more, which the spec may replace, or leave out by an empty value."""
    standing = {"User-Agent": user_agent, "Accept": "*/*"}
    given = {one.name.title(): one.value for one in action.httpHeaders or ()}
    return {name: value for name, value in (standing | given).items() if value or name not in standing}
