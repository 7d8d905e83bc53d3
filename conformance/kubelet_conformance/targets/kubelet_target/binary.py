"""A kubelet's binary as a target: it says its version, from which its flags and configuration follow."""

import re
import shutil
import subprocess
from functools import cache

from kubelet_conformance.contract.applicability import (
    NEWEST_READ,
    parse_known_version,
    parse_version,
    releases,
    version_text,
)
from kubelet_conformance.contract.baseline import bundled
from kubelet_conformance.targets.choice import UnknownTargetError
from kubelet_conformance.targets.kubelet_target.target import KubeletTarget

_ANSWER_SECONDS = 20.0
_VERSION = re.compile(r"Kubernetes v(\d+\.\d+\.\S+)")
_COMMAND = (
    "--config={config}",
    "--root-dir={root}",
    "--hostname-override={node}",
    "--cert-dir={root}/pki",
    "--kubeconfig={kubeconfig}",
    "--v=3",
)
_RUNTIME_FLAG = "--container-runtime-endpoint={runtime}"
_RUNTIME_FIELD_SINCE = 27
"""Before this minor version the address of the runtime is a flag and no field."""
_FIELDS = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: "{pods}"
address: 127.0.0.1
port: {port}
readOnlyPort: {read_only_port}
healthzPort: {healthz_port}
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
contentType: application/json
# No cgroups, no swap and no firewall of this machine are touched.
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
makeIPTablesUtilChains: false
# However full the disk of this machine is: no pod is evicted, no image removed.
evictionHard: {memory.available: 1Mi}
imageGCHighThresholdPercent: 100
# No request waits for its turn: up to 1.26 a kubelet makes five a second, and scenarios share it. Nor does an
# event: 0 is documented as no limit, and is five a second too.
kubeAPIQPS: 1000
kubeAPIBurst: 1000
eventRecordQPS: 1000
eventBurst: 1000
# What scenarios need: a DNS server, sysctls that are not safe.
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
allowedUnsafeSysctls: ["net.*", "kernel.msg*", "kernel.sem", "kernel.shm*"]
"""
_LATER_FIELDS = (
    (_RUNTIME_FIELD_SINCE, 'containerRuntimeEndpoint: "{runtime}"\n'),
    (30, 'podLogsDir: "{logs}"\n'),
    (31, "failCgroupV1: false\n"),
)
"""What the configuration has since which minor version."""


def binary_target(path: str) -> KubeletTarget:
    """The kubelet whose binary is at `path`; raises `UnknownTargetError` for one that is none."""
    version = _version(path)
    found = parse_version(version)
    if found == NEWEST_READ:
        # Expectations were read for it, and its requirements are not frozen yet.
        found = parse_version(releases()[-1])
    kubernetes = version_text(found)
    try:
        _, minor = parse_known_version(kubernetes)
    except ValueError as error:
        remedy = "describe it in a target file, with the nearest of these versions"
        raise UnknownTargetError(f"{path}: {error}: {remedy}") from None
    flags = _COMMAND if minor >= _RUNTIME_FIELD_SINCE else (*_COMMAND, _RUNTIME_FLAG)
    baseline = f"kubernetes-{kubernetes}"
    return KubeletTarget(
        command=(path, *flags),
        name=f"kubelet {version}",
        kubernetes=kubernetes,
        pods="api",
        config=_FIELDS + "".join(field for since, field in _LATER_FIELDS if minor >= since),
        baseline=baseline if baseline in bundled() else "",
    )


@cache
def _version(path: str) -> str:
    """What a kubelet says with --version, such as 1.36.2."""
    if shutil.which(path) is None:
        raise UnknownTargetError(f"{path}: cannot be executed: name the binary of a kubelet")
    try:
        done = subprocess.run(  # noqa: S603 - the user's own program
            [path, "--version"],
            capture_output=True,
            check=False,
            timeout=_ANSWER_SECONDS,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        said = getattr(error, "strerror", None) or f"nothing in {_ANSWER_SECONDS:g} s"
    else:
        if found := _VERSION.match(done.stdout):
            return found[1]
        said = next(iter((done.stdout or done.stderr).splitlines()), "nothing")
    raise UnknownTargetError(
        f"{path}: no kubelet: with --version it says {said!r} instead of 'Kubernetes v1.36.2' or the like: "
        "name the binary of a kubelet, or describe yours in a target file"
    )
