"""Faults are values that are written and read as one line."""

import pytest

from kubelet_fakes.faults import Effect, Fault

TEXTS = [
    "StopContainer#2 after UNAVAILABLE",
    "* before",
    "PullImage delay=5",
    "RunPodSandbox#1-3 before UNKNOWN delay=8 from=2 until=9 uid=u container=c1: no net: none",
    "list pods#2- stale",
    "patch pods/status#1 before 409 name=web",
    "httpGet /healthz hang",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_of_a_fault_is_read_back(text: str) -> None:
    """Each part of the text is a field, and the other way round."""
    fault = Fault.parse(text)

    assert str(fault) == text
    assert Fault.parse(str(fault)) == fault


def test_fields_of_a_fault() -> None:
    """What is left out is the usual: it fails before its effect, each time."""
    fault = Fault.parse("RunPodSandbox#2-3 after UNKNOWN delay=8 container=c1: no net")

    assert Fault.parse("StopContainer") == Fault("StopContainer", Effect.BEFORE)
    assert (fault.first, fault.times, fault.delay) == (2, 2, 8.0)
    assert (fault.effect, fault.code, fault.message) == (Effect.AFTER, "UNKNOWN", "no net")
    assert [fault.hits("RunPodSandbox", {"container": name}) for name in ("c1", "c2")] == [True, False]


@pytest.mark.parametrize("text", ["", "Stop#x", "Stop before A B", "Stop delay=soon"])
def test_text_that_is_no_fault(text: str) -> None:
    """A text that is none is refused."""
    with pytest.raises(ValueError, match=r"no fault|invalid literal|could not convert"):
        Fault.parse(text)
