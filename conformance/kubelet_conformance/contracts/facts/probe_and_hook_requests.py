"""HTTP and TCP requests of probes and hooks, as the servers in the pod network received them."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from kubelet_conformance.contract import Container, Moment, Pattern, Pod, Predicate
from kubelet_conformance.contracts.facts.probe import probes_of
from kubelet_conformance.trace.format.manifests import ContainerSpec, Handler
from kubelet_conformance.trace.format.records import Probe

REQUEST = Pattern(frozenset({"probe"}))
Sender: TypeAlias = Literal["liveness", "readiness", "startup", "post_start", "pre_stop"]
_PORTS = {"http": 80, "https": 443}
_URLS_REMEMBERED = 256


class Asked(NamedTuple):
    """A probe or hook of a pod that a request may come from."""

    what: Sender
    spec: ContainerSpec
    handler: Handler

    @property
    def is_hook(self) -> bool:
        """It is a lifecycle hook."""
        return self.what in {"post_start", "pre_stop"}


def request_at(m: Moment) -> Probe | None:
    """The record, if it names the host that was asked."""
    record = m.record
    return record if isinstance(record, Probe) and (record.host or record.url) else None


def senders(spec: ContainerSpec) -> Iterator[Asked]:
    """Every probe and hook of a container."""
    for name, probe in probes_of(spec):
        yield Asked(name, spec, probe)
    if spec.lifecycle.post_start is not None:
        yield Asked("post_start", spec, spec.lifecycle.post_start)
    if spec.lifecycle.pre_stop is not None:
        yield Asked("pre_stop", spec, spec.lifecycle.pre_stop)


def asked_by(pod: Pod, record: Probe) -> list[Asked]:
    """The probes and hooks of the pod that would send this request, to whatever host."""
    return [one for _, spec in pod.entries.values() for one in senders(spec) if _asks(one, record)]


def askers_anywhere(m: Moment, record: Probe) -> list[Asked]:
    """The probes and hooks of all pods of the node that would send this request."""
    return [one for pod in m.world.pods.values() for one in asked_by(pod, record)]


def _asks(asked: Asked, record: Probe) -> bool:
    handler, spec = asked.handler, asked.spec
    if record.handler == "httpGet" and handler.http_get is not None:
        port, path = _port_and_path(record.url)
        asked_path = "/" + str(handler.http_get.get("path") or "").removeprefix("/")
        return path == asked_path.partition("?")[0] and port == _port(handler.http_get, spec)
    if record.handler == "tcpSocket" and handler.tcp_socket is not None and not asked.is_hook:
        return record.port == _port(handler.tcp_socket, spec)
    if record.handler == "grpc" and handler.grpc is not None:
        return (record.port, record.service) == (handler.grpc.get("port"), handler.grpc.get("service") or "")
    return False


@lru_cache(maxsize=_URLS_REMEMBERED)
def _port_and_path(url: str) -> tuple[int, str]:
    """Port and path of a URL. Cached: few URLs recur, and each is compared with many probes."""
    parts = urlsplit(url)
    return parts.port or _PORTS.get(parts.scheme, 0), parts.path or "/"


def _port(action: dict[str, Any], spec: ContainerSpec) -> int:
    """The port that is meant; 0 where a name names none."""
    given = action.get("port")
    if isinstance(given, str) and not given.isdigit():
        return next((one.container_port for one in spec.ports or () if one.name == given), 0)
    return int(given or 0)


def named_host(handler: Handler) -> str:
    """The host that the manifest names, "" for the pod itself."""
    action = handler.http_get or handler.tcp_socket or {}
    return str(action.get("host") or "")


def is_of(one: Asked) -> Predicate:
    """The request comes from this probe or hook, or from another one that sends the same."""

    def comes(m: Moment) -> bool:
        record = request_at(m)
        return record is not None and record.handler in _kinds(one) and _asks(one, record)

    return comes


def _kinds(one: Asked) -> set[str]:
    handler = one.handler
    kinds = {"httpGet": handler.http_get, "tcpSocket": handler.tcp_socket, "grpc": handler.grpc}
    return {kind for kind, action in kinds.items() if action is not None}


def answered_with(record: Probe) -> int:
    """The HTTP status of the answer, 0 for no answer."""
    return int(record.outcome) if record.outcome.isdigit() else 0


def is_nobodys(m: Moment, host: str) -> bool:
    """No pod is known to have, or to have had, this address."""
    if any(one.ip == host for one in m.world.sandboxes.values()):
        return False
    reported = (pod.status for pod in m.world.pods.values() if pod.status is not None)
    return all(host != one.pod_ip for one in reported)


def running(pod: Pod, name: str) -> Container | None:
    """The container of that name that runs."""
    found = pod.newest(name)
    return found if found is not None and found.state == "running" else None
