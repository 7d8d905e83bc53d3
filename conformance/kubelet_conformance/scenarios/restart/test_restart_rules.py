"""Containers that say themselves when they are run again."""

from typing import Any

from kubelet_conformance.node import Node, container, exec_hook, pod, witness

RULES, ALL = (1, 35), (1, 36)
"""The versions that have these features on."""


def own(policy: str, *rules: tuple[str, int]) -> dict[str, Any]:
    """A restart policy of a container's own, with rules for exit codes."""
    found = [{"action": action, "exitCodes": {"operator": "In", "values": [code]}} for action, code in rules]
    return {"restartPolicy": policy, **({"restartPolicyRules": found} if found else {})}


@witness("RESTART-19", kubernetes=RULES)
async def test_own_policy_overrides_that_of_the_pod(node: Node) -> None:
    """In a pod that never restarts, one container always does and one after failures."""
    job = await node.run(
        container("c1", **own("Always")),
        container("c2", **own("OnFailure")),
        container("c3"),
        restart="Never",
    )
    job.exit("c1", 0)
    job.exit("c2", 1)
    await job.until_running("c1", "c2", attempt=1)
    job.exit("c3", 1)
    await node.wait(30)


@witness("RESTART-19", kubernetes=RULES)
async def test_own_never_in_a_pod_that_restarts(node: Node) -> None:
    """In a pod that always restarts, a container with policy Never of its own stays as it ended."""
    web = await node.run(container("c1", **own("Never")), container("c2"))
    web.exit("c1", 1)
    await node.wait(30)
    web.exit("c2", 0)
    await web.until_running("c2", attempt=1)


@witness("RESTART-19", kubernetes=RULES)
async def test_pod_of_nothing_but_own_never_ends(node: Node) -> None:
    """A pod that always restarts ends with its containers where each has the policy Never of its own."""
    job = node.want(pod(container("c1", "exit 0 2", **own("Never")), name="job"))
    bad = node.want(pod(container("c1", "exit 3 2", **own("Never")), name="bad"))
    await job.until_phase("Succeeded")
    await bad.until_phase("Failed")


@witness("RESTART-20", kubernetes=RULES)
async def test_first_rule_that_fits_decides(node: Node) -> None:
    """An exit code that a rule names restarts the container, another one is its end."""
    job = await node.run(
        container("c1", **own("Never", ("Restart", 42), ("Restart", 43))), container("c2"), restart="Never"
    )
    job.exit("c1", 42)
    await job.until_running("c1", attempt=1)
    job.exit("c1", 7)
    await node.wait(30)


@witness("RESTART-20", kubernetes=RULES)
async def test_rule_may_name_what_it_does_not_fit(node: Node) -> None:
    """A rule for all exit codes but some restarts the container after any other."""
    but = {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [42]}}
    job = await node.run(
        container("c1", restartPolicy="Never", restartPolicyRules=[but]), container("c2"), restart="Never"
    )
    job.exit("c1", 7)
    await job.until_running("c1", attempt=1)
    job.exit("c1", 42)
    await node.wait(30)


@witness("RESTART-21", kubernetes=RULES)
async def test_init_container_with_one_try(node: Node) -> None:
    """An init container that may fail once only fails its pod, though the pod would restart it."""
    web = node.want(pod(init=(container("i1", "exit 3 1", **own("Never")), container("i2", "exit 0 1"))))
    await web.until_phase("Failed")
    await node.wait(5)


@witness("RESTART-22", "COND-10", kubernetes=ALL)
async def test_exit_code_restarts_the_whole_pod(node: Node) -> None:
    """A code that restarts all runs the pod anew in its sandbox, inits first, without any hook."""
    web = await node.run(
        container("c1", **own("Never", ("RestartAllContainers", 42))),
        container("c2", lifecycle={"preStop": exec_hook("x 0 5")}),
        init=(container("i1", "exit 0 1"),),
    )
    await node.wait(5)
    web.exit("c1", 42)
    await web.until_running("c1", "c2", attempt=1)
    await node.wait(15)


@witness("RESTART-22", kubernetes=ALL)
async def test_restart_of_all_goes_on_after_a_failure(node: Node) -> None:
    """A record that cannot be removed delays the restart of the whole pod, which is not forgotten."""
    web = await node.run(
        container("c1", **own("Never", ("RestartAllContainers", 42))), init=(container("i1", "exit 0 1"),)
    )
    await node.wait(5)
    with node.fault("RemoveContainer", times=1):
        web.exit("c1", 42)
        await web.until_called("RemoveContainer")
    await web.until_running("c1", attempt=1, within=60)
    await node.wait(5)


@witness("RESTART-23", kubernetes=ALL, undisturbed="it waits for what a fault lets pass unseen")
async def test_init_that_fails_after_it_ends_the_pod(node: Node) -> None:
    """After a restart of all, a failed init container is the end of a pod that runs once."""
    job = await node.run(
        container("c1", **own("Never", ("RestartAllContainers", 42))),
        init=(container("i1", "seq 0@1 1@1"),),
        restart="Never",
    )
    await node.wait(5)
    job.exit("c1", 42)
    await job.until_phase("Failed")
    await node.wait(5)


@witness("TERM-28", kubernetes=(1, 33), feature_gates={"ContainerStopSignals": True})
async def test_stop_signal_of_its_own(node: Node) -> None:
    """A container with its own stop signal passes that to the runtime, and its status reports it."""
    web = await node.run(container("c1", lifecycle={"stopSignal": "SIGUSR1"}), os={"name": "linux"})
    await node.wait(3)
    web.delete()
    await web.until_gone()
