"""START-09: a container is made with the environment that it declares."""

from typing import Any

import pytest
from trace_builder import TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

KEY = {"configMapKeyRef": {"name": "settings", "key": "colour"}}
ENV: list[dict[str, Any]] = [
    {"name": "COLOUR", "valueFrom": KEY},
    {"name": "PLAIN", "value": "a"},
    {"name": "JOINED", "value": "$(PLAIN)b $$(PLAIN)"},
]
RIGHT = {"COLOUR": "red", "PLAIN": "a", "JOINED": "ab $(PLAIN)"}


def reported(s: TraceBuilder, given: dict[str, str], **more: Any) -> None:
    """A container made with this environment."""
    web = s.pod(containers=[{"name": "c1", "image": "img:1", "env": ENV, **more}])
    envs = [{"key": key, "value": value} for key, value in given.items()]
    s.create(web, s.run_sandbox(web), config=s.container_config(web, "c1", envs=envs))


@pytest.mark.parametrize("wrong", [{"COLOUR": None}, {"PLAIN": "b"}, {"JOINED": "$(PLAIN)b"}])
@detects("START-09")
def test_environment_is_complete(s: TraceBuilder, wrong: dict[str, str | None], *, right: bool) -> None:
    """START-09 breaks when a variable is missing, has another value, or is not expanded."""
    given = RIGHT if right else {**RIGHT, **wrong}
    reported(s, {key: value for key, value in given.items() if value is not None})


def test_values_may_be_secret() -> None:
    """START-09 is kept where digests stand in the place of values."""
    s = TraceBuilder(redacted=True)
    reported(s, dict.fromkeys(RIGHT, "sha256:0123"))

    assert s.judge("START-09").verdict is Verdict.KEPT
