"""The three sources of pods: files, a URL and the API server, on virtual time."""

import asyncio
import errno
import json
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from config_doubles import Events, SmallApi, a_node, a_pod, drained
from fixed_random import FixedRandom
from on_loop import in_virtual_time

from kubelet_fakes.clock import LoopClock
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.web import MemoryUrl
from kubelet_reference.config import ApiSource, FileSource, HttpSource, Mux, Source
from kubelet_reference.util.ports import ApiError, FetchError, WatchEvent
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

FOLDER = "/etc/kubernetes/manifests"
URL = "http://manifests/pods"


def manifest(name: str = "web", image: str = "img:1", **container: object) -> bytes:
    """A manifest with one container."""
    one = {"name": "c1", "image": image, **container}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [one]}}
    return json.dumps(pod).encode()


@dataclass
class World:
    """Everything around a source."""

    events: Events = field(default_factory=Events)
    clock: LoopClock = field(default_factory=LoopClock)
    disk: MemoryDisk = field(default_factory=MemoryDisk)
    web: MemoryUrl = field(default_factory=lambda: MemoryUrl(FetchError))
    api: SmallApi = field(default_factory=SmallApi)

    def __post_init__(self) -> None:
        self.mux = Mux(self.events.recorder, self.clock, tuple(Source))

    def files(self, path: str = FOLDER) -> FileSource:
        """The file source of that path."""
        settings = Settings(node_name="n1", static_pod_path=path)
        return FileSource(self.disk, self.clock, self.mux, settings, Behaviour.of())

    def http(self) -> HttpSource:
        """The HTTP source."""
        settings = Settings(node_name="n1", static_pod_url=URL)
        return HttpSource(self.web, self.clock, self.mux, settings, Behaviour.of())

    def api_source(self) -> ApiSource:
        """The API source."""
        return ApiSource(self.api, self.clock, FixedRandom(), self.mux, "node-1")

    async def after(self, seconds: float) -> list[tuple[str, list[str]]]:
        """What came out of the mux so far, once so much time has passed."""
        await self.clock.sleep(seconds)
        return drained(self.mux)


@asynccontextmanager
async def running(source: Coroutine[Any, Any, object]) -> AsyncGenerator[None]:
    """The source runs while the context is open."""
    task = asyncio.ensure_future(source)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@in_virtual_time
async def test_folder_is_read_without_dotfiles_and_folders() -> None:
    """Files are read in the order of their names, whatever the names end in (STATIC-06)."""
    world = World()
    world.disk.make_folder(f"{FOLDER}/sub")
    for name in ("z.yaml", "a.bak", ".hidden.yaml", "sub/deep.yaml"):
        pod_name = name.strip(".").partition(".")[0].replace("/", "-")
        world.disk.write(f"{FOLDER}/{name}", manifest(pod_name))

    async with running(world.files().run()):
        assert await world.after(0.1) == [("ADD", ["a-n1", "z-n1"])]


@in_virtual_time
async def test_missing_folder_is_noticed_and_found_later() -> None:
    """A path where nothing is wants no pods; when it appears its manifests run at once (STATIC-08)."""
    world = World()
    world.disk.make_folder("/etc/kubernetes")

    async with running(world.files().run()):
        assert await world.after(30) == [("ADD", [])]
        world.disk.make_folder(FOLDER)
        world.disk.write(f"{FOLDER}/web.yaml", manifest())
        assert await world.after(0.1) == [("ADD", ["web-n1"])]
        await world.after(2)
        world.disk.write(f"{FOLDER}/b.yaml", manifest("b"))
        assert await world.after(0.1) == [("ADD", ["b-n1"])]


@in_virtual_time
async def test_changes_are_noticed_at_once() -> None:
    """A file that is added, edited or removed is acted on without waiting for the listing (STATIC-09)."""
    world = World()
    world.disk.make_folder(FOLDER)

    async with running(world.files().run()):
        await world.after(1)
        world.disk.write(f"{FOLDER}/web.yaml", manifest())
        assert await world.after(0.1) == [("ADD", ["web-n1"])]
        world.disk.write(f"{FOLDER}/web.yaml", manifest(image="img:2"))
        assert await world.after(0.1) == [("REMOVE", ["web-n1"]), ("ADD", ["web-n1"])]
        world.disk.remove(f"{FOLDER}/web.yaml")
        assert await world.after(0.1) == [("REMOVE", ["web-n1"])]


@in_virtual_time
async def test_bad_manifest_is_absent_at_the_next_listing(caplog: pytest.LogCaptureFixture) -> None:
    """A manifest that turned bad runs on until the next listing; others never notice (STATIC-07).

    The log names file and field, and no event does.
    """
    caplog.set_level(logging.ERROR)
    world = World()
    world.disk.make_folder(FOLDER)
    world.disk.write(f"{FOLDER}/good.yaml", manifest("good"))
    world.disk.write(f"{FOLDER}/web.yaml", manifest())

    async with running(world.files().run()):
        await world.after(1)
        world.disk.write(f"{FOLDER}/web.yaml", manifest(imagePullPolicy="Sometimes"))
        assert await world.after(18) == []
        assert await world.after(2) == [("REMOVE", ["web-n1"])]
        await world.after(60)

    assert world.events.reported == []

    field, message = (
        "spec.containers[0].imagePullPolicy",
        'expected one of Always, IfNotPresent, Never, got "Sometimes"',
    )
    assert {record.getMessage() for record in caplog.records} == {f"{FOLDER}/web.yaml: {field}: {message}"}


@in_virtual_time
async def test_file_that_cannot_be_read_is_absent() -> None:
    """A read error of one file is its own affair."""
    world = World()
    world.disk.make_folder(FOLDER)
    world.disk.write(f"{FOLDER}/a.yaml", manifest("a"))
    world.disk.write(f"{FOLDER}/b.yaml", manifest("b"))

    with world.disk.broken(f"{FOLDER}/a.yaml", errno.EACCES):
        async with running(world.files().run()):
            assert await world.after(0.1) == [("ADD", ["b-n1"])]


@in_virtual_time
async def test_folder_that_cannot_be_listed_changes_nothing() -> None:
    """While the folder cannot be listed its pods stay."""
    world = World()
    world.disk.make_folder(FOLDER)
    world.disk.write(f"{FOLDER}/a.yaml", manifest("a"))

    async with running(world.files().run()):
        await world.after(1)
        with world.disk.broken(FOLDER):
            assert await world.after(60) == []
        assert await world.after(60) == []


@in_virtual_time
async def test_single_manifest_that_turns_bad_stays_in_force() -> None:
    """Where the path is one file, an error leaves its pod running; removing it does not (STATIC-07)."""
    world = World()
    world.disk.make_folder("/etc")
    world.disk.write("/etc/web.yaml", manifest())

    async with running(world.files("/etc/web.yaml").run()):
        assert await world.after(0.1) == [("ADD", ["web-n1"])]
        world.disk.write("/etc/web.yaml", b"{")
        assert await world.after(60) == []
        world.disk.write("/etc/web.yaml", manifest("other"))
        assert await world.after(0.1) == [("REMOVE", ["web-n1"]), ("ADD", ["other-n1"])]
        world.disk.remove("/etc/web.yaml")
        assert await world.after(0.1) == [("REMOVE", ["other-n1"])]


@in_virtual_time
async def test_two_manifests_of_one_name_run_the_last() -> None:
    """Of two files with one pod name the last in order runs; when it goes, the other does (CONFIG-09)."""
    world = World()
    world.disk.make_folder(FOLDER)
    world.disk.write(f"{FOLDER}/a.yaml", manifest())
    world.disk.write(f"{FOLDER}/b.yaml", manifest())

    async with running(world.files().run()):
        assert await world.after(0.1) == [("ADD", ["web-n1"])]
        assert world.events.reported == []
        world.disk.remove(f"{FOLDER}/b.yaml")
        assert await world.after(0.1) == [("REMOVE", ["web-n1"]), ("ADD", ["web-n1"])]


@in_virtual_time
async def test_url_that_fails_changes_nothing() -> None:
    """Errors, other statuses and garbage keep the pods; an empty body wants none (CONFIG-13)."""
    world = World()
    source = world.http()
    world.web.serve(URL, manifest())
    await source.fetch()
    assert drained(world.mux) == [("ADD", ["web-n1"])]

    for trouble in (b"", b"garbage", b'{"kind": "Service", "apiVersion": "v1"}'):
        world.web.serve(URL, trouble, 200 if trouble else 500)
        await source.fetch()
    world.web.refuse(URL)
    await source.fetch()
    world.web.serve(URL, manifest())
    await source.fetch()
    assert drained(world.mux) == []

    world.web.serve(URL, b"")
    await source.fetch()
    assert drained(world.mux) == [("REMOVE", ["web-n1"])]


@in_virtual_time
async def test_empty_body_is_read() -> None:
    """An empty body marks the source as seen (CONFIG-13)."""
    world = World()
    world.web.serve(URL, b"")
    await world.http().fetch()

    assert drained(world.mux) == [("ADD", [])]


@in_virtual_time
async def test_list_at_the_url_is_run_as_a_whole() -> None:
    """Every pod of a list runs (CONFIG-14); one that is wrong has the whole list refused (CONFIG-13)."""
    world = World()
    a, b, wrong = (json.loads(each) for each in (manifest("a"), manifest("b"), manifest("c", image="")))
    good, bad = (
        json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items}).encode()
        for items in ([a, b], [a, wrong])
    )
    world.web.serve(URL, good)

    async with running(world.http().run()):
        assert await world.after(50) == [("ADD", ["a-n1", "b-n1"])]
        assert world.web.fetched == 3
        world.web.serve(URL, bad)
        assert await world.after(50) == []


@in_virtual_time
async def test_pods_are_asked_for_once_the_node_is_answered_for() -> None:
    """The node is asked for every second, and pods only after an answer: that it is not there (CONFIG-11)."""
    world = World()
    world.api.pods["default", "web"] = a_pod(uid="1")
    world.api.down = ApiError(500, "InternalError", "no answer")

    async with running(world.api_source().run()):
        assert await world.after(2.5) == []
        assert world.api.asked == ["node node-1"] * 3
        world.api.down = None
        assert await world.after(1) == [("ADD", ["web"])]


@in_virtual_time
async def test_watch_tells_each_change() -> None:
    """What the watch brings is delivered as it comes; a name given anew is another pod."""
    world = World()
    world.api.nodes["node-1"] = a_node()

    async with running(world.api_source().run()):
        assert await world.after(0.1) == [("ADD", [])]
        for kind, pod in (
            ("ADDED", a_pod(uid="1", resourceVersion="2")),
            ("MODIFIED", a_pod(uid="1", resourceVersion="3", labels={"a": "b"})),
            ("DELETED", a_pod(uid="1", resourceVersion="4")),
            ("ADDED", a_pod(uid="2", resourceVersion="5")),
            ("DELETED", a_pod(uid="2", resourceVersion="6")),
        ):
            world.api.watch.put_nowait(WatchEvent(kind, pod))
        assert await world.after(0.1) == [
            ("ADD", ["web"]),
            ("UPDATE", ["web"]),
            ("REMOVE", ["web"]),
            ("ADD", ["web"]),
            ("REMOVE", ["web"]),
        ]
        world.api.watch.put_nowait(None)
        await world.after(0.1)

    assert world.api.asked[-1] == "watch node-1 6"


@pytest.mark.parametrize("code", [0, 429])
@in_virtual_time
async def test_watch_that_breaks_goes_on(code: int) -> None:
    """A watch that breaks as the API server is out of reach goes on where it was, without a list."""
    world = World()
    world.api.nodes["node-1"] = a_node()

    async with running(world.api_source().run()):
        assert await world.after(0.1) == [("ADD", [])]
        world.api.watch.put_nowait(WatchEvent("ADDED", a_pod(uid="1", resourceVersion="2")))
        world.api.down = ApiError(code, "", "down")
        world.api.watch.put_nowait(world.api.down)
        assert await world.after(300) == [("ADD", ["web"])]
        world.api.down = None
        world.api.watch.put_nowait(WatchEvent("DELETED", a_pod(uid="1", resourceVersion="3")))
        assert await world.after(60) == [("REMOVE", ["web"])]

    assert world.api.asked.count("list node-1") == 1
    assert 5 < world.api.asked.count("watch node-1 2") < 20


@pytest.mark.parametrize("code", [410, 500])
@in_virtual_time
async def test_outage_changes_nothing(code: int) -> None:
    """While watch and list fail the pods stay; afterwards all is listed anew (CONFIG-12)."""
    world = World()
    world.api.nodes["node-1"] = a_node()
    world.api.pods["default", "web"] = a_pod(uid="1")

    async with running(world.api_source().run()):
        assert await world.after(0.1) == [("ADD", ["web"])]
        world.api.down = ApiError(code, "", "down")
        world.api.watch.put_nowait(world.api.down)
        assert await world.after(300) == []
        assert world.api.asked.count("list node-1") < 20
        del world.api.pods["default", "web"]
        world.api.down = None
        assert await world.after(60) == [("REMOVE", ["web"])]
