"""Starts: how a container is made and started, and what it is given."""

from kubelet_conformance.node import Node, container, exec_hook, pod, witness


@witness("START-01", "START-05", "START-07", "START-08", "START-10", "START-12", "START-14")
async def test_instances_follow_each_other(node: Node) -> None:
    """Each instance has its own number, log and message file, and what a later kubelet needs to know."""
    hooks = {"postStart": exec_hook("x 0 0.5"), "preStop": exec_hook("x 0 1")}
    termination = {
        "terminationMessagePath": "/last-words",
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    busy = container("c1", "seq 1@2 2@2 run", ports=[{"containerPort": 80}], lifecycle=hooks, **termination)
    web = node.want(pod(busy, container("c2"), grace=12))
    await web.until_running("c1", attempt=2)
    web.delete()
    await web.until_gone()


@witness(
    "START-04",
    "START-02",
    "START-14",
    "CSTAT-15",
    undisturbed="a fault of its own comes at a call that it counts",
)
async def test_container_that_could_not_be_started_is_not_used(node: Node) -> None:
    """A container that could not be started is left as it is, and another instance is made."""
    with node.fault("StartContainer", code="UNKNOWN", message="no such command", times=2):
        web = node.want(pod())
        await web.until_waiting("c1", "RunContainerError")
        await web.until_running("c1", attempt=2)


@witness("START-02", "START-03", undisturbed="it waits for what a fault lets pass unseen")
async def test_waiting_names_the_step_that_failed(node: Node) -> None:
    """A container waits for what failed: its settings, its making, its start, or its postStart hook."""
    settings = [{"configMapRef": {"name": "absent"}}]
    hook = {"postStart": exec_hook("x 1 0")}
    web = node.want(
        pod(
            container("set", envFrom=settings),
            container("made"),
            container("run"),
            container("hook", lifecycle=hook),
        )
    )
    with (
        node.fault("CreateContainer", code="UNKNOWN", message="no such device", container="made"),
        node.fault("StartContainer", code="UNKNOWN", message="no such command", container="run"),
    ):
        await web.until_waiting("set", "CreateContainerConfigError")
        await web.until_waiting("made", "CreateContainerError")
        await web.until_waiting("run", "RunContainerError")
        await web.until_event("FailedPostStartHook")
    await web.until_running("made", "run")


@witness("START-09")
async def test_environment_has_to_be_complete(node: Node) -> None:
    """A container whose environment names an absent key waits until that is there."""
    key = {"name": "settings", "key": "colour"}
    env = [{"name": "COLOUR", "valueFrom": {"configMapKeyRef": key}}, {"name": "TOLD", "value": "$(COLOUR)"}]
    web = node.want(pod(container(env=env)))
    await web.until_waiting("c1", "CreateContainerConfigError")
    metadata = {"namespace": "default", "name": "settings"}
    node.api.put("ConfigMap", {"metadata": metadata, "data": {"colour": "red"}})
    await web.until_running("c1")


@witness("START-11", "START-08", "START-12")
async def test_termination_message_is_reported(node: Node) -> None:
    """What a container wrote into its message file is reported with its end, or the end of its log."""
    falls_back = container("c2", "exit 1 2 say=sorry", terminationMessagePolicy="FallbackToLogsOnError")
    job = node.want(pod(container("c1", "exit 1 2 message=goodbye"), falls_back, name="job", restart="Never"))
    await job.until_phase("Failed")


@witness("START-11")
async def test_end_of_a_log_is_a_termination_message(node: Node) -> None:
    """The end of a container's log is its message only after a failure that left no other."""
    texts = {
        "many-lines": f"exit 1 1 {' '.join(['say=a'] * 84)}",
        "long-line": f"exit 1 1 say={'b' * 2100}",
        "no-failure": "exit 0 1 say=fine",
        "own-words": "exit 1 1 message=goodbye say=sorry",
    }
    for name, command in texts.items():
        one = container("c1", command, terminationMessagePolicy="FallbackToLogsOnError")
        job = node.want(pod(one, name=name, restart="Never"))
        await job.until_ended("c1")
    several = container("c1", "exit 1 1", terminationMessagePolicy="FallbackToLogsOnError")
    several["command"].append("say=it was all too much")
    job = node.want(pod(several, name="several-words", restart="Never"))
    await job.until_ended("c1")
    job = node.want(pod(container("c1", "exit 1 1 say=sorry"), name="of-a-file", restart="Never"))
    await job.until_phase("Failed")


@witness("START-11", "STATUS-12")
async def test_messages_are_cut_to_their_limits(node: Node) -> None:
    """The last 4096 bytes of a message file count, whatever they are, and of those each container's share."""
    text, wide = "".join(f"{number:05d}" for number in range(1000)), "\u00e4" * 3000 + "x"
    shared = [container(f"c{number}", f"exit 1 1 message={text[:4000]}") for number in range(1, 6)]
    shown = {
        # The cut goes through the first letter.
        "wide": ([container("c1", f"exit 1 1 message={wide}")], "\ufffd" + "\u00e4" * 2047 + "x"),
        "long": ([container("c1", f"exit 1 1 message={text}")], text[-4096:]),
        "shared": (shared, text[: 12 * 1024 // 5]),
    }
    wrong: list[str] = []
    for name, (containers, message) in shown.items():
        job = node.want(pod(*containers, name=name, restart="Never"))
        await job.until_phase("Failed")
        ends = [job.container_status(one["name"])["state"]["terminated"] for one in containers]
        wrong += [f"{name}: {each.get('message')}" for each in ends if each.get("message") != message]
    await node.expect("termination messages are cut to their limits", lambda: wrong, "START-11")


@witness("START-06")
async def test_what_is_needed_is_kept_at_the_runtime(node: Node) -> None:
    """A kubelet that never saw a pod stops it with its grace and its hook, which its containers remember."""
    hook = {"preStop": exec_hook("x 0 1")}
    web = await node.run(container("c1", "run stopdelay=3", lifecycle=hook), grace=9)
    await node.kubelet.kill()
    web.delete(0)
    await node.kubelet.start()
    await web.until_stopped()
