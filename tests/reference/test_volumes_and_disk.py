"""Volumes that are waited for, quantities, and the disk of the machine."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from config_doubles import SmallApi, a_pod
from lightkube.models.core_v1 import ConfigMap, Secret

from kubelet_fakes.clock import LoopClock, run
from kubelet_reference.disk_os import OsDisk
from kubelet_reference.quantities import milli, parse_quantity, whole
from kubelet_reference.volumes import Volumes, VolumesNotReady

if TYPE_CHECKING:
    from pathlib import Path


def why_not(api: SmallApi | None, **volume: Any) -> str:
    """Why a pod with this volume has to wait, "" if it has not."""
    pod = a_pod(uid="1", spec={"volumes": [{"name": "v", **volume}]})
    try:
        run(Volumes(api).wait(pod))
    except VolumesNotReady as error:
        return str(error)
    return ""


def an_api() -> SmallApi:
    """An API server with one config map and one secret."""
    api = SmallApi()
    api.config_maps["c"] = msgspec.convert({"data": {"a": "1"}}, ConfigMap)
    api.secrets["s"] = msgspec.convert({"data": {"a": "MQ=="}}, Secret)
    return api


FAILED = 'MountVolume.SetUp failed for volume "v" : '


VOLUMES: list[tuple[dict[str, Any], str]] = [
    ({"emptyDir": {}}, ""),
    ({"configMap": {"name": "c"}}, ""),
    ({"configMap": {"name": "x"}}, f'{FAILED}configmap "x" not found'),
    ({"configMap": {"name": "x", "optional": True}}, ""),
    ({"configMap": {"name": "c", "items": [{"key": "a", "path": "a"}]}}, ""),
    (
        {"configMap": {"name": "c", "items": [{"key": "b", "path": "b"}]}},
        f"{FAILED}references non-existent configmap key: b",
    ),
    ({"secret": {"secretName": "s"}}, ""),
    ({"secret": {"secretName": "x"}}, f'{FAILED}secret "x" not found'),
    ({"projected": {"sources": [{"secret": {"name": "x"}}]}}, f'{FAILED}secret "x" not found'),
    ({"projected": {"sources": [{"configMap": {"name": "c"}}, {"downwardAPI": {}}]}}, ""),
]


@pytest.mark.parametrize(("volume", "reason"), VOLUMES, ids=str)
def test_pod_waits_for_what_its_volumes_show(volume: dict[str, Any], reason: str) -> None:
    """A missing config map, secret or key that is not optional keeps the pod waiting (SYNC-10)."""
    assert why_not(an_api(), **volume) == reason


def test_pod_waits_without_an_api_server() -> None:
    """Without an API server its objects are missing, and other volumes are fine."""
    assert why_not(None, secret={"secretName": "s"}) == f"{FAILED}there is no API server"
    assert why_not(None, emptyDir={}) == ""


def test_volumes_stay_until_they_are_unmounted() -> None:
    """Once mounted, a pod's volumes are not asked for again until they are unmounted."""

    async def story() -> None:
        api = an_api()
        volumes = Volumes(api)
        pod = a_pod(uid="1", spec={"volumes": [{"name": "v", "secret": {"secretName": "s"}}]})
        await volumes.wait(pod)
        api.secrets.clear()
        await volumes.wait(pod)
        assert volumes.is_mounted("1")
        await volumes.unmount(pod)

        assert not volumes.is_mounted("1")
        with pytest.raises(VolumesNotReady):
            await volumes.wait(pod)

    run(story())


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1", Fraction(1)),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("100m", Fraction(1, 10)),
        ("1n", Fraction(1, 10**9)),
        ("1Ki", Fraction(1024)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("1E", Fraction(10**18)),
        ("1e3", Fraction(1000)),
        ("1E-3", Fraction(1, 1000)),
        ("-1k", Fraction(-1000)),
    ],
)
def test_quantity_is_exact(text: str, amount: Fraction) -> None:
    """Each way to write an amount is read exactly."""
    assert parse_quantity(text) == amount


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1gi", "1e", "1e999999999", "Gi", "1.2.3", "1m1"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """Anything else is an error."""
    with pytest.raises(ValueError, match="expected a quantity"):
        parse_quantity(text)


def test_quantities_are_rounded_up() -> None:
    """A fraction of the smallest unit takes a whole one."""
    assert (milli("0.0001"), milli("2"), whole("1500m"), whole("1Ki")) == (1, 2000, 2, 1024)


def test_disk_keeps_what_is_written(tmp_path: Path) -> None:
    """Files and folders are there once written and gone once removed; missing ones are as the port says."""
    disk = OsDisk(LoopClock())
    folder, file = str(tmp_path / "a" / "b"), str(tmp_path / "a" / "b" / "f")
    disk.make_folder(folder)
    disk.make_folder(folder)
    disk.write(file, b"1")
    disk.write(file, b"2")

    assert (disk.names(folder), disk.read(file)) == (["f"], b"2")
    assert (disk.is_folder(folder), disk.is_folder(file)) == (True, False)
    disk.remove(file)
    disk.remove(file)
    assert disk.names(folder) == []
    disk.remove(str(tmp_path / "a"))
    with pytest.raises(FileNotFoundError):
        disk.names(folder)
    with pytest.raises(FileNotFoundError):
        disk.write(file, b"")


def test_disk_notices_changes_within_a_second(tmp_path: Path) -> None:
    """A file that is written, rewritten, moved in or removed is named."""
    (tmp_path / "old").write_bytes(b"1")
    (tmp_path / "dangling").symlink_to("nowhere")
    found: list[tuple[float, str]] = []

    async def note(clock: LoopClock) -> None:
        async for name in OsDisk(clock).changes(str(tmp_path)):
            found.append((clock.monotonic(), name))  # noqa: PERF401 - the moment counts

    async def story() -> None:
        clock = LoopClock()
        noting = asyncio.ensure_future(note(clock))
        await clock.sleep(0.5)
        (tmp_path / "new").write_bytes(b"1")
        await clock.sleep(1)
        (tmp_path / "old").unlink()
        (tmp_path / "new").write_bytes(b"12")
        await clock.sleep(1)
        noting.cancel()

    run(story())

    assert found == [(1, "new"), (2, "new"), (2, "old")]
