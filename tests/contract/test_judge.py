"""The engine: obligations, verdicts, and contracts that do not apply."""

import pytest
from outside_world import file_pod, static_config
from trace_builder import FULL_CHANNELS, TraceBuilder

from kubelet_conformance.contract.applicability import CRI, EVERY_EVENT, PODS, ByVersion, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.judge import EVIDENCE_MAX
from kubelet_conformance.contract.patterns import Pattern, call, done, pod_unset
from kubelet_conformance.contract.verdicts import Outcome, Verdict
from kubelet_conformance.trace.world.moment import Moment


@contract("START-01", on=done("RunPodSandbox"))
def owes_a_stop(_: Moment) -> Findings:
    """A sandbox that runs is stopped within 10 s, before anything is created in it."""
    return answered(
        by=call("StopPodSandbox"),
        within=10,
        unless=call("RemovePodSandbox"),
        not_before=call("CreateContainer"),
        text="StopPodSandbox comes",
    )


@pytest.mark.parametrize(
    ("unless", "not_before"),
    [
        (None, None),
        (call("RemovePodSandbox"), None),
        (None, call("StopPodSandbox")),
        (call("RemovePodSandbox"), call("RemovePodSandbox")),
    ],
    ids=["only-owed", "only-excused", "keeps-it-too", "excuses-it-too"],
)
def test_obligation_that_nothing_can_break_is_refused(
    unless: Pattern | None, not_before: Pattern | None
) -> None:
    """Without a deadline something else than what keeps or excuses it must be able to break it."""
    with pytest.raises(ValueError, match="nothing can break this obligation"):
        answered(by=call("StopPodSandbox"), unless=unless, not_before=not_before, text="a stop comes")


def with_sandbox() -> tuple[TraceBuilder, object]:
    """A trace in which a sandbox has been run."""
    s = TraceBuilder()
    return s, s.run_sandbox(s.pod())


def test_obligation_is_kept_by_its_answer() -> None:
    """What comes in time keeps the contract, once."""
    s = TraceBuilder()
    sandbox = s.run_sandbox(s.pod())
    s.wait(9).stop_sandbox(sandbox)

    outcome = s.judge_with(owes_a_stop)

    assert (outcome.verdict, outcome.activations) == (Verdict.KEPT, 1)


def test_obligation_is_broken_by_time() -> None:
    """What comes after its deadline is broken, and the evidence names what owed it."""
    s = TraceBuilder()
    sandbox = s.run_sandbox(s.pod())
    s.wait(11).stop_sandbox(sandbox)

    outcome = s.judge_with(owes_a_stop)

    assert outcome.verdict is Verdict.BROKEN
    assert outcome.evidence[0].text == "StopPodSandbox comes within 10 s"
    assert len(outcome.evidence[0].seq) == 2


def test_obligation_is_broken_by_what_must_not_come_first() -> None:
    """What comes too early breaks it."""
    s = TraceBuilder()
    web = s.pod()
    sandbox = s.run_sandbox(web)
    s.create(web, sandbox)
    s.stop_sandbox(sandbox)

    assert s.judge_with(owes_a_stop).verdict is Verdict.BROKEN


def test_obligation_is_dropped() -> None:
    """What makes it void leaves it unexercised; so does a kubelet that goes down."""
    void, down = TraceBuilder(), TraceBuilder()
    sandbox = void.run_sandbox(void.pod())
    void.call("RemovePodSandbox", {"pod_sandbox_id": sandbox.id}, {})
    down.run_sandbox(down.pod())
    down.record("kubelet", op="killed")

    assert void.judge_with(owes_a_stop).verdict is Verdict.NOT_EXERCISED
    assert down.judge_with(owes_a_stop).verdict is Verdict.NOT_EXERCISED


def test_open_obligation_is_pending() -> None:
    """What is still owed at the end has neither been kept nor broken."""
    s = TraceBuilder()
    s.run_sandbox(s.pod())
    s.wait(5).stop_here()

    assert s.judge_with(owes_a_stop).verdict is Verdict.NOT_EXERCISED


def test_another_pod_does_not_answer() -> None:
    """An obligation of one pod is not met by another."""
    s = TraceBuilder()
    s.run_sandbox(s.pod("web"))
    other = s.run_sandbox(s.pod("other"))
    s.stop_sandbox(other)

    outcome = s.judge_with(owes_a_stop)

    assert (outcome.activations, outcome.breaks) == (2, 1)


def test_failing_judge_is_an_error_of_its_own() -> None:
    """A judge that raises is an error, with the place; it says nothing about the kubelet."""

    @contract("START-01", on=call("RunPodSandbox"))
    def wrong(m: Moment) -> Findings:
        """A rule."""
        raise ZeroDivisionError(m.seq)

    s, _ = with_sandbox()
    outcome = s.judge_with(wrong)

    assert outcome.verdict is Verdict.ERROR
    assert "ZeroDivisionError" in outcome.reason


def test_evidence_is_bounded() -> None:
    """Every break is counted, the first ones are kept."""

    @contract("START-01", on=call("RunPodSandbox"))
    def never(_: Moment) -> Findings:
        """A rule."""
        return broken("never")

    s = TraceBuilder()
    web = s.pod()
    for attempt in range(EVIDENCE_MAX + 5):
        s.run_sandbox(web, attempt)
    outcome = s.judge_with(never)

    assert outcome.breaks == EVIDENCE_MAX + 5
    assert len(outcome.evidence) == EVIDENCE_MAX


@contract("START-01", on=call("RunPodSandbox"), versions=ByVersion({"1.22..1.26": "old", ">=1.28": "new"}))
def by_version(_: Moment) -> Findings:
    """A rule."""
    return KEPT


def test_rule_that_ended() -> None:
    """A version later than every range learns for which ones the rule holds."""
    ended = ByVersion({"1.22..1.26": True})

    assert ended.why_not((1, 32)) == "only for 1.22..1.26"
    assert ended.why_not((1, 40)) == "unverified for 1.40"


@pytest.mark.parametrize(
    ("kubernetes", "verdict", "reason"),
    [
        ("1.26", Verdict.KEPT, ""),
        ("1.32", Verdict.KEPT, ""),
        ("1.27", Verdict.NOT_APPLICABLE, "unverified for 1.27"),
        ("1.40", Verdict.NOT_APPLICABLE, "unverified for 1.40"),
        ("1.20", Verdict.NOT_APPLICABLE, "since 1.22"),
        (None, Verdict.NOT_APPLICABLE, "the trace does not name its Kubernetes version (give --kubernetes)"),
    ],
)
def test_versions(kubernetes: str | None, verdict: Verdict, reason: str) -> None:
    """A version nobody has read is not applicable, and says so."""
    s = TraceBuilder(kubernetes)
    s.run_sandbox(s.pod())
    outcome = s.judge_with(by_version)

    assert (outcome.verdict, outcome.reason) == (verdict, reason)


def test_missing_channel_is_not_applicable() -> None:
    """A contract whose channel the trace lacks does not apply, whatever the records show."""

    @contract("START-01", on=call("RunPodSandbox"), needs=(CRI, PODS, EVERY_EVENT))
    def needy(_: Moment) -> Findings:
        """A rule."""
        return KEPT

    s = TraceBuilder(channels=FULL_CHANNELS | {"events": "limited"})
    s.run_sandbox(s.pod())
    outcome = s.judge_with(needy)

    assert outcome.verdict is Verdict.NOT_APPLICABLE
    assert outcome.reason == "channel events is limited, full is needed"


def test_feature_gate() -> None:
    """A contract behind a feature gate applies only where the trace says that it is on."""

    @contract("START-01", on=call("RunPodSandbox"), versions=since("1.28"), gate="EventedPLEG")
    def gated(_: Moment) -> Findings:
        """A rule."""
        return KEPT

    on, off = TraceBuilder(featureGates={"EventedPLEG": True}), TraceBuilder()
    for s in (on, off):
        s.run_sandbox(s.pod())

    assert on.judge_with(gated).verdict is Verdict.KEPT
    assert off.judge_with(gated).reason == "feature gate EventedPLEG is off"


def test_several_traces_become_one_verdict() -> None:
    """The graver verdict wins; activations add up; kept wins over not exercised."""
    order = list(Verdict)

    for first in order:
        for second in order:
            both = Outcome(first, activations=1)
            both.add(Outcome(second, activations=2))

            assert both.verdict is min(first, second, key=order.index)
            assert both.activations == 3


def test_replaced_static_pod_owes_nothing() -> None:
    """Another static pod that takes a pod's place is to that pod as if it were removed."""

    @contract("START-02", on=done("RunPodSandbox"))
    def owes_a_container(_: Moment) -> Findings:
        """A container is made in it."""
        return answered(by=call("CreateContainer"), within=10, unless=pod_unset(), text="it is made")

    for edited in (True, False):
        s = TraceBuilder()
        web = file_pod(s)
        s.run_sandbox(web, config=static_config(s, web))
        if edited:
            file_pod(s.wait(1), containers=[{"name": "c1", "image": "img:2"}])
        s.wait(30).stop_here()

        assert bool(s.judge_with(owes_a_container).breaks) is not edited
