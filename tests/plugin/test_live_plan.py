"""What a scenario needs is learnt from a dry run, and decides where it is played."""

import pytest

from kubelet_conformance.node import Node, Scenario, container, pod, scenario_of, witness
from kubelet_conformance.plugin.live.dry_run import DryRun, Place, dry_run, placed
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice

OWN = frozenset({"set_file", "add_image", "publish_image"})


def tried(name: str) -> DryRun:
    """The dry run of one of our scenarios."""
    return dry_run(every_scenario()[name], name, Choice(), {})


def place(name: str, controls: frozenset[str] = frozenset(), budget: float = 120) -> tuple[str, str]:
    """Where one of our scenarios is played, and why."""
    found = placed(scenario_of(every_scenario()[name]), tried(name), budget, controls)
    return found.place.value, found.reason


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sync.new_pod_goes_step_by_step", ("shared", "")),
        ("sync.new_sandbox_has_to_be_read", ("not applicable", "needs a scripted runtime: inject")),
        ("sync.pod_waits_for_the_network", ("not applicable", "needs a scripted runtime: set_conditions")),
        ("probes.failing_liveness_kills_once", ("not applicable", "needs a scripted runtime: set_file")),
        ("backoff.delays_double_up_to_the_cap", ("not applicable", "needs 11 min of wall time")),
        ("images.image_is_looked_for_before_it_is_pulled", ("not applicable", "needs a registry")),
        (
            "sandbox.sysctls_are_given_with_dots",
            ("not applicable", "needs an interface eth0.100 in its pods"),
        ),
        ("kubelet_restart.ended_pods_stay_ended", ("alone", "starts and ends the kubelet")),
        ("admission.memory_counts", ("alone", "sets memory_bytes")),
        ("events.events_need_no_listener", ("alone", "touches the whole node: api.inject")),
        ("admission.host_port_is_given_once", ("alone", "takes ports of the node")),
        ("eviction.one_pod_at_a_time", ("not applicable", "needs a machine that can be short")),
    ],
)
def test_place_of_our_scenarios(name: str, expected: tuple[str, str]) -> None:
    """A scenario is played beside others unless it says otherwise by what it does; the reason is given."""
    found, reason = place(name)

    assert found == expected[0]
    assert reason.startswith(expected[1])


def test_runtime_of_our_own_can_do_more() -> None:
    """What a runtime can be made to do makes scenarios applicable; what touches others keeps them alone."""
    assert place("probes.failing_liveness_kills_once", OWN) == ("shared", "")
    assert place("images.image_is_looked_for_before_it_is_pulled", OWN) == (
        "alone",
        "changes the images of the node",
    )
    assert place("images.latest_goes_without_saying", OWN)[1].startswith(
        "needs a registry with registry/app@"
    )
    assert place("sync.new_sandbox_has_to_be_read", OWN | {"inject"}) == (
        "alone",
        "makes the runtime misbehave",
    )


def test_budget_is_the_users() -> None:
    """A scenario is played if its wall time is within the budget; none is shortened to fit."""
    assert place("loop.death_tidies_up", budget=30) == ("not applicable", "needs 47 s of wall time")
    assert place("backoff.delays_double_up_to_the_cap", budget=1000)[0] == "shared"


def test_rehearsal_tells_what_was_used() -> None:
    """Controls, kinds of objects, images, host ports and the time are all noted."""

    async def scenario(node: Node) -> None:
        port = {"containerPort": 80, "hostPort": 8080}
        await node.run(container(image="img:2", ports=[port]))
        node.api.put("ConfigMap", {"metadata": {"name": "settings", "namespace": "default"}})
        await node.wait(7)

    found = dry_run(scenario, "mine", Choice(), {})

    assert {"api.create", "api.put ConfigMap"} <= found.uses
    assert found.images == {"img:2"}
    assert found.host_ports
    assert 7 < found.seconds < 20
    assert not found.pulled
    assert not found.handlers
    assert not found.servers


def test_rehearsal_of_a_scenario_that_fails() -> None:
    """A scenario that fails in its dry run may do well elsewhere: how far it came decides."""

    async def scenario(node: Node) -> None:
        node.want(pod())
        node.runtime.restart()
        raise ValueError("boom")

    found = dry_run(scenario, "mine", Choice(), {})

    assert placed(Scenario(), found, 120).reason == "needs a scripted runtime: restart"


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("sync.new_pod_goes_step_by_step", ""),
        ("bugs.orphan_is_stopped_with_its_sandbox", "a file cannot be removed with a grace period"),
        ("events.events_need_no_listener", "an outage of it"),
        ("garbage.only_so_many_dead_containers_stay", "a kubelet whose maximum_dead_containers can be set"),
    ],
)
def test_needs_of_a_manifest_folder_are_known_before(name: str, refused: str) -> None:
    """What needs an API server, or a setting that no file has, is left out before a kubelet is started."""
    found = dry_run(every_scenario()[name], name, Choice(kubelet="reference-process"), {}, by_files=True)

    assert found.refused.removeprefix("an API server: ") == refused
    assert placed(Scenario(), found, 600, OWN | {"inject"}).reason.endswith(refused)


def test_liars_are_for_scripted_runtimes() -> None:
    """A scenario that makes the runtime break contracts needs a scripted one."""

    @witness(exempt=("CRI-01",))
    async def scenario(node: Node) -> None:
        await node.run()

    found = placed(scenario_of(scenario), dry_run(scenario, "mine", Choice(), {}), 120)

    assert (found.place, found.reason) == (
        Place.NOWHERE,
        "needs a scripted runtime: one that breaks contracts",
    )
