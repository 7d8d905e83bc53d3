"""Sandboxes: when a pod gets a new one, what it is made of, and what happens to the old."""

from kubelet_conformance.node import Node, container, pod, runtime_class, witness


@witness("SANDBOX-02", "SANDBOX-04", "SANDBOX-09", "SANDBOX-17", "SANDBOX-18")
async def test_killed_sandbox_is_replaced(node: Node) -> None:
    """A pod whose sandbox died is stopped and gets a new sandbox with the next attempt."""
    web = await node.run(container("c1"), container("c2"))
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", "c2", attempt=1)


@witness("SANDBOX-03")
async def test_sandbox_made_last_counts(node: Node) -> None:
    """While the record of a dead sandbox stands, what happens to the pod happens in the one made last."""
    web = await node.run()
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)
    await node.wait(30)


@witness("SANDBOX-23", "SANDBOX-08", undisturbed="it waits for what a fault lets pass unseen")
async def test_ephemeral_container_does_not_keep_its_pod(node: Node) -> None:
    """A pod of which only an ephemeral container still runs is done, and stopped."""
    job = await node.run(container("c1", "exit 0 10"), name="job", restart="Never")
    job.debug(container("debugger"))
    await job.until_running("debugger")
    await job.until_phase("Succeeded")
    await job.until_stopped()


@witness("SANDBOX-01", "SANDBOX-11", "SANDBOX-12", "SANDBOX-16", "SANDBOX-17")
async def test_sandbox_is_of_its_pod(node: Node) -> None:
    """A sandbox has its pod's name, namespace, UID, labels and annotations, and its own log directory."""
    metadata = {
        "namespace": "shop",
        "labels": {"app": "web", "empty": ""},
        "annotations": {"example.com/note": "of this pod"},
    }
    web = await node.run(container("c1"), container("c2"), metadata={"name": "web", **metadata})
    web.exit("c2", 1)
    await web.until_running("c2", attempt=1)


@witness("SANDBOX-13", "SANDBOX-15")
async def test_host_is_shared_as_asked(node: Node) -> None:
    """A sandbox shares with the node, or among its containers, just the namespaces that the spec says."""
    for name, fields in {
        "alone": {},
        "network": {"hostNetwork": True},
        "all": {"hostNetwork": True, "hostPID": True, "hostIPC": True},
        "together": {"shareProcessNamespace": True, "hostIPC": True},
    }.items():
        await node.run(name=name, **fields)


@witness("SANDBOX-13")
async def test_hostname_is_cut(node: Node) -> None:
    """The hostname is the one in the spec, or the pod's name, of which 63 characters are kept."""
    await node.run(name="named", hostname="shop", subdomain="example")
    long = await node.run(name=f"{'n' * 62}-and-more")
    await long.until_condition("Ready")


@witness("SANDBOX-14")
async def test_ports_of_app_containers_are_mapped(node: Node) -> None:
    """Host ports of app containers are mapped, those of init containers are not."""
    ports = [
        {"containerPort": 80, "hostPort": 8080},
        {"containerPort": 53, "hostPort": 5353, "protocol": "UDP", "hostIP": "127.0.0.1"},
        {"containerPort": 9090},
    ]
    init = container("i1", "exit 0 1", ports=[{"containerPort": 81, "hostPort": 8181}])
    await node.run(container("c1", ports=ports[:2]), container("c2", ports=ports[2:]), init=(init,))


@witness("SANDBOX-24", needs="an interface eth0.100 in its pods")
async def test_sysctls_are_given_with_dots(node: Node) -> None:
    """A sysctl written with slashes reaches the runtime with dots, a dot within a segment as a slash."""
    sysctls = [
        {"name": "net/ipv4/ip_local_port_range", "value": "1024 65535"},
        {"name": "net/ipv4/conf/eth0.100/rp_filter", "value": "1"},
        {"name": "kernel.shm_rmid_forced", "value": "1"},
    ]
    await node.run(securityContext={"sysctls": sysctls})


@witness("SANDBOX-16", "CRI-35")
async def test_runtime_class_gives_the_handler(node: Node) -> None:
    """A pod is run by the handler of its runtime class, and not at all while there is no such class."""
    strong = runtime_class("strong", "runc")
    node.api.put("RuntimeClass", strong)
    web = await node.run(runtimeClassName="strong")
    node.api.remove("RuntimeClass", "", "strong")
    node.runtime.kill_sandbox(web.sandbox().id)
    await node.wait(30)
    node.api.put("RuntimeClass", strong)
    await web.until_running("c1", attempt=1)


@witness("SANDBOX-16")
async def test_runtime_class_that_was_removed(node: Node) -> None:
    """The handler of a class that is there no more is not used any more."""
    node.api.put("RuntimeClass", runtime_class("strong", "runc"))
    web = await node.run(runtimeClassName="strong")
    before = len(web.calls("RunPodSandbox"))
    node.api.remove("RuntimeClass", "", "strong")
    await node.wait(5)
    node.runtime.kill_sandbox(web.sandbox().id)
    await node.wait(30)
    again = [str(each.request.config.metadata.attempt) for each in web.calls("RunPodSandbox")[before:]]
    await node.expect("it has no other sandbox", lambda: again, "SANDBOX-16")


@witness("SANDBOX-16", undisturbed="another kubelet starts nothing without the API server")
async def test_runtime_class_outlasts_an_outage(node: Node) -> None:
    """While the API server is away a pod is run by the handler that its class was last seen to have."""
    node.api.put("RuntimeClass", runtime_class("strong", "runc"))
    web = await node.run(runtimeClassName="strong")
    with node.outage():
        node.runtime.kill_sandbox(web.sandbox().id)
        await web.until_started("c1", attempt=1, contract="SANDBOX-16")


@witness("CRI-35", "SANDBOX-10")
async def test_handler_that_the_runtime_lacks(node: Node) -> None:
    """A handler that the runtime does not have is refused, however often it is asked for."""
    node.api.put("RuntimeClass", runtime_class("odd", "nope"))
    web = node.want(pod(runtimeClassName="odd"))
    await web.until_called("RunPodSandbox", count=2)
    await web.until_event("FailedCreatePodSandBox", count=2)


@witness("SANDBOX-05", "SANDBOX-02", "INIT-12")
async def test_init_begins_anew_in_the_new_sandbox(node: Node) -> None:
    """Before a sandbox is replaced the records of init containers go, and all of them run once more."""
    inits = (container("i1", "exit 0 2"), container("i2", "exit 0 2"))
    web = await node.run(container("c1"), init=inits)
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=1)


@witness("SANDBOX-06", undisturbed="what has ended well is not run again by a later sync")
async def test_run_once_pod_is_not_run_again(node: Node) -> None:
    """The sandbox of a pod that runs once is stopped when it dies, and not replaced."""
    job = await node.run(name="job", restart="Never")
    node.runtime.kill_sandbox(job.sandbox().id)
    await job.until_phase("Succeeded")
    await node.wait(15)


@witness("SANDBOX-06", "SANDBOX-02")
async def test_run_once_pod_that_never_ran_gets_its_sandbox(node: Node) -> None:
    """The sandbox of a pod that runs once is replaced when it dies before any container was made in it."""
    node.runtime.publish_image("registry/late:1", there=False)
    job = node.want(pod(container(image="registry/late:1"), name="job", restart="Never"))
    await job.until_waiting("c1", "ErrImagePull")
    node.runtime.kill_sandbox(job.sandbox().id)
    node.runtime.publish_image("registry/late:1")
    await job.until_running("c1")


@witness("SANDBOX-07", "SANDBOX-02", undisturbed="what has ended well is not run again by a later sync")
async def test_success_is_not_repeated_in_the_new_sandbox(node: Node) -> None:
    """In a new sandbox of a pod that is restarted on failure only what has not succeeded runs again."""
    job = await node.run(container("c1"), container("c2"), name="job", restart="OnFailure")
    job.exit("c1", 0)
    await job.until_terminated("c1")
    node.runtime.kill_sandbox(job.sandbox().id)
    await job.until_running("c2", attempt=1)
    await node.wait(15)


@witness("SANDBOX-07", "SANDBOX-02", kubernetes=(1, 27))
async def test_what_never_ran_has_not_succeeded(node: Node) -> None:
    """A container that could not be started before its sandbox died runs in the next one."""
    with node.fault("StartContainer", effect="before"):
        job = node.want(pod(name="job", restart="OnFailure"))
        await job.until_called("StartContainer", done=False)
        node.runtime.kill_sandbox(job.sandbox().id)
        await node.wait(3)
    await job.until_running("c1", within=60)


@witness("SANDBOX-08", "SYNC-08")
async def test_completed_pod_loses_its_sandbox(node: Node) -> None:
    """The sandbox of a pod that is done is stopped, and none comes in its place."""
    ends = (container("c1", "exit 0 2"), container("c2", "exit 0 5"))
    job = node.want(pod(*ends, name="job", restart="OnFailure"))
    await job.until_phase("Succeeded")
    await job.until_stopped()
    await node.wait(15)


@witness("SANDBOX-08")
async def test_sandbox_dies_with_the_last_success(node: Node) -> None:
    """A sandbox that dies when all containers have just succeeded is not replaced."""
    job = await node.run(container("c1"), container("c2"), name="job", restart="OnFailure")
    job.exit("c1", 0)
    job.exit("c2", 0)
    node.runtime.kill_sandbox(job.sandbox().id)
    await job.until_phase("Succeeded")
    await node.wait(15)


@witness("SANDBOX-10", undisturbed="a fault of its own comes at a call that it counts")
async def test_failed_sandbox_is_tried_again(node: Node) -> None:
    """A sandbox that could not be run is tried again every few seconds until it can be."""
    with node.fault("RunPodSandbox", code="UNKNOWN", message="failed to set up the pod network", times=3):
        web = node.want(pod())
        await web.until_event("FailedCreatePodSandBox", count=2)
        await web.until_running("c1")


_GIVEN_UP_AFTER = 38, 45
"""Twice the time that other calls have, in seconds: at least, and at most."""


@witness(
    "SANDBOX-10",
    runtime_request_timeout=20,
    undisturbed="a fault of its own comes at a call that it counts",
)
async def test_sandbox_that_does_not_come_is_given_up(node: Node) -> None:
    """To make a sandbox the runtime has twice the time of another call."""
    with node.fault("RunPodSandbox", effect="hang", times=1):
        web = node.want(pod())
        await web.until_called("RunPodSandbox", done=False)
        began = node.now
        await web.until_event("FailedCreatePodSandBox", within=90)
    took = node.now - began
    wrong = [] if _GIVEN_UP_AFTER[0] <= took <= _GIVEN_UP_AFTER[1] else [f"it took {took:.0f} s"]
    await node.expect("a sandbox is given up in its time", lambda: wrong, "EVENTS-01")
    await web.until_running("c1")


@witness("SANDBOX-10", undisturbed="a fault of its own comes at a call that it counts")
async def test_errors_of_sandboxes_are_reported(node: Node) -> None:
    """The event of a sandbox that could not be run has the runtime's error, whatever its code."""
    for code in ("CANCELLED", "RESOURCE_EXHAUSTED", "NOT_FOUND"):
        with node.fault("RunPodSandbox", code=code, message="there is no room", times=1):
            web = node.want(pod(name=code.replace("_", "-").lower()))
            await web.until_event("FailedCreatePodSandBox")
            await web.until_running("c1")


@witness("SANDBOX-02", "SANDBOX-04", "SANDBOX-09")
async def test_sandbox_without_address_is_replaced(node: Node) -> None:
    """A sandbox that should have an address and has none is replaced; the host's network gives none."""
    with node.addresses(""):
        web = node.want(pod())
        await node.run(name="host", hostNetwork=True)
        await web.until_called("RunPodSandbox", count=2)
    await web.until_condition("Ready")


@witness(
    "SANDBOX-02",
    "SANDBOX-03",
    exempt=("CRI-05", "CRI-19"),
    undisturbed="a fault of its own comes at a call that it counts",
)
async def test_two_ready_sandboxes_are_one_too_many(node: Node) -> None:
    """Of a pod with two ready sandboxes neither is trusted: both are stopped, and another one is run."""
    with node.fault("StopPodSandbox", effect="pretend", times=1):
        with node.addresses(""):
            web = node.want(pod())
            await web.until_called("RunPodSandbox")
            await node.wait(0.5)
        await web.until_called("RunPodSandbox", count=3)
    await web.until_running("c1")
    await node.wait(20)


@witness("SANDBOX-02", "SANDBOX-04")
async def test_other_network_takes_another_sandbox(node: Node) -> None:
    """A pod that is to use the node's network from now on is stopped, and gets a sandbox in that."""
    metadata = {"uid": "33333333-2222-4333-8444-555555555555"}
    web = node.want_static(pod(metadata=metadata))
    await web.until_running("c1")
    node.want_static(pod(metadata=metadata, hostNetwork=True))
    await web.until_running("c1", attempt=1)


@witness("SANDBOX-21")
async def test_address_that_is_none_is_not_shown(node: Node) -> None:
    """An invalid address that the runtime reports is not shown in the status."""
    with node.addresses("pending"):
        web = node.want(pod())
        await web.until_phase("Running")
        await node.wait(5)


@witness("SANDBOX-22")
async def test_addresses_of_both_families(node: Node) -> None:
    """A pod that has several addresses shows one of each family, that of the node's family first."""
    with node.addresses("fd00:10::7,10.88.7.7,10.88.7.8"):
        web = node.want(pod())
        await web.until_condition("Ready")
        await node.wait(5)


@witness(
    "SANDBOX-22", "HOOK-08", "PROBE-20", "START-10", undisturbed="it waits for what a fault lets pass unseen"
)
async def test_first_address_is_the_one_that_is_asked(node: Node) -> None:
    """Of several addresses the first is what variables, hooks and probes mean by the pod's."""
    fields = {"IP": "status.podIP", "IPS": "status.podIPs"}
    both = ("127.77.0.7", "::1")
    web = container(
        env=[{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()],
        lifecycle={"postStart": {"httpGet": {"path": "/hook", "port": 8080}}},
        readinessProbe={"httpGet": {"path": "/probe", "port": 8080}},
    )
    with node.addresses(",".join(both)):
        shop = await node.run(web, container("c2"))
        await shop.until_condition("Ready")
    hosts = {path: node.runtime.headers(path).get("host", "") for path in ("/hook", "/probe")}
    wrong = [f"{path} at {host}" for path, host in hosts.items() if host != f"{both[0]}:8080"]
    await node.expect("the first address is asked", lambda: wrong, "HOOK-08")
    created = shop.calls("CreateContainer", "c1")[0].request.config
    given = {each.key: each.value for each in created.envs if each.key in fields}
    wrong = [] if given == {"IP": both[0], "IPS": ",".join(both)} else [f"variables: {given}"]
    await node.expect("variables have the first address, and all", lambda: wrong, "START-15")


@witness("SANDBOX-20", "SANDBOX-01")
async def test_completed_pod_keeps_its_address(node: Node) -> None:
    """A pod keeps its address in its status when its sandbox has been stopped."""
    job = node.want(pod(container(command="exit 0 5"), name="job", restart="Never"))
    await job.until_phase("Succeeded")
    await node.wait(10)


@witness("SANDBOX-20")
async def test_address_goes_with_the_last_record(node: Node) -> None:
    """A pod of which no record is left has no address until its next sandbox was read."""
    web = await node.run()
    first = web.status["podIP"]
    node.runtime.remove_sandbox(web.sandbox().id)
    await web.until(lambda: web.status.get("podIP", first) != first, "the address of its next sandbox")


@witness("SANDBOX-19", "TERM-15")
async def test_failed_stop_of_a_sandbox_is_repeated(node: Node) -> None:
    """A pod has not ended while its sandbox could not be stopped, which is tried again."""
    web = await node.run()
    with node.fault("StopPodSandbox", code="UNKNOWN", message="network teardown failed", times=2):
        web.delete()
        await web.until_gone()


@witness("SANDBOX-19", "SANDBOX-04")
async def test_old_sandbox_has_to_stop_first(node: Node) -> None:
    """A dead sandbox is not replaced before it could be stopped."""
    web = await node.run()
    with node.fault("StopPodSandbox", code="UNKNOWN", message="network teardown failed", times=2):
        node.runtime.kill_sandbox(web.sandbox().id)
        await web.until_running("c1", attempt=1)


@witness("SANDBOX-26", "SANDBOX-18")
async def test_failed_stop_of_a_container_keeps_nothing_up(node: Node) -> None:
    """A container that could not be stopped does not keep its sandbox; the kill is repeated all the same."""
    web = await node.run(container("c1"), container("c2"))
    with node.fault("StopContainer", code="UNKNOWN", times=1, container="c1"):
        web.delete()
        await web.until_gone()


@witness("EVENTS-01", "SANDBOX-09")
async def test_replacement_has_an_event(node: Node) -> None:
    """That a sandbox is replaced is reported by an event."""
    web = await node.run()
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_event("SandboxChanged", within=30)
    await web.until_running("c1", attempt=1)
