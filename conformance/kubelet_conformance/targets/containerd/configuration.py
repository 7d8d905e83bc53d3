"""The configuration of a private containerd: its own folders, its own network, the loopback registry."""

import json
from pathlib import Path
from typing import Any

from kubelet_conformance.targets.containerd.home import Home

SANDBOX_IMAGE = "localhost/kubelet-conformance/pause:1"
_NOT_NEEDED = ("aufs", "btrfs", "devmapper", "zfs")


def containerd_config(home: Home, plugins: Path, snapshotter: str) -> str:
    """The text of config.toml for containerd 1.6 and newer.

    AppArmor is left alone because containerd would load a profile into the kernel and leave it there. The
    scores for the kernel's choice of a victim are restricted to what the user may set.
    """
    snapshotters = [f"io.containerd.snapshotter.v1.{each}" for each in _NOT_NEEDED]
    return f"""\
version = 2
root = {_text(home.root)}
state = {_text(home.state)}
disabled_plugins = {json.dumps(["io.containerd.internal.v1.opt", *snapshotters])}

[grpc]
  address = {_text(home.socket)}

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = {_text(SANDBOX_IMAGE)}
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = {_text(plugins)}
    conf_dir = {_text(home.networks)}
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    snapshotter = {_text(snapshotter)}
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      base_runtime_spec = {_text(home.spec)}
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = {_text(home.runc)}
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = {_text(home.registries)}
"""


def _text(value: object) -> str:
    """A TOML string; JSON's are a part of them."""
    return json.dumps(str(value))


def base_spec(default: str, shared: Path) -> str:
    """The runtime's own default specification of a container, with one more mount: the shared folder."""
    spec: dict[str, Any] = json.loads(default)
    mount = {"destination": "/shared", "type": "bind", "source": str(shared), "options": ["rbind", "rw"]}
    spec["mounts"].append(mount)
    return json.dumps(spec, indent=2)


def registry_hosts(address: str) -> str:
    """The hosts.toml by which every registry is this one."""
    return f"""\
server = {_text(address)}

[host.{_text(address)}]
  capabilities = ["pull", "resolve"]
"""
