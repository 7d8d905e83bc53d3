"""What sandboxes and containers are made with: users, privileges, amounts and the rest of their spec."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubelet_conformance.node import Node, PodHandle, container, pod, witness

Json = dict[str, Any]
_MI = 1 << 20
_MASKED = (
    *("/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list"),
    *("/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"),
)
_MASKED_LATER = ("/proc/asound", "/proc/interrupts", "/sys/devices/virtual/powercap")
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_DEFAULT, _UNCONFINED, _LOCALHOST = range(3)
"""Kinds of profiles in the CRI."""
_POD_SECURITY = {
    "runAsUser": 1001,
    "runAsGroup": 1002,
    "fsGroup": 1003,
    "supplementalGroups": [1004, 1005],
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CONTAINERS = (
    container(
        args=["$(COLOUR)", "$$(COLOUR)", "$(NONE)"],
        env=[{"name": "COLOUR", "value": "red"}],
        workingDir="/srv",
        stdin=True,
        stdinOnce=True,
        tty=True,
        securityContext={
            "runAsUser": 0,
            "runAsGroup": 8,
            "privileged": True,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": True,
            "capabilities": {"add": ["NET_ADMIN", "SYS_TIME"], "drop": ["ALL"]},
            "seccompProfile": {"type": "Unconfined"},
        },
    ),
    container(
        "c2",
        stdin=True,
        ports=[
            {"containerPort": 80},
            {"containerPort": 53, "hostPort": 5353, "protocol": "UDP", "hostIP": "127.0.0.1"},
            {"containerPort": 9, "protocol": "SCTP"},
        ],
        securityContext={"allowPrivilegeEscalation": False, "privileged": False},
    ),
    container(
        "c3", tty=True, securityContext={"seccompProfile": {"type": "Localhost", "localhostProfile": "a/b"}}
    ),
)
_PLAIN: Json = {
    "args": [],
    "working_dir": "",
    "stdin": False,
    "stdin_once": False,
    "tty": False,
    "user": 1001,
    "username": "",
    "group": 1002,
    "groups": [1003, 1004, 1005],
    "privileged": False,
    "readonly_rootfs": False,
    "no_new_privs": False,
    "capabilities": ([], []),
    "seccomp": (_DEFAULT, ""),
    "seen": [],
    "writable": [],
    "odd": [],
}
_EXPECTED: Mapping[str, Json] = {
    "c1": {
        "args": ["red", "$(COLOUR)", "$(NONE)"],
        "working_dir": "/srv",
        "stdin": True,
        "stdin_once": True,
        "tty": True,
        "user": 0,
        "group": 8,
        "privileged": True,
        "readonly_rootfs": True,
        "capabilities": (["NET_ADMIN", "SYS_TIME"], ["ALL"]),
        "seccomp": (_UNCONFINED, ""),
    },
    "c2": {"stdin": True, "no_new_privs": True},
    "c3": {"tty": True, "seccomp": (_LOCALHOST, "/seccomp/a/b")},
}

_USERS: Sequence[tuple[str, Json, bool]] = (
    ("img:1", {}, False),
    ("registry/named:1", {}, False),
    ("registry/numbered:1", {}, True),
    ("registry/numbered:1", {"runAsUser": 0}, False),
    ("registry/named:1", {"runAsUser": 5}, True),
)
"""Images and own users of containers that must not run as root, and whether they may run."""
_DNS = {
    "nameservers": ["10.0.0.10", "10.0.0.11"],
    "searches": ["a.b", "c"],
    "options": [{"name": "ndots", "value": "5"}, {"name": "edns0"}],
}
_SANDBOX: Json = {
    "user": 1001,
    "group": 1002,
    "groups": [1003, 1004, 1005],
    "privileged": True,
    "seccomp": (_DEFAULT, ""),
    "servers": ["10.0.0.10", "10.0.0.11"],
    "searches": ["a.b", "c"],
    "options": ["edns0", "ndots:5"],
    "ports": [(0, 80, 0, ""), (1, 53, 5353, "127.0.0.1"), (2, 9, 0, "")],
}
_BARE_SANDBOX: Json = {
    "user": None,
    "group": None,
    "groups": [],
    "privileged": False,
    "seccomp": (_DEFAULT, ""),
    "ports": [],
}
_BARE: Json = {"group": None, "groups": [], "seccomp": (_UNCONFINED, "")}
_OF_IMAGES: Mapping[str, Json] = {
    "c1": {"user": 0},
    "c2": {"user": None, "username": "app"},
    "c3": {"user": 1000},
}


@witness("START-15")
async def test_container_is_made_as_its_spec_says(node: Node) -> None:
    """A container has the words, the user, the groups and the privileges of its spec or of its pod's."""
    web = node.want(pod(*_CONTAINERS, securityContext=_POD_SECURITY, dnsPolicy="None", dnsConfig=_DNS))
    node.runtime.add_image("registry/named:1", user="app")
    node.runtime.add_image("registry/numbered:1", user="1000")
    images = {"c1": "img:1", "c2": "registry/named:1", "c3": "registry/numbered:1"}
    users = [
        node.want(
            pod(container(image=image, securityContext={"runAsNonRoot": True, **own}), name=f"user-{i}")
        )
        for i, (image, own, _) in enumerate(_USERS)
    ]
    bare = node.want(pod(*(container(name, image=image) for name, image in images.items()), name="bare"))
    names = [each["name"] for each in _CONTAINERS]
    for name in names:
        await web.until_called("CreateContainer", container=name, within=60, contract="START-15")
    await bare.until_running(*images)
    for one, (_, _, may_run) in zip(users, _USERS, strict=True):
        if may_run:
            await one.until_running("c1", contract="START-15")
        else:
            await one.until_waiting("c1", "CreateContainerConfigError", contract="START-15")
    wrong = [
        *(each for name in names for each in _wrong(web, name, _PLAIN | _EXPECTED[name])),
        *(each for name, user in _OF_IMAGES.items() for each in _wrong(bare, name, _PLAIN | _BARE | user)),
        *_differing("the sandbox of web", _found_sandbox(web), _SANDBOX),
        *_differing("the sandbox of bare", _found_sandbox(bare), _BARE_SANDBOX),
    ]
    await node.expect("containers are made as their spec says", lambda: wrong, "START-15")


def _created(whose: PodHandle, name: str) -> Any:  # noqa: ANN401 - the config of a container
    return whose.calls("CreateContainer", name)[0].request.config


def _wrong(whose: PodHandle, name: str, expected: Json) -> Iterator[str]:
    """What a container is made with that is not as expected."""
    yield from _differing(f"{name} of {whose.name}", _found(_created(whose, name)), expected)


def _differing(what: str, found: Json, expected: Json) -> Iterator[str]:
    for field, value in expected.items():
        if found[field] != value:
            yield f"{field} of {what} is {found[field]}"


def _found_sandbox(whose: PodHandle) -> Json:
    config = whose.calls("RunPodSandbox")[0].request.config
    own, dns = config.linux.security_context, config.dns_config
    return {
        "user": own.run_as_user.value if own.HasField("run_as_user") else None,
        "group": own.run_as_group.value if own.HasField("run_as_group") else None,
        "groups": list(own.supplemental_groups),
        "privileged": own.privileged,
        "seccomp": _profile(own.seccomp),
        "servers": list(dns.servers),
        "searches": list(dns.searches),
        "options": sorted(dns.options),
        "ports": [
            (one.protocol, one.container_port, one.host_port, one.host_ip) for one in config.port_mappings
        ],
    }


def _found(config: Any) -> Json:  # noqa: ANN401 - the config of a container
    own = config.linux.security_context
    hidden, kept = list(own.masked_paths), list(own.readonly_paths)
    return {
        "args": list(config.args),
        "working_dir": config.working_dir,
        "stdin": config.stdin,
        "stdin_once": config.stdin_once,
        "tty": config.tty,
        "user": own.run_as_user.value if own.HasField("run_as_user") else None,
        "username": own.run_as_username,
        "group": own.run_as_group.value if own.HasField("run_as_group") else None,
        "groups": list(own.supplemental_groups),
        "privileged": own.privileged,
        "readonly_rootfs": own.readonly_rootfs,
        "no_new_privs": own.no_new_privs,
        "capabilities": (list(own.capabilities.add_capabilities), list(own.capabilities.drop_capabilities)),
        "seccomp": _profile(own.seccomp),
        "seen": [path for path in _MASKED if path not in hidden],
        "writable": [path for path in (*_READ_ONLY, "/proc/asound") if path not in (*hidden, *kept)],
        "odd": [path for path in (*hidden, *kept) if not path.startswith("/")],
    }


def _profile(seccomp: Any) -> tuple[int, str]:  # noqa: ANN401 - a profile of the CRI
    """Its kind, and its path below the kubelet's folder."""
    _, found, path = seccomp.localhost_ref.partition("/seccomp/")
    return seccomp.profile_type, f"{found}{path}"


@witness("START-15", kubernetes=(1, 34))
async def test_more_of_the_host_is_hidden(node: Node) -> None:
    """Neither sound, interrupts nor power can be seen from a container."""
    web = await node.run(container(securityContext={"privileged": True}))
    hidden = _created(web, "c1").linux.security_context.masked_paths
    wrong = [path for path in _MASKED_LATER if path not in hidden]
    await node.expect("these paths are hidden", lambda: wrong, "START-15")


def _asks(cpu: str = "", memory: str = "") -> Json:
    return {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}


def _same(cpu: str, memory: str) -> Json:
    return {"requests": _asks(cpu, memory), "limits": _asks(cpu, memory)}


_LAST, _FIRST = -997, 1000
"""The scores of what the kernel kills last and first when memory is short."""
_AMOUNTS: Mapping[str, tuple[Sequence[Json], Sequence[tuple[int, int, int, int]]]] = {
    "nothing": ([{}], [(2, 0, 0, _FIRST)]),
    "all": (
        [_same("300m", "32Mi"), _same("0.1", "16Mi")],
        [(307, 30_000, 32 * _MI, _LAST), (102, 10_000, 16 * _MI, _LAST)],
    ),
    "half": ([_same("200m", "1Mi"), {}], [(204, 20_000, _MI, _FIRST - 1), (2, 0, 0, _FIRST - 1)]),
    "cpu": ([{"limits": _asks("400m")}], [(409, 40_000, 0, _FIRST - 1)]),
    "less": (
        [{"requests": _asks("1m"), "limits": _asks("5m", "2Mi")}, {"requests": _asks("250m")}],
        [(2, 1000, 2 * _MI, _FIRST - 1), (256, 0, 0, _FIRST - 1)],
    ),
}
"""The resources of the containers of a pod; shares, quota, memory and score that each is given."""
_TOGETHER = {
    "nothing": (2, 0, 0),
    "all": (409, 40_000, 48 * _MI),
    "half": (204, 20_000, _MI),
    "cpu": (409, 40_000, 0),
    "less": (257, 1000, 2 * _MI),
}

_SIZES = {
    "20000000": 20_000_000,
    "20000k": 20_000_000,
    "20M": 20_000_000,
    "2e7": 20_000_000,
    "1.5G": 1_500_000_000,
    "1T": 10**12,
    "1P": 10**15,
    "1E": 10**18,
    "20000Ki": 20_000 * 1024,
    "20.Mi": 20 * _MI,
    "1Gi": 1 << 30,
    "1Ti": 1 << 40,
    "1Pi": 1 << 50,
    "1Ei": 1 << 60,
    "20000000000m": 20_000_000,
}
"""Bytes by how they may be written."""
_TWENTIETHS = ("50000000n", "50000u", "50m", "+.05", "5E-2")
_SHARES_OF_A_TWENTIETH = 51


@witness("START-15", memory_bytes=1 << 30)
async def test_amounts_reach_the_runtime(node: Node) -> None:
    """Cores and bytes reach the runtime in its units, and who asked for more memory is killed later."""
    made = {
        name: node.want(pod(*(container(f"c{i}", resources=one) for i, one in enumerate(asked)), name=name))
        for name, (asked, _) in _AMOUNTS.items()
    }
    greedy = [{"requests": _asks(memory=amount)} for amount in ("100Mi", "200Mi")]
    made["init"] = node.want(
        pod(
            container("c0", resources=_same("100m", "1Mi")),
            init=(container("i1", "exit 0 0"),),
            name="init",
        )
    )
    made["greedy"] = node.want(
        pod(*(container(f"c{i}", resources=one) for i, one in enumerate(greedy)), name="greedy")
    )
    sizes = [{"requests": _asks(memory="1Mi"), "limits": _asks(memory=amount)} for amount in _SIZES]
    parts = [{"requests": _asks(amount)} for amount in _TWENTIETHS]
    for name, asked in (("sizes", sizes), ("parts", parts)):
        containers = (container(f"c{i}", resources=one) for i, one in enumerate(asked))
        made[name] = node.want(pod(*containers, name=name))
    for each in made.values():
        await each.until_running(within=60, contract="START-15")
    wrong = [
        f"c{i} of {name} is given {found}"
        for name, (_, expected) in _AMOUNTS.items()
        for i, one in enumerate(expected)
        if (found := _given(made[name], f"c{i}")) != one
    ]
    for name, together in _TOGETHER.items():
        given = _units(made[name].calls("RunPodSandbox")[0].request.config.linux.resources)
        if given != together:
            wrong.append(f"the sandbox of {name} is given {given}")
    wrong += [
        f"{amount} is taken for {size}"
        for i, (amount, number) in enumerate(_SIZES.items())
        if (size := _given(made["sizes"], f"c{i}")[2]) != number
    ]
    wrong += [
        f"{amount} is taken for {shares} shares"
        for i, amount in enumerate(_TWENTIETHS)
        if (shares := _given(made["parts"], f"c{i}")[0]) != _SHARES_OF_A_TWENTIETH
    ]
    less, more = (_FIRST - _given(made["greedy"], name)[-1] for name in ("c0", "c1"))
    if less <= 0 or abs(more - 2 * less) > 1:
        wrong.append(f"100 MiB count {less}, and 200 MiB {more}")
    if _given(made["init"], "c0")[-1] != _FIRST - 1:
        wrong.append("an init container without limits does not count")
    await node.expect("containers and sandboxes are given their amounts", lambda: wrong, "START-15")


def _given(whose: PodHandle, name: str) -> tuple[int, int, int, int]:
    resources = _created(whose, name).linux.resources
    return *_units(resources), resources.oom_score_adj


def _units(resources: Any) -> tuple[int, int, int]:  # noqa: ANN401 - those of the CRI
    return resources.cpu_shares, resources.cpu_quota, resources.memory_limit_in_bytes
