"""The parts of a private containerd that need neither root nor containerd."""

import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from kubelet_conformance.targets.containerd import archive, configuration, host, network, requirements
from kubelet_conformance.targets.containerd.home import Home, Owner, locked

LAYER = b"a layer"


@pytest.fixture(autouse=True)
def no_busybox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images are made of anything, so that no busybox has to be there."""
    monkeypatch.setattr(archive, "layer", lambda: LAYER)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("img:1", "docker.io/library/img:1"),
        ("busybox", "docker.io/library/busybox:latest"),
        ("registry/app:1", "docker.io/registry/app:1"),
        ("localhost/pause:1", "localhost/pause:1"),
        ("localhost:5000/pause", "localhost:5000/pause:latest"),
        ("k8s.io/pause@sha256:" + "0" * 64, "k8s.io/pause@sha256:" + "0" * 64),
    ],
)
def test_full_names(name: str, full: str) -> None:
    """A name is completed with registry and tag as containerd does."""
    assert archive.full_name(name) == full


def test_images_differ_by_name_and_user() -> None:
    """Each name, and each user, makes an image of its own; the same twice is the same image."""
    made = [archive.image_source(name, user=user) for name in ("a:1", "b:1") for user in ("", "app")]

    assert len({each.id for each in made}) == 4
    assert archive.image_source("a:1") == made[0]


def test_archive_is_an_image_layout() -> None:
    """An archive names its images and holds every blob that they name, each once, under its digest."""
    sources = {
        name: archive.image_source(name) for name in ("docker.io/library/a:1", "docker.io/library/b:1")
    }
    with tarfile.open(fileobj=io.BytesIO(archive.archive(sources))) as tar:
        members = {each.name: tar.extractfile(each) for each in tar}
        data = {name: file.read() for name, file in members.items() if file is not None}

    index = json.loads(data["index.json"])
    assert json.loads(data["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    assert [each["annotations"]["io.containerd.image.name"] for each in index["manifests"]] == list(sources)
    blobs = {digest for source in sources.values() for digest in source.blobs}
    assert set(data) == {"oci-layout", "index.json"} | {f"blobs/{each.replace(':', '/')}" for each in blobs}
    assert len(blobs) == 5


def test_configuration_is_toml_and_stays_inside(tmp_path: Path) -> None:
    """Every path that containerd writes to is in its own folder, whatever that folder is called."""
    home = Home(tmp_path / 'a "quoted" folder')
    read = tomllib.loads(configuration.containerd_config(home, tmp_path, "overlayfs"))

    cri = read["plugins"]["io.containerd.grpc.v1.cri"]
    options = cri["containerd"]["runtimes"]["runc"]["options"]
    written = [read["root"], read["state"], read["grpc"]["address"], options["Root"]]
    assert all(each.startswith(f"{home.folder}/") for each in written)
    assert cri["restrict_oom_score_adj"] is True


def test_base_specification_adds_a_mount(tmp_path: Path) -> None:
    """A container is given the shared folder, and else what containerd gives it."""
    default = {"process": {"cwd": "/"}, "mounts": [{"destination": "/proc"}]}
    made = json.loads(configuration.base_spec(json.dumps(default), tmp_path))

    assert made["process"] == default["process"]
    assert [each["destination"] for each in made["mounts"]] == ["/proc", "/shared"]


def test_subnet_touches_no_other() -> None:
    """The first free subnet is taken; none overlaps a network that the machine has a route to."""
    assert network.choose_subnet([]) == IPv4Network("10.231.0.0/24")
    taken = [IPv4Network("10.231.0.0/23"), IPv4Network("10.231.2.128/25")]
    assert network.choose_subnet(taken) == IPv4Network("10.231.3.0/24")


def test_no_subnet_is_free() -> None:
    """Where all are taken, one error says so."""
    with pytest.raises(requirements.CannotRunError, match="no subnet"):
        network.choose_subnet([IPv4Network("10.0.0.0/8")])


def test_pods_are_not_masqueraded() -> None:
    """The network of pods changes no rule of the firewall and forwards nothing."""
    (plugin,) = json.loads(network.network_list("kc-1", IPv4Network("10.231.0.0/24"), "/leases"))["plugins"]

    assert (plugin["ipMasq"], plugin["isGateway"]) == (False, False)


def test_owner_is_no_other_process() -> None:
    """A process is distinguished from a later one with its id, and from one before a reboot."""
    us = Owner.this_process()

    assert us.lives()
    assert not replace(us, started=us.started - 1).lives()
    assert not replace(us, boot="another").lives()


def test_dead_process_lives_no_more() -> None:
    """A process that has ended does not live, even before its parent has buried it."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        unburied = host.start_of(child.pid)

    assert unburied is None
    assert host.start_of(child.pid) is None


def test_home_is_its_owners(tmp_path: Path) -> None:
    """A new home is for its user only, and names this process as its owner; without one it has none."""
    with locked(tmp_path / "base"):
        home = Home.make(tmp_path / "base")

    assert home.folder.stat().st_mode & 0o777 == 0o700
    assert home.owner() == Owner.this_process()
    assert Home(tmp_path).owner() is None


def test_links_fit_their_limit(tmp_path: Path) -> None:
    """The name of a home is short enough for a network link."""
    assert len(Home.make(tmp_path).name) <= 15


def test_everything_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a bare machine each thing is named with the package that brings it, and so is root."""

    def which(_: str, path: str = "") -> str | None:
        del path
        return None

    monkeypatch.setattr("shutil.which", which)
    monkeypatch.setattr(requirements, "BUSYBOX", tmp_path / "busybox")
    monkeypatch.setattr(requirements, "_PLUGIN_FOLDERS", (tmp_path,))
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    reported = requirements.missing()

    packages = {"containerd", "runc", "iproute2", "containernetworking-plugins", "busybox-static"}
    assert packages <= {line.rpartition("apt-get install ")[2] for line in reported}
    assert any(line.startswith("root: the user is 1000") for line in reported)
    with pytest.raises(requirements.CannotRunError, match="no private containerd can run here:\n- "):
        requirements.require()


def test_cgroups_that_cannot_be_written_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A hierarchy of cgroups that nothing can be made in is named with the reason."""
    monkeypatch.setattr(requirements, "cgroup_roots", lambda: (tmp_path / "absent",))
    monkeypatch.setattr("os.geteuid", lambda: 0)

    assert any("absent: No such file or directory" in line for line in requirements.missing())
