"""The timeline of a trace: lanes, what lies on them, and where time passes without news.

It knows no form: a page draws it, and a terminal may.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from kubelet_conformance.trace.format.records import Body

_PODS_MAX = 4
"""With more pods, the node counted as one, a timeline can be focused on some."""


class LaneKind(StrEnum):
    """Whose lane it is, in the order in which lanes stand."""

    MACHINE = "machine"
    SCENARIO = "scenario"
    API_SERVER = "api server"
    KUBELET = "kubelet"
    POD = "pod"
    SANDBOX = "sandbox"
    CONTAINER = "container"


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane: `pod` is the pod that it is of, as NAMESPACE/NAME, and `name` what it is called."""

    kind: LaneKind
    name: str
    pod: str = ""


class What(StrEnum):
    """What an item is: the colour and the shape that it gets in a picture."""

    START = "start"
    STOP = "stop"
    REMOVE = "remove"
    EXEC = "exec"
    PULL = "pull"
    CALL = "call"
    READ = "read"
    EXIT = "exit"
    PROBE = "probe"
    STATUS = "status"
    WRITE = "write"
    POD = "pod"
    EVENT = "event"
    KUBELET = "kubelet"
    FAULT = "fault"
    WAIT = "wait"


@dataclass(slots=True)
class Item:
    """A call from its begin to its end, or an event in a moment.

    Attributes:
        lane: its number among the lanes.
        label: it in one short word.
        text: it in words, with its outcome.
        pod: the pod that it is about, as NAMESPACE/NAME, be it on a lane of the node; "" for none.
        end: when a call was answered; None while it is not, and for an event.
        is_call: whether it has a begin and an end.
        failed: whether it ended with an error, or did not come.
        bodies: what was asked and answered, by a word for each; only where they were asked for.
        breaks: the contracts that this record is evidence against.
    """

    seq: int
    t: float
    lane: int
    what: What
    label: str
    text: str
    pod: str = ""
    end_seq: int = 0
    end: float | None = None
    is_call: bool = False
    failed: bool = False
    bodies: dict[str, Body] = field(default_factory=dict[str, Body])
    breaks: tuple[str, ...] = ()


@dataclass(slots=True)
class Life:
    """A span in which something lasts on a lane: an attempt of a container or sandbox, or a fault."""

    lane: int
    label: str
    begin: tuple[float, int]
    end: tuple[float, int] | None = None


@dataclass(slots=True)
class Quiet:
    """Records without news, between two that have some: how many reads, and how many probes and events."""

    seq: int
    t: float
    end: float
    records: int = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """A break of a contract: the records that prove it, and until when something else was expected.

    Attributes:
        at: where it went wrong; where something did not come, what it was owed from.
        by: when that had to be there, where something did not come.
    """

    contract: str
    text: str
    seqs: tuple[int, ...]
    at: Item
    by: float | None = None


@dataclass(slots=True)
class Timeline:
    """Everything that a picture of a trace needs, in the order of the trace."""

    lanes: list[Lane] = field(default_factory=list[Lane])
    items: list[Item] = field(default_factory=list[Item])
    lives: list[Life] = field(default_factory=list[Life])
    quiet: list[Quiet] = field(default_factory=list[Quiet])
    findings: list[Finding] = field(default_factory=list[Finding])
    end: float = 0.0
    records: int = 0
    problem: str = ""
    """Why the trace could not be read to its end."""

    def having(self, seqs: Iterable[int]) -> list[Item]:
        """The items of these records; a call is found under its begin and its end."""
        wanted = set(seqs)
        return [each for each in self.items if each.seq in wanted or each.end_seq in wanted]

    def narrow(self) -> None:
        """Keep of the pods those in the namespaces of the breaks; the others just share the node."""
        spaces = {_namespace(each.pod) for each in self.items if each.breaks} - {""}
        if spaces:
            self._keep_pods(lambda pod: _namespace(pod) in {"", *spaces})

    def focus(self, seqs: Collection[int]) -> None:
        """Of many pods keep those that these records are about, beside what is about the node."""
        pods = {each.pod for each in self.having(seqs)} - {""}
        if pods and len({each.pod for each in self.items}) > _PODS_MAX:
            self._keep_pods({"", *pods}.__contains__)

    def _keep_pods(self, wanted: Callable[[str], bool]) -> None:
        self.lives = [each for each in self.lives if wanted(self.lanes[each.lane].pod)]
        self._keep([each for each in self.items if wanted(each.pod)])

    def _keep(self, items: list[Item]) -> None:
        """Keep these items, and the breaks that show at one of them."""
        kept = set(map(id, items))
        self.items, self.findings = items, [each for each in self.findings if id(each.at) in kept]

    def shorten(self, most: int) -> None:
        """Keep at most so many items: those about the breaks, or the first."""
        count = len(self.items)
        if count <= most:
            return
        marked = [number for number, each in enumerate(self.items) if each.breaks]
        begin = min(max(marked[0] - most // 4, 0), count - most) if marked else 0
        kept = {*marked[:most], *range(begin, begin + most)}
        self._keep([each for number, each in enumerate(self.items) if number in kept])
        shown = {each.lane for each in self.items}
        self.lives = [each for each in self.lives if each.lane in shown]

    def keep_bodies(self, most: int) -> bool:
        """Keep of the bodies those of so many items, the nearest to the breaks; whether any had to go."""
        marked = [number for number, each in enumerate(self.items) if each.breaks]
        having = [number for number, each in enumerate(self.items) if each.bodies]
        if len(having) <= most:
            return False
        having.sort(key=lambda number: min((abs(number - each) for each in marked), default=number))
        for number in having[most:]:
            self.items[number].bodies.clear()
        return True

    def lane_order(self) -> list[int]:
        """The numbers of the lanes in the order to draw them: the node's, then pod after pod."""
        pods = {each.pod: number for number, each in reversed(list(enumerate(self.lanes)))}
        kinds = list(LaneKind)

        def place(number: int) -> tuple[int, int, int]:
            lane = self.lanes[number]
            return (pods[lane.pod] if lane.pod else -1), kinds.index(lane.kind), number

        used = {each.lane for each in self.items}
        return sorted(used, key=place)


def _namespace(pod: str) -> str:
    """The namespace of a pod, "" for none."""
    return pod.partition("/")[0]
