"""The plugin in a pytest project of somebody else's: found by itself, out of the way, with fixtures."""

import subprocess
import sys
from importlib.metadata import entry_points
from typing import Any

import pytest
from scenario_files import GOOD, scenario_file

from kubelet_conformance.contract.catalogue import Level
from kubelet_conformance.plugin.arguments import ARGUMENTS
from kubelet_conformance.reports.forms import FORMS

pytest_plugins = ["pytester"]

OURS = ("-p", "kubelet_conformance.plugin")
ALONE = ("--disable-plugin-autoload", "-p", "no:cacheprovider")
OWN_NODE = """
import pytest

@pytest.fixture
def node():
    return 7

async def test_own(node):
    assert node == 8
"""
SYNCHRONOUS = "def test_sync(node):\n    node.want(1)\n"
IN_A_FIXTURE = """
import pytest

@pytest.fixture
def web(node):
    return node.run()

async def test_web(node, web):
    pass
"""
OWN_KUBELET = '''
import asyncio

from cri_api.v1 import api_pb2 as cri


class Kubelet:
    """Runs a sandbox for each pod, under a name that is `wrong` or right."""

    def __init__(self, runtime, api, wrong):
        self.runtime, self.api, self.wrong = runtime, api, wrong

    async def sync(self):
        for pod in self.api.list_objects("pods")[0]:
            names = pod["metadata"]
            metadata = cri.PodSandboxMetadata(
                name=names["name"] + self.wrong, namespace=names["namespace"], uid=names["uid"])
            config = cri.PodSandboxConfig(metadata=metadata)
            await self.runtime.RunPodSandbox(cri.RunPodSandboxRequest(config=config))


def test_names(fake_runtime, fake_api, virtual_clock, judge):
    async def life():
        spec = {"containers": [{"name": "c", "image": "i"}]}
        fake_api.world.create({"metadata": {"name": "web"}, "spec": spec})
        await Kubelet(fake_runtime, fake_api.connection, "WRONG").sync()
        await asyncio.sleep(60)

    virtual_clock.run(life())
    judged = judge("LOOP-05", "WORK-*")
    assert judged.trace.records == 4
'''


@pytest.fixture
def ended(pytester: pytest.Pytester) -> Any:
    """How pytest ends with the plugin on such a file, and what it prints; arguments are pytest's."""

    def run(text: str, *arguments: str) -> tuple[int, str]:
        pytester.makepyfile(test_mine=text)
        result = pytester.runpytest_inprocess(*OURS, *ALONE, *arguments)
        return int(result.ret), result.stdout.str()

    return run


def test_pytest_finds_the_plugin() -> None:
    """Installed, the package names its plugin to pytest, as `-p` does."""
    assert "kubelet_conformance.plugin" in {each.value for each in entry_points(group="pytest11")}


def test_idle_plugin_imports_nothing() -> None:
    """A pytest that plays no scenario loads the plugin's options and fixtures, and nothing of the suite."""
    program = (
        "import sys, pytest; pytest.main(['--co', '-q', '-p', 'kubelet_conformance.plugin', '/dev/null']);"
        "print(sorted(name for name in sys.modules if name.startswith(('kubelet_', 'grpc', 'lightkube'))))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.splitlines()[-1]

    assert printed == str(
        [
            "kubelet_conformance",
            "kubelet_conformance.plugin",
            "kubelet_conformance.plugin.arguments",
            "kubelet_conformance.plugin.fixtures",
        ]
    )


def test_options_offer_what_there_is() -> None:
    """The options name the levels and forms, which they do not import."""
    assert ARGUMENTS["level"]["choices"] == tuple(level.value.lower() for level in Level)
    assert ARGUMENTS["format"]["choices"] == FORMS


def test_node_of_somebody_else_is_left_alone(ended: Any) -> None:
    """A test that takes another fixture named `node` is no scenario."""
    code, printed = ended(OWN_NODE)

    assert (code, "Played" in printed) == (1, False)
    assert "async def functions are not natively supported" in printed


@pytest.mark.parametrize(("text", "what"), [(SYNCHRONOUS, "node.want"), (IN_A_FIXTURE, "node.run")])
def test_node_too_early_is_explained(ended: Any, text: str, what: str) -> None:
    """A plain test or a fixture that uses `node` is told that there is none yet, and what to write."""
    code, printed = ended(text)

    assert code == 1
    assert f"{what}: there is no node yet, it is made when the scenario runs" in printed
    assert "`async def test_" in printed


def test_failed_scenario_shows_its_break(ended: Any) -> None:
    """The test's own failure has the rule, the records and the break."""
    probed = '''
async def test_probed(node: Node) -> None:
    """A container whose readiness probe fails."""
    probe = {"exec": {"command": ["x", "1", "0"]}, "periodSeconds": 2, "failureThreshold": 1}
    await node.run(container("c1", readinessProbe=probe))
    await node.wait(20)
'''
    choice = ("--kc-kubelet=bug:K8S-9649", "--kc-contract=PROBE-10", "--kc-scenario=*")
    code, printed = ended(scenario_file(probed), *choice)
    failure = printed.partition("= FAILURES =")[2].partition("Played 1 scenario")[0]

    assert code == 1
    assert "broken: PROBE-10\nPROBE-10 (MUST): " in failure
    assert "StopContainer c1#0" in failure


def test_own_kubelet_is_judged(ended: Any) -> None:
    """A test of a kubelet in this process passes, and fails with what its calls break."""
    kept = ended(OWN_KUBELET.replace("WRONG", "").replace('"LOOP-05", "WORK-*"', '"WORK-*"'))
    code, printed = ended(OWN_KUBELET.replace("WRONG", "x").replace('"LOOP-05", "WORK-*"', '"SANDBOX-*"'))

    assert kept[0] == 0, kept[1]
    assert code == 1
    assert "SANDBOX-01 (MUST): " in printed
    assert "the sandbox is called default/webx, the pod default/web" in printed


def test_named_contract_must_be_exercised(ended: Any) -> None:
    """A contract that is named in full fails the test where the trace says nothing of it."""
    code, printed = ended(OWN_KUBELET.replace("WRONG", "").replace("WORK-*", "SANDBOX-04"))

    assert code == 1
    assert "SANDBOX-04: not exercised" in printed


def test_virtual_time_runs_once(ended: Any) -> None:
    """A second coroutine on the same clock is refused: the fakes live on the loop of the first."""
    code, printed = ended(
        OWN_KUBELET.replace("    judged = ", "    virtual_clock.run(life())\n    judged = ")
    )

    assert code == 1
    assert "virtual time runs once a test: do all of it in one coroutine" in printed


@pytest.mark.campaign
def test_workers_of_xdist_without_our_options(pytester: pytest.Pytester) -> None:
    """A scenario that only a worker finds is reported; another test's failure still fails the run."""
    pytester.makepyfile(test_a="def test_wrong():\n    assert False\n", test_b=scenario_file(GOOD))
    ended = pytester.run(sys.executable, "-m", "pytest", *OURS, "-p", "no:asyncio", "-n", "1")

    assert ended.ret == 1
    ended.assert_outcomes(passed=1, failed=1)
    assert "Played 1 scenario" in ended.stdout.str()
