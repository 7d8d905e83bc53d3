"""The records of a trace, version 1, as typed values.

Bodies (requests, replies, manifests, statuses) stay raw bytes until a judge looks at them, and are then
decoded once. A reply written as `same` shares the body of the reply it refers to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar, final

import msgspec

from kubelet_conformance.trace.format.errors import BodyError

T = TypeVar("T")

NAME_CHARS_MAX = 256
"""A longer rpc or call id is bad input: readers remember many of them."""
Name = Annotated[str, msgspec.Meta(max_length=NAME_CHARS_MAX)]

ABSENT = msgspec.Raw(b"")
"""The body of a record that has none."""


class Body(msgspec.Struct, eq=False, gc=False):
    """A JSON value kept as bytes, decoded on first use and then remembered."""

    raw: bytes | msgspec.Raw
    parsed_as: type | None = None
    parsed: Any = None
    key: tuple[str, bytes] | None = None
    """Of a request: a key that it shares with all equal requests; see `replies`."""

    _decoders: ClassVar[dict[type, Callable[[bytes | msgspec.Raw], Any]]] = {}

    def view(self, kind: type[T]) -> T:
        """The body as `kind`; unknown fields are ignored, int64 may be strings (as protobuf's JSON has them).

        Raises BodyError when a field has a type the protocol does not give it.
        """
        if self.parsed_as is not kind:
            decode = self._decoders.get(kind)
            if decode is None:
                decode = self._decoders[kind] = msgspec.json.Decoder(kind, strict=False).decode
            try:
                self.parsed = decode(self.raw)
            except RecursionError:
                raise BodyError("it is nested too deeply") from None
            except (msgspec.MsgspecError, ValueError) as error:
                problem = f"{error}" if memoryview(self.raw).nbytes else "what it is about is missing"
                raise BodyError(problem) from None
            self.parsed_as = kind
        value: T = self.parsed
        return value

    def json(self) -> Any:  # noqa: ANN401 - a JSON value has any type
        """The body as plain dicts and lists, not remembered."""
        return msgspec.json.decode(self.raw)


class RpcError(msgspec.Struct, frozen=True):
    """A gRPC status that is not OK; `code` is gRPC's name, such as NOT_FOUND."""

    code: str
    message: str = ""


class Call(msgspec.Struct, eq=False, gc=False):
    """The begin of a call to the runtime."""

    seq: int
    t: float
    rpc: str
    id: str
    request: Body

    kind: ClassVar[str] = "call"


class Reply(msgspec.Struct, eq=False, gc=False):
    """The end of a call: a response, or an error."""

    seq: int
    t: float
    call: Call
    response: Body | None
    error: RpcError | None
    effect: bool
    """False where an injected error kept the call from acting."""
    same: bool
    """The response is like the last one to this request."""

    kind: ClassVar[str] = "reply"


class _Line(msgspec.Struct, frozen=True, gc=False, tag_field="kind"):
    """The fields of every record: `seq` counts up, `t` is seconds since the start of the record."""

    seq: int
    t: float

    @property
    def kind(self) -> str:
        """Which kind of record it is, as the file has it."""
        return str(self.__struct_config__.tag)


@final
class CallLine(_Line, frozen=True, gc=False, tag="call"):
    """A call as it is in the file."""

    rpc: Name
    id: Name
    request: msgspec.Raw = msgspec.Raw(b"{}")


@final
class ReplyLine(_Line, frozen=True, gc=False, tag="reply"):
    """A reply as it is in the file: one of `response`, `same`, `error`."""

    rpc: Name
    id: Name
    response: msgspec.Raw = ABSENT
    same: Name | None = None
    error: RpcError | None = None
    effect: bool = True


class Message(_Line, frozen=True, gc=False, tag="message"):
    """One item of a stream."""

    rpc: str
    id: str
    message: msgspec.Raw = msgspec.Raw(b"{}")


class PodChange(_Line, frozen=True, tag="pod"):
    """A pod that is desired (`set`) or no longer desired (`remove`), at the time it was sent.

    `since` is that time where the record repeats what was sent before the trace began.
    """

    op: Literal["set", "remove"]
    since: float | None = None
    source: str = "api"
    pod: msgspec.Raw = ABSENT
    namespace: str = ""
    name: str = ""
    uid: str = ""


class ApiWrite(_Line, frozen=True, tag="api"):
    """A write of the kubelet's own to the API server; `grace` is seconds, `code` the HTTP status.

    A `get` is recorded here too where the pod `name` that it asks for does not exist.
    """

    verb: str
    resource: str = ""
    subresource: str = ""
    uid: str = ""
    precondition: str | None = None
    grace: int | None = None
    body: msgspec.Raw = ABSENT
    code: int | None = None
    namespace: str = ""
    name: str = ""


class Status(_Line, frozen=True, tag="status"):
    """A pod's status as the API server stored it after the kubelet wrote it."""

    uid: str
    status: msgspec.Raw
    namespace: str = ""
    name: str = ""
    deletion: str | None = None


class Deleted(_Line, frozen=True, tag="deleted"):
    """The pod object was finally removed."""

    uid: str


EVENT_KINDS = frozenset({"Pod", "Node"})
"""What the events are about that a trace has, as Kubernetes names the kinds of objects."""


class Event(_Line, frozen=True, tag="event"):
    """A Kubernetes event about a pod; `container` is the field path of the container it is about.

    One about the node has no namespace, and its name as `uid`.
    """

    reason: str
    uid: str = ""
    namespace: str = ""
    name: str = ""
    type: str = ""
    message: str = ""
    count: int = 1
    container: str | None = None


class RuntimeEvent(_Line, frozen=True, tag="runtime"):
    """A runtime event: what the runtime, or a container, did by itself."""

    op: str
    container_id: str = ""
    sandbox_id: str = ""
    name: str = ""
    exit_code: int | None = None


_HEALED = "healed: "
"""What begins so ends a fault."""


class Fault(_Line, frozen=True, tag="fault"):
    """A fault that was injected from outside, or healed.

    `values` are the amounts that it is about, `uid` the pod.
    """

    what: str
    uid: str = ""
    values: dict[str, str] = {}

    @property
    def is_healed(self) -> bool:
        """Whether it ends a fault."""
        return self.what.startswith(_HEALED)

    @property
    def subject(self) -> str:
        """What is broken, or works again."""
        return self.what.removeprefix(_HEALED)

    @property
    def call(self) -> str:
        """The RPC whose calls it hits, if it hits those of one; the first word of its subject else."""
        return self.subject.partition(" ")[0].partition("#")[0]


class Kubelet(_Line, frozen=True, tag="kubelet"):
    """The kubelet process started, stopped in order, was killed, or ended by itself; or it logged a panic.

    One that ended by itself has its exit `code`, or the `signal` that ended it, and on a node that scenarios
    share the `scenario` that ends it alone too, where one does. The `log` has the lines of a panic. Where
    kubelets of two versions take turns, a start says its version.
    """

    op: Literal["started", "stopped", "killed", "ended", "panicked"]
    kubernetes: str | None = None
    code: int | None = None
    signal: str | None = None
    scenario: str | None = None
    log: tuple[str, ...] = ()


class Expect(_Line, frozen=True, tag="expect"):
    """A scenario's wait for something, and whether it was met."""

    contract: str
    awaited: str = ""
    by: float | None = None
    met: bool = False


class Probe(_Line, frozen=True, tag="probe"):
    """A probe or hook request to the pod, with its outcome: an exit code, or HTTP's status.

    An `outcome` may also be `refused`, `unanswered` for one that was given up, or `plain` for a request over
    TLS to a server without TLS. `text` is the server's response, `authorized` that it got credentials.
    """

    handler: str = ""
    outcome: str = ""
    uid: str = ""
    url: str = ""
    host: str = ""
    port: int = 0
    service: str = ""
    location: str = ""
    text: str = ""
    authorized: bool = False


class Disk(_Line, frozen=True, tag="disk"):
    """A manifest folder, a volume or a log path that appeared, changed or went, as `op` says.

    `text` is what a file held that was read, None of a large one.
    """

    op: str = ""
    path: str = ""
    text: str | None = None


class Http(_Line, frozen=True, tag="http"):
    """A manifest URL as the kubelet read it; `status` is the HTTP status, 0 for a refused connection."""

    op: str = ""
    status: int | None = None


class Metrics(_Line, frozen=True, tag="metrics"):
    """The result of a scrape of the kubelet's metrics: counters by name and labels, as in Prometheus."""

    values: dict[str, float] = {}


class Stall(_Line, frozen=True, tag="stall"):
    """The end of a span in which the `recorder`, the `kubelet` or the `runtime` waited for a processor.

    It lasted for `seconds`; `pressure` is the share of it in which some task of the machine waited.
    """

    of: str = ""
    seconds: float = 0.0
    pressure: float = 0.0


class End(_Line, frozen=True, tag="end"):
    """The end of observation."""


class Unknown(msgspec.Struct, frozen=True):
    """A record of a kind this version does not know: kept in the count, otherwise ignored."""

    seq: int
    t: float
    kind: str


Alone: TypeAlias = (
    Message
    | PodChange
    | ApiWrite
    | Status
    | Deleted
    | Event
    | RuntimeEvent
    | Fault
    | Kubelet
    | Expect
    | Probe
    | Disk
    | Http
    | Metrics
    | Stall
    | End
)
"""The records that are what their line says; a call and its reply are read together."""
Line: TypeAlias = CallLine | ReplyLine | Alone
Record: TypeAlias = Call | Reply | Alone | Unknown
