"""The plugin's fixtures, and which tests are scenarios.

Every pytest on the machine loads this module, so what a fixture needs is imported when a test asks for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import pytest

if TYPE_CHECKING:
    # Late: it takes longer than pytest itself.
    from kubelet_conformance.contract.checking import Judged
    from kubelet_conformance.targets.in_process.api_server import RecordedApi
    from kubelet_conformance.targets.in_process.fake_world import FakeWorld, RecordedRuntime, VirtualClock


def is_scenario(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """Whether a test is a scenario: a coroutine that takes our `node`, and not a fixture of that name."""
    if not isinstance(item, pytest.Function) or "node" not in item.fixturenames:
        return False
    fixtures: Any = vars(item)["_fixtureinfo"]
    is_ours = fixtures.name2fixturedefs["node"][-1].func.__module__ == __name__
    return is_ours and "node" in fixtures.argnames and inspect.iscoroutinefunction(item.obj)


class _NoNodeYet:
    """Stands for a scenario's node while fixtures are set up, and explains itself to its user."""

    def __init__(self, test: str) -> None:
        self._test = test

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"node.{name}: there is no node yet, it is made when the scenario runs. "
            f"Use it in a test such as `async def {self._test}(node)`, and write a helper that takes it, "
            "no fixture"
        )


@pytest.fixture
def node(request: pytest.FixtureRequest) -> object:
    """The node that a scenario plays on; it is made on the scenario's own loop, when the scenario runs."""
    return _NoNodeYet(str(request.node.name).partition("[")[0])


@pytest.fixture
def fake_world() -> FakeWorld:
    """The fakes around a kubelet of your own in this process; what they are asked is recorded."""
    from kubelet_conformance.targets.in_process.fake_world import FakeWorld  # noqa: PLC0415 - see above

    return FakeWorld()


@pytest.fixture
def virtual_clock(fake_world: FakeWorld) -> VirtualClock:
    """The clock of the fakes; `virtual_clock.run(coroutine)` plays a test's coroutine in no time."""
    return fake_world.clock


@pytest.fixture
def fake_runtime(fake_world: FakeWorld) -> RecordedRuntime:
    """A container runtime in memory: the calls of the CRI, and what happens there without a call."""
    return fake_world.runtime


@pytest.fixture
def fake_api(fake_world: FakeWorld) -> RecordedApi:
    """An API server in memory: `world` creates and deletes pods, `connection` is the kubelet's way to it."""
    return fake_world.api


@pytest.fixture
def judge(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Judged]:
    """Judge what was recorded: `judge("SANDBOX-*")` fails the test if one of these contracts is broken.

    `judge(trace=PATH)` judges that trace, `judge()` by all contracts. An id that is named in full must have
    been exercised.
    """
    from kubelet_conformance.plugin.trace_judge import judged_by  # noqa: PLC0415 - see above

    def judge(*ids: str, trace: str | Path | None = None) -> Judged:
        path = tmp_path / "trace.jsonl" if trace is None else Path(trace)
        if trace is None:
            path.write_bytes(request.getfixturevalue("fake_world").trace())
        judged, wrong = judged_by(ids, path)
        if wrong:
            pytest.fail(wrong, pytrace=False)
        return judged

    return judge
