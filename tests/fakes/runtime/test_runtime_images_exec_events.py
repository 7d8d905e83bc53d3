"""Images, executed commands, logs and events of the fake runtime, in more detail than its contracts."""

import asyncio

import pytest
from cri_api.v1 import api_pb2 as cri
from cri_node import Node, refused


async def image(node: Node, name: str) -> cri.Image | None:
    """What ImageStatus says of an image."""
    reply = await node.runtime.ImageStatus(cri.ImageStatusRequest(image=cri.ImageSpec(image=name)))
    return reply.image if reply.HasField("image") else None


async def pull(node: Node, name: str, **auth: str) -> str:
    """Pull an image; the reference that comes back."""
    request = cri.PullImageRequest(image=cri.ImageSpec(image=name), auth=cri.AuthConfig(**auth))
    return (await node.runtime.PullImage(request)).image_ref


class Files:
    """Files of a node in memory; a folder that is `full` refuses."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.full = False

    def append(self, path: str, content: bytes) -> None:
        """Add to a file."""
        if self.full:
            raise OSError("no space left")
        self.content[path] = self.content.get(path, b"") + content


async def test_cri_24_container_of_an_absent_image(node: Node) -> None:
    """A container cannot be created from an image that the node does not have."""
    sandbox = await node.sandbox()
    spec = cri.ImageSpec(image="absent:1")
    await refused(node.create(sandbox, image=spec), "NOT_FOUND")


async def test_cri_25_remove_image(node: Node) -> None:
    """Removing an image by one name removes all its names; again is no error."""
    key = (await image(node, "img:1") or cri.Image()).id
    node.runtime.core.images.add("img:latest", image=key)
    two_names = await image(node, "img")
    for _ in range(2):
        await node.runtime.RemoveImage(cri.RemoveImageRequest(image=cri.ImageSpec(image="img:1")))
    left = (await node.runtime.ListImages(cri.ListImagesRequest())).images

    assert two_names is not None
    assert list(two_names.repo_tags) == ["img:1", "img:latest"]
    assert (await image(node, "img"), await image(node, key)) == (None, None)
    assert key not in {each.id for each in left}


@pytest.mark.parametrize(("code", "seconds"), [(0, 0), (1, 0), (3, 2.5)])
async def test_cri_26_exec(node: Node, code: int, seconds: float) -> None:
    """The exit code of a command is part of the answer, which comes when the command has ended."""
    container = await node.running()
    reply = await node.execute(container, f"x {code} {seconds}")

    assert (reply.exit_code, node.now) == (code, seconds)


async def test_cri_26_exec_timeout(node: Node) -> None:
    """A command that outlasts its timeout is killed when it is over: DEADLINE_EXCEEDED."""
    container = await node.running()
    await refused(node.execute(container, "x 0 9", limit=2), "DEADLINE_EXCEEDED")

    assert node.now == 2.0
    assert (await node.execute(container, "x 0 999")).exit_code == 0


async def test_cri_26_exec_output_is_capped(node: Node) -> None:
    """Of the output 16 MiB are kept."""
    container = await node.running()
    reply = await node.execute(container, f"x 0 0 bytes={17 << 20}")

    assert len(reply.stdout) == 16 << 20


async def test_cri_26_exec_looks_for_a_file(node: Node) -> None:
    """`xf FILE` succeeds when the runtime has the file; a command that is no script always does."""
    container = await node.running()
    before = await node.execute(container, "xf /alive")
    node.runtime.core.files.add("/alive")
    after = await node.execute(container, "xf /alive")
    other = await node.execute(container, "cat /etc/hosts")

    assert (before.exit_code, after.exit_code, other.exit_code) == (1, 0, 0)


async def test_a_command_ends_with_its_container(node: Node) -> None:
    """A command whose container ends is killed with it and answered at once."""
    container = await node.running("exit 0 3")
    reply = await node.execute(container, "x 0 100")

    assert (reply.exit_code, node.now) == (137, 3.0)


async def test_cri_29_reopen_log(node: Node) -> None:
    """Reopening makes a log file that was moved away; where it fails, none is made."""
    files = Files()
    node.runtime.core.store.logs.files = files
    sandbox = await node.sandbox(log_directory="/logs")
    container = await node.create(sandbox, log_path="c1/0.log")
    request = cri.ReopenContainerLogRequest(container_id=container)
    await refused(node.runtime.ReopenContainerLog(request), "FAILED_PRECONDITION")
    assert files.content == {}
    await node.start(container)
    files.content.clear()
    await node.runtime.ReopenContainerLog(request)
    assert list(files.content) == ["/logs/c1/0.log"]
    files.full = True
    await refused(node.runtime.ReopenContainerLog(request), "INTERNAL")


async def test_cri_36_log_file(node: Node) -> None:
    """The log is where the configuration says, from the start on, in the format of the CRI."""
    files = Files()
    node.runtime.core.store.logs.files = files
    sandbox = await node.sandbox(log_directory="/logs")
    mount = cri.Mount(container_path="/dev/termination-log", host_path="/pods/last-words")
    container = await node.create(
        sandbox, "exit 1 2 say=hello say=world message=bye", log_path="c1/0.log", mounts=[mount]
    )
    await node.start(container)
    await node.clock.sleep(2)
    status = await node.status(container)
    lines = [line.split(" ", 3) for line in files.content["/logs/c1/0.log"].decode().splitlines()]

    assert status.log_path == "/logs/c1/0.log"
    assert [line[1:] for line in lines] == [["stdout", "F", "hello"], ["stdout", "F", "world"]]
    assert lines[0][0].startswith("2026-01-01T00:00:00.0000000")
    assert files.content["/pods/last-words"] == b"bye"


async def test_cri_30_events(node: Node) -> None:
    """The stream reports every transition in order, with what was true of the pod right then."""
    stream = node.runtime.GetContainerEvents(cri.GetEventsRequest())
    container = await node.running("exit 3 5")
    sandbox = (await node.sandboxes())[0]
    await node.clock.sleep(5)
    await node.remove_sandbox(sandbox)
    events = [await anext(stream) for _ in range(8)]
    await stream.aclose()
    kinds = [cri.ContainerEventType.Name(event.container_event_type)[10:-6] for event in events]

    assert list(zip(kinds, [event.container_id for event in events], strict=True)) == [
        ("CREATED", sandbox),
        ("STARTED", sandbox),
        ("CREATED", container),
        ("STARTED", container),
        ("STOPPED", container),
        ("STOPPED", sandbox),
        ("DELETED", container),
        ("DELETED", sandbox),
    ]
    assert [[each.state for each in event.containers_statuses] for event in events] == [
        [], [], [0], [1], [2], [2], [], [],
    ]  # fmt: skip
    assert events[4].containers_statuses[0].exit_code == 3
    assert events[-1].pod_sandbox_status.metadata.uid == "uid-web"
    assert [event.created_at for event in events] == sorted(event.created_at for event in events)


async def test_events_can_be_lost_and_reversed(node: Node) -> None:
    """A test may lose events, or have them reported in reverse order."""
    stream = node.runtime.GetContainerEvents(cri.GetEventsRequest())
    events = node.runtime.core.store.events
    events.lose(3)
    await node.running()
    events.reverse(2)
    await node.stop_sandbox((await node.sandboxes())[0])
    kinds = [(await anext(stream)).container_event_type for _ in range(3)]
    await stream.aclose()

    stopped = cri.CONTAINER_STOPPED_EVENT
    assert kinds == [cri.CONTAINER_STARTED_EVENT, stopped, stopped]


async def test_cri_32_work_goes_on_without_the_caller(node: Node) -> None:
    """A stop whose caller gave up goes on, and the caller may ask again."""
    container = await node.running("run stopdelay=10")
    await refused(node.stop(container, 30, deadline=3), "DEADLINE_EXCEEDED")
    assert node.now == 3.0
    await node.stop(container, 30)

    assert node.now == 10.0
    assert (await node.status(container)).exit_code == 0


async def test_cri_32_work_goes_on_when_the_caller_is_cancelled(node: Node) -> None:
    """The same when the caller is cancelled: a kubelet that is killed stops no stop."""
    container = await node.running("run stopdelay=99")
    stopping = asyncio.create_task(node.stop(container, 5))
    await node.clock.sleep(1)
    stopping.cancel()
    await node.clock.sleep(4)

    assert (await node.status(container)).exit_code == 137
    assert node.happened[-1][0] == "exited"


async def test_cri_40_registry(node: Node) -> None:
    """A pull fails as registries let it: not there, not allowed, or no answer, as the prefix says."""
    images = node.runtime.core.images
    images.publish("gone:1", there=False)
    images.protect("secret:1", "user", "word")
    await refused(pull(node, "gone:1"), "NOT_FOUND")
    await refused(pull(node, "secret:1", username="user", password="wrong"), "UNKNOWN")  # noqa: S106
    await pull(node, "secret:1", username="user", password="word")  # noqa: S106
    images.registry_up = False
    error = await refused(pull(node, "any:1"), "UNKNOWN")

    assert (error.details() or "").startswith("RegistryUnavailable:")


async def test_cri_41_stop_and_remove_in_any_order(node: Node) -> None:
    """A sandbox can be stopped again and again, also after it died, and then be removed."""
    sandbox = await node.sandbox()
    node.runtime.kill_sandbox(sandbox)
    for _ in range(3):
        await node.stop_sandbox(sandbox)
    await node.remove_sandbox(sandbox)


async def test_cri_42_runtime_config(node: Node) -> None:
    """RuntimeConfig reports the cgroup driver."""
    reply = await node.runtime.RuntimeConfig(cri.RuntimeConfigRequest())

    assert reply.linux.cgroup_driver == cri.CGROUPFS
