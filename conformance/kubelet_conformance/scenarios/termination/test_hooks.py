"""Lifecycle hooks: when they run, what waits for them, what their failure leads to."""

from kubelet_conformance.node import Node, container, exec_hook, exec_probe, pod, witness


@witness("HOOK-01", "HOOK-02", "HOOK-04", "HOOK-07")
async def test_post_start_holds_the_next_container_up(node: Node) -> None:
    """The postStart hook runs right after the start, and the pod's other containers wait until it is done."""
    web = await node.run(container("c1", lifecycle={"postStart": exec_hook("x 0 20")}), container("c2"))
    await node.restart_kubelet()
    await node.wait(10)
    await web.until_running("c1", "c2", attempt=0)


@witness("HOOK-04", undisturbed="it waits for what a fault lets pass unseen")
async def test_hooked_container_waits_while_another_is_reported(node: Node) -> None:
    """A container whose postStart hook runs is not yet shown as running when another becomes ready."""
    node.runtime.set_file("ready", there=False)
    probe = exec_probe("xf ready", periodSeconds=1)
    hooked = container("c2", lifecycle={"postStart": exec_hook("x 0 6")})
    web = await node.run(container("c1", readinessProbe=probe), hooked)
    web.exit("c2", 1)
    await web.until_called("ExecSync", "c2", done=False, count=2)
    node.runtime.set_file("ready", there=True)
    await web.until(lambda: bool(web.container_status("c1").get("ready")), "c1 ready")
    await web.until_running("c2", attempt=1)


@witness("HOOK-03", "HOOK-05", undisturbed="it waits for what a fault lets pass unseen")
async def test_failed_post_start_kills_its_container(node: Node) -> None:
    """A container whose postStart hook fails is stopped, its preStop hook first, and made again."""
    web = node.want(
        pod(container("c1", lifecycle={"postStart": exec_hook("x 1 2"), "preStop": exec_hook("x 0 1")}))
    )
    await web.until_event("FailedPostStartHook")
    await web.until_started("c1", attempt=2)


@witness("HOOK-06")
async def test_failed_pre_stop_keeps_nobody(node: Node) -> None:
    """A container whose preStop hook fails is stopped all the same, and an event reports the failure."""
    web = await node.run(container("c1", lifecycle={"preStop": exec_hook("x 1 2")}))
    web.delete()
    await web.until_event("FailedPreStopHook")
    await web.until_gone()


@witness("HOOK-05", "HOOK-14", "TERM-05")
async def test_pre_stop_hooks_run_side_by_side(node: Node) -> None:
    """The preStop hooks of a deleted pod begin together, and each stop follows its own hook."""
    web = await node.run(
        container("c1", lifecycle={"preStop": exec_hook("x 0 5")}),
        container("c2", lifecycle={"preStop": exec_hook("x 0 9")}),
    )
    web.delete()
    await web.until_gone()


@witness("HOOK-05")
async def test_pre_stop_goes_before_every_kill(node: Node) -> None:
    """The preStop hook runs before each stop: for a probe, a new image, a dead sandbox, a deletion."""
    node.runtime.set_file("alive", there=True)
    web = await node.run(
        container(
            "c1",
            lifecycle={"preStop": exec_hook("x 0 1")},
            livenessProbe=exec_probe("xf alive", periodSeconds=2, failureThreshold=1),
        )
    )
    node.runtime.set_file("alive", there=False)
    await web.until_started("c1", attempt=1)
    node.runtime.set_file("alive", there=True)
    await web.until_running("c1", attempt=1)
    node.runtime.publish_image("img:2")
    web.set_image("c1", "img:2")
    await web.until_running("c1", attempt=2)
    node.runtime.kill_sandbox(web.sandbox().id)
    await web.until_running("c1", attempt=3)
    web.delete()
    await web.until_gone()


@witness("HOOK-07")
async def test_hook_command_goes_through_no_shell(node: Node) -> None:
    """The words of a hook's command reach the runtime as they are in the manifest."""
    words = ["echo", "$HOME", "$(NAME)", "&& exit 1", "'"]
    await node.run(
        container(
            "c1",
            env=[{"name": "NAME", "value": "web"}],
            lifecycle={"postStart": {"exec": {"command": words}}},
        )
    )


@witness("HOOK-11", kubernetes=(1, 30))
async def test_sleep_hook_is_part_of_the_grace(node: Node) -> None:
    """A preStop hook that sleeps holds the stop up, and its time is taken off the grace."""
    web = await node.run(container("c1", lifecycle={"preStop": {"sleep": {"seconds": 3}}}))
    web.delete()
    await web.until_gone()


@witness("HOOK-12", undisturbed="it waits for what a fault lets pass unseen")
async def test_tcp_hook_is_a_failure(node: Node) -> None:
    """A tcpSocket hook is none that a kubelet can run: it fails."""
    web = node.want(pod(container("c1", lifecycle={"postStart": {"tcpSocket": {"port": 80}}})))
    await web.until_event("FailedPostStartHook")


@witness("HOOK-13", "HOOK-05")
async def test_hook_may_run_again_after_a_kubelet_restart(node: Node) -> None:
    """A preStop hook that a kubelet's end has cut short runs anew before the stop."""
    web = await node.run(container("c1", lifecycle={"preStop": exec_hook("x 0 8")}))
    web.delete()
    await web.until_called("ExecSync", "c1", done=False)
    await node.wait(2)
    await node.restart_kubelet()
    await web.until_gone()


@witness("START-01", "HOOK-08")
async def test_http_hook_is_asked_before_the_next_container(node: Node) -> None:
    """An httpGet hook reaches its container at the pod's address; an error status counts as an answer."""
    hooked = container(
        "c1",
        lifecycle={"postStart": {"httpGet": {"path": "/begun", "port": 8080}}},
        ports=[{"containerPort": 8080}],
    )
    node.runtime.answer_http("/begun", 500)
    web = node.want(pod(hooked, container("c2")))
    await web.until_running("c1", "c2", contract="START-02")


@witness("START-02", "HOOK-08", undisturbed="it waits for what a fault lets pass unseen")
async def test_http_hook_without_an_answer_fails(node: Node) -> None:
    """An httpGet hook without an answer fails, and its container is killed and made again."""
    node.runtime.answer_http("/begun", 0)
    web = node.want(
        pod(container("c1", lifecycle={"postStart": {"httpGet": {"path": "/begun", "port": 8080}}}))
    )
    await web.until_event("FailedPostStartHook")
    node.runtime.answer_http("/begun", 200)
    await web.until_running("c1")


@witness("HOOK-08")
async def test_http_hook_finds_its_port_by_name(node: Node) -> None:
    """An httpGet hook may name its port, and an error status keeps nothing from stopping."""
    node.runtime.answer_http("/drain", 503)
    hooked = container(
        "c1",
        lifecycle={"preStop": {"httpGet": {"path": "/drain", "port": "admin"}}},
        ports=[{"containerPort": 8080}, {"name": "admin", "containerPort": 9090}],
    )
    web = await node.run(hooked)
    web.delete()
    await web.until_gone()


@witness("EVENTS-01", undisturbed="it waits for what a fault lets pass unseen")
async def test_http_hook_with_a_port_that_is_not_there_fails(node: Node) -> None:
    """A postStart hook whose port no container has fails, and its container is killed."""
    hook = {"postStart": {"httpGet": {"path": "/begun", "port": "none"}}}
    web = node.want(pod(container("c1", lifecycle=hook)))
    await web.until_event("FailedPostStartHook")
    await web.until_started("c1", attempt=1)


@witness("HOOK-09")
async def test_https_hook_falls_back(node: Node) -> None:
    """An HTTPS hook of a server that knows no TLS is sent again without, and without its credentials."""
    node.runtime.answer_http("/begun", 200, plain=True)
    header = {"name": "Authorization", "value": "Bearer of-nobody"}
    asks = {"path": "/begun", "port": 8443, "scheme": "HTTPS", "httpHeaders": [header]}
    await node.run(container("c1", lifecycle={"postStart": {"httpGet": asks}}))
    await node.wait(15)


@witness("HOOK-10", exempt=("CRI-21",))
async def test_http_hook_of_a_pod_without_an_address(node: Node) -> None:
    """An httpGet hook cannot be sent where the pod has no address: it fails."""
    node.runtime.set_address("")
    hook = {"postStart": {"httpGet": {"path": "/begun", "port": 8080}}}
    web = node.want(pod(container("c1", lifecycle=hook), grace=2))
    await web.until_called("StartContainer")
    await node.wait(3)
    node.runtime.set_address(None)
    await web.until_running("c1")
    await node.wait(15)


@witness("HOOK-11", kubernetes=(1, 30))
async def test_sleep_hook_takes_its_time_from_the_grace(node: Node) -> None:
    """A preStop hook that sleeps delays the stop, and its time is taken off the grace."""
    web = await node.run(container("c1", lifecycle={"preStop": {"sleep": {"seconds": 3}}}))
    web.delete(grace=10)
    await web.until_gone()


@witness("RESTART-04")
async def test_lost_container_has_its_hook_before_it_is_made_again(node: Node) -> None:
    """A container that the runtime lost track of is stopped as any other one, its preStop hook first."""
    web = await node.run(container("c1", lifecycle={"preStop": exec_hook("x 0 1")}))
    node.runtime.lose_track(web.container("c1").id)
    await web.until_running("c1", attempt=1)


@witness("HOOK-03", "START-02", undisturbed="a hook is executed once, whatever becomes of that")
async def test_failed_hook_is_what_a_container_waits_for(node: Node) -> None:
    """A container whose postStart hook fails waits with that reason."""
    web = node.want(pod(container("c1", lifecycle={"postStart": exec_hook("x 1 0")})))
    await web.until_waiting("c1", "PostStartHookError")


@witness("HOOK-08", "START-02", undisturbed="a hook that could not be sent has failed")
async def test_http_hook_of_a_manifest(node: Node) -> None:
    """A hook of a static pod that names no scheme is sent in plain HTTP."""
    node.runtime.answer_http("/begun", 200)
    hooked = container("c1", lifecycle={"postStart": {"httpGet": {"path": "/begun", "port": 8080}}})
    web = node.want_static(pod(hooked))
    await web.until_running("c1", contract="START-02")
    await node.wait(5)
    kills = [each.message for each in web.events("Killing")]
    await node.expect("its hook has not failed", lambda: kills, "START-02")
