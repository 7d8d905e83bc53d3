"""Which judges are asked at a moment: those whose keys, conditions and pod fit, and no others."""

from collections.abc import Iterator

import pytest
from trace_builder import TraceBuilder

from kubelet_conformance.contract.definition import KEPT, OBSERVERS, Findings, contract, observer
from kubelet_conformance.contract.patterns import Pattern, call, done, read_as
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.views import Pod, Sandbox

INIT = {"name": "init", "image": "i"}
BEGUN, ENDED = "call:RunPodSandbox", "done:RunPodSandbox"


@pytest.fixture
def no_observers() -> Iterator[None]:
    """Only what the test itself observes."""
    usual = list(OBSERVERS)
    OBSERVERS.clear()
    yield
    OBSERVERS[:] = usual


def asked_at(pattern: Pattern, s: TraceBuilder, rule: str = "START-01") -> list[str]:
    """What happens at the moments at which a judge of this pattern is asked."""
    asked: list[str] = []

    @contract(rule, on=pattern)
    def judge(m: Moment) -> None:
        """A rule."""
        asked.append(m.keys[0])

    assert s.judge_with(judge).verdict is Verdict.NOT_EXERCISED
    return asked


def test_conditions_decide_for_each_alternative() -> None:
    """A condition of one alternative says nothing about the others; that of all of them does."""
    s = TraceBuilder()
    s.run_sandbox(s.pod())
    begun, ended = call("RunPodSandbox"), done("RunPodSandbox")
    never = begun.where(lambda _: False)

    assert asked_at(begun.either(ended), s) == [BEGUN, ENDED]
    assert asked_at(never, s) == []
    assert asked_at(never.either(ended), s) == [ENDED]
    assert asked_at(never.either(begun), s) == [BEGUN]
    assert asked_at(never.either(ended).where(lambda m: m.keys[0] == BEGUN), s) == []


def test_shared_condition_is_asked_once() -> None:
    """Judges that share a condition share its answer, and hear of a moment in the order of writing."""
    tried: list[str] = []
    received: list[str] = []

    def fits(m: Moment) -> bool:
        tried.append(m.keys[0])
        return m.keys[0] == ENDED

    either = call("RunPodSandbox").either(done("RunPodSandbox"))
    shared = either.where(fits)

    @contract("START-01", on=shared)
    def rule(_: Moment) -> None:
        """A rule."""
        received.append("first")

    @rule.clause("always", on=either)
    def _(_: Moment) -> None:
        received.append("always")

    @rule.clause("second", on=shared)
    def _(_: Moment) -> None:
        received.append("second")

    s = TraceBuilder()
    s.run_sandbox(s.pod())
    s.judge_with(rule)

    assert tried == [BEGUN, ENDED]
    assert received == ["always", "first", "always", "second"]


def test_failing_condition_is_an_error_of_its_contract() -> None:
    """A condition that raises fails its contract, with the place, as a judge that raises would."""

    def wrong(m: Moment) -> bool:
        raise ZeroDivisionError(m.seq)

    @contract("START-01", on=call("RunPodSandbox").where(wrong))
    def rule(_: Moment) -> None:
        """A rule."""

    s = TraceBuilder()
    s.run_sandbox(s.pod())
    outcome = s.judge_with(rule)

    assert outcome.verdict is Verdict.ERROR
    assert "the judge failed at seq" in outcome.reason
    assert "ZeroDivisionError" in outcome.reason


def test_pods_a_rule_is_not_about() -> None:
    """A rule about init containers is asked where there are some; a new manifest may bring them."""
    plain, with_init = TraceBuilder(), TraceBuilder()
    plain.run_sandbox(plain.pod())
    with_init.run_sandbox(with_init.pod(initContainers=[INIT]))

    assert asked_at(call("RunPodSandbox"), plain, "INIT-01") == []
    assert asked_at(call("RunPodSandbox"), with_init, "INIT-01") == [BEGUN]


@pytest.mark.usefixtures("no_observers")
def test_observers_surround_the_judges() -> None:
    """An observer is called before every judge of a moment, or after all of them, and for no contract."""
    called: list[str] = []
    begun = call("RunPodSandbox")

    @contract("START-01", on=begun)
    def rule(_: Moment) -> Findings:
        """A rule."""
        called.append("judge")
        return KEPT

    @observer(on=begun, last=True)
    def _(_: Moment) -> None:
        called.append("last")

    @observer(on=begun)
    def _(_: Moment) -> None:
        called.append("first")

    s = TraceBuilder()
    s.run_sandbox(s.pod())

    assert s.judge_with(rule).verdict is Verdict.KEPT
    assert called == ["first", "judge", "last"]


@pytest.mark.usefixtures("no_observers")
def test_failing_observer_is_an_error_of_every_contract() -> None:
    """Nobody knows who asks for what it should have kept up to date."""

    @contract("START-01", on=done("RunPodSandbox"))
    def rule(_: Moment) -> Findings:
        """A rule."""
        return KEPT

    @observer(on=call("RunPodSandbox"))
    def _(m: Moment) -> None:
        raise ZeroDivisionError(m.seq)

    s = TraceBuilder()
    s.run_sandbox(s.pod())

    assert s.judge_with(rule).verdict is Verdict.ERROR


def test_judge_names_what_the_moment_must_have() -> None:
    """It is called where the pod and the sandbox it names are known, and with these."""
    named: list[str] = []

    @contract("START-01", on=call("RunPodSandbox", "CreateContainer"))
    def rule(m: Moment, pod: Pod, sandbox: Sandbox) -> None:
        """A rule."""
        named.append(f"{m.keys[0]} {pod.name} {sandbox.pod is pod}")

    s = TraceBuilder()
    web = s.pod()
    s.create(web, s.run_sandbox(web))
    s.judge_with(rule)

    assert named == ["call:CreateContainer web True"]


def test_judge_names_nothing_else() -> None:
    """A parameter that no moment has is refused where the contract is written, as is one of another type."""

    def unknown(m: Moment, volume: Pod) -> None:
        """A rule."""

    def mistyped(m: Moment, pod: Sandbox) -> None:
        """A rule."""

    for wrong in (unknown, mistyped):
        with pytest.raises(TypeError, match="no moment has"):
            contract("START-01", on=call("RunPodSandbox"))(wrong)


@pytest.mark.parametrize(
    ("state", "word"),
    [("CREATED", "created"), ("RUNNING", "running"), ("EXITED", "exited"), ("LOST", "unknown")],
)
def test_container_is_read_as_its_state(state: str, word: str) -> None:
    """Each reading of a container answers to the one state it tells."""
    s = TraceBuilder()
    web = s.pod()
    container = s.create(web, s.run_sandbox(web))
    s.container_status(container, state=f"CONTAINER_{state}")
    words = ("created", "running", "exited", "unknown")

    assert [one for one in words if asked_at(read_as(one), s)] == [word]
