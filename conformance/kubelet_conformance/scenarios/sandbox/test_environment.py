"""What a container is given: its variables and mounts, wherever they come from."""

import json
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kubelet_conformance.node import Node, PodHandle, container, pod, witness

Json = dict[str, Any]
_MI = 1 << 20


def _field(path: str) -> Json:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


def _amount(resource: str, divisor: str = "", of: str = "") -> Json:
    named = {"containerName": of} if of else {}
    return {"valueFrom": {"resourceFieldRef": {"resource": resource, "divisor": divisor or "1", **named}}}


def _key(kind: str, name: str, key: str, *, optional: bool = False) -> Json:
    return {"valueFrom": {kind: {"name": name, "key": key, "optional": optional}}}


_VARIABLES: Mapping[str, tuple[Json, str | None]] = {
    "PLAIN": ({"value": "a$$b"}, "a$b"),
    "REFERS": ({"value": "$(PLAIN)-$$(PLAIN)-$(NONE)-$(IN_colour)"}, "a$b-$(PLAIN)-$(NONE)-red"),
    "EMPTY": ({}, ""),
    "NAME": (_field("metadata.name"), "web"),
    "ACCOUNT": (_field("spec.serviceAccountName"), "robot"),
    "LABEL": (_field("metadata.labels['app']"), "shop"),
    "ANNOTATION": (_field("metadata.annotations['note']"), "any text"),
    "NO_LABEL": (_field("metadata.labels['none']"), ""),
    "CPUS": (_amount("limits.cpu"), "2"),
    "MILLIS": (_amount("limits.cpu", "1m"), "1500"),
    "NO_UNIT": (_amount("limits.cpu", "0"), "2"),
    "MEMORY": (_amount("limits.memory", "1Mi"), "64"),
    "REQUEST": (_amount("requests.memory"), str(32 * _MI)),
    "OF_ANOTHER": (_amount("requests.cpu", "1m", of="c2"), "250"),
    "NOT_ASKED": (_amount("requests.ephemeral-storage"), "0"),
    "COLOUR": (_key("configMapKeyRef", "settings", "colour"), "red"),
    "PASSWORD": (_key("secretKeyRef", "login", "password"), "s3cret"),
    "NO_KEY": (_key("configMapKeyRef", "settings", "none", optional=True), None),
    "NO_SECRET_KEY": (_key("secretKeyRef", "login", "none", optional=True), None),
    "NO_MAP": (_key("configMapKeyRef", "none", "none", optional=True), None),
    "NO_SECRET": (_key("secretKeyRef", "none", "none", optional=True), None),
    # A variable of a whole object gives way to one of its own.
    "IN_size": ({"value": "small"}, "small"),
}
_WHOLE: Sequence[Json] = (
    {"prefix": "IN_", "configMapRef": {"name": "settings"}},
    {"secretRef": {"name": "login"}},
    {"configMapRef": {"name": "none", "optional": True}},
    {"secretRef": {"name": "none", "optional": True}},
)
_FROM_WHOLE = {"IN_colour": "red", "password": "s3cret"}
_ITEMS = [{"key": "colour", "path": "a/b"}]
_DOWNWARD: Sequence[Json] = (
    *(
        {"path": f"f{number}", "fieldRef": {"fieldPath": path}}
        for number, path in enumerate(
            (
                *("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels"),
                *("metadata.annotations", "metadata.labels['app']", "metadata.annotations['note']"),
            )
        )
    ),
    {"path": "limit", "resourceFieldRef": {"containerName": "c1", "resource": "limits.cpu"}},
)
_VOLUMES: Mapping[str, tuple[Json, str]] = {
    "plain": ({}, "empty-dir/plain"),
    "memory": ({"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}, "empty-dir/memory"),
    "map": ({"configMap": {"name": "settings"}}, "configmap/map"),
    "keys": ({"configMap": {"name": "settings", "items": _ITEMS}}, "configmap/keys"),
    "no-map": ({"configMap": {"name": "none", "optional": True}}, "configmap/no-map"),
    "secret": ({"secret": {"secretName": "login"}}, "secret/secret"),
    "downward": ({"downwardAPI": {"items": _DOWNWARD}}, "downward-api/downward"),
    "all": (
        {
            "projected": {
                "sources": [
                    {"configMap": {"name": "settings", "items": _ITEMS}},
                    {"secret": {"name": "login"}},
                    {"secret": {"name": "none", "optional": True}},
                    {"downwardAPI": {"items": _DOWNWARD}},
                ]
            }
        },
        "projected/all",
    ),
    "host": (
        {"hostPath": {"path": "/var/lib/kubelet/made", "type": "DirectoryOrCreate"}},
        "/var/lib/kubelet/made",
    ),
    "file": (
        {"hostPath": {"path": "/var/lib/kubelet/made.txt", "type": "FileOrCreate"}},
        "/var/lib/kubelet/made.txt",
    ),
    "any": ({"hostPath": {"path": "/var/lib/kubelet/any"}}, "/var/lib/kubelet/any"),
}
_SHOWS_OBJECTS = ("map", "keys", "no-map", "secret", "downward", "all")
_PROPAGATION = {"None": 0, "HostToContainer": 1, "Bidirectional": 2}


@witness("START-15")
async def test_container_is_given_what_its_pod_says(node: Node) -> None:
    """A container is created with the variables and the mounts that the API promises for its spec."""
    _put_objects(node)
    mounts: list[Json] = [{"name": name, "mountPath": f"/m/{name}"} for name in _VOLUMES]
    mounts += [
        {"name": "plain", "mountPath": "relative", "readOnly": True},
        *({"name": "host", "mountPath": f"/p/{each}", "mountPropagation": each} for each in _PROPAGATION),
    ]
    resources = {"limits": {"cpu": "1500m", "memory": "64Mi"}, "requests": {"cpu": "1", "memory": "32Mi"}}
    web = node.want(
        pod(
            container(
                env=[
                    {"name": "NAMESPACE", **_field("metadata.namespace")},
                    *({"name": name, **given} for name, (given, _) in _VARIABLES.items()),
                ],
                envFrom=list(_WHOLE),
                resources=resources,
                volumeMounts=mounts,
            ),
            container("c2", resources={"requests": {"cpu": "250m"}}),
            metadata={"labels": {"app": "shop"}, "annotations": {"note": "any text"}},
            serviceAccountName="robot",
            automountServiceAccountToken=False,
            volumes=[{"name": name, **source} for name, (source, _) in _VOLUMES.items()],
        )
    )
    created = await _until_created(web)
    wrong = [*_wrong_variables(created, web), *_wrong_mounts(created, web)]
    await node.expect("the container has the variables and the mounts of its spec", lambda: wrong, "START-15")


_LONG = "/".join(["x" * 255] * 15 + ["y" * 127, "y" * 128])
"""The longest path of a file, of names that are as long as a name may be."""
_OF_NODE = {"CPUS": "4", "MILLICPUS": "3500", "MEMORY": "1024", "LIMIT": "1500", "NONE": "0"}
_AMOUNTS: Sequence[Json] = (
    {"path": "CPUS", "resourceFieldRef": {"containerName": "c2", "resource": "limits.cpu"}},
    {
        "path": "MILLICPUS",
        "resourceFieldRef": {"containerName": "c2", "resource": "limits.cpu", "divisor": "1m"},
    },
    {
        "path": "MEMORY",
        "resourceFieldRef": {"containerName": "c2", "resource": "limits.memory", "divisor": "1Mi"},
    },
    {
        "path": "LIMIT",
        "resourceFieldRef": {"containerName": "c1", "resource": "limits.cpu", "divisor": "1m"},
    },
    {"path": "NONE", "resourceFieldRef": {"containerName": "c2", "resource": "requests.cpu"}},
)
_FIELDS: Sequence[Json] = (
    *(
        {"path": path.partition(".")[2], "fieldRef": {"fieldPath": path}}
        for path in ("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels")
    ),
    {"path": "own/label", "mode": 0o400, "fieldRef": {"fieldPath": "metadata.labels['app']"}},
    {"path": "own/note", "fieldRef": {"fieldPath": "metadata.annotations['note']"}},
    {"path": "own/none", "fieldRef": {"fieldPath": "metadata.annotations['none']"}},
)
_SHOWN: Mapping[str, Json] = {
    "map": {"configMap": {"name": "settings"}},
    "keys": {
        "configMap": {
            "name": "settings",
            "defaultMode": 0o640,
            "optional": True,
            "items": [
                {"key": "colour", "path": "a/b/c", "mode": 0o400},
                {"key": "size", "path": "a/s"},
                {"key": "none", "path": "none"},
            ],
        }
    },
    "long": {"configMap": {"name": "settings", "items": [{"key": "colour", "path": _LONG}]}},
    "none": {"configMap": {"name": "none", "optional": True}},
    "binary": {"configMap": {"name": "binary"}},
    "secret": {"secret": {"secretName": "login", "defaultMode": 0o400}},
    "part": {"secret": {"secretName": "login", "items": [{"key": "password", "path": "p", "mode": 0}]}},
    "fields": {"downwardAPI": {"defaultMode": 0o600, "items": _FIELDS}},
    "amounts": {"downwardAPI": {"items": _AMOUNTS}},
    "all": {
        "projected": {
            "defaultMode": 0o440,
            "sources": [
                {"configMap": {"name": "settings", "items": [{"key": "colour", "path": "c", "mode": 0o444}]}},
                {"secret": {"name": "login"}},
                {"secret": {"name": "none", "optional": True}},
                {"downwardAPI": {"items": _FIELDS[:1]}},
            ],
        }
    },
    "empty": {},
    "memory": {"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
    "dir": {"hostPath": {"path": "/srv/new", "type": "DirectoryOrCreate"}},
    "file": {"hostPath": {"path": "/srv/new.txt", "type": "FileOrCreate"}},
    "old-dir": {"hostPath": {"path": "/srv/new", "type": "Directory"}},
    "old-file": {"hostPath": {"path": "/srv/new.txt", "type": "File"}},
}
_OF_HOST = frozenset({"dir", "file", "old-dir", "old-file"})
_IN_MEMORY = frozenset({"all", "amounts", "fields", "part", "secret"})
"""What a node holds in memory, with all of it as its bound where neither volume nor pod has one."""


def _files(
    web: PodHandle, colour: str, password: str, **more: str
) -> Mapping[str, Mapping[str, tuple[str, int]]]:
    """The files of each volume, but for those of `map`, which are given too: text and permissions by path."""
    own = {
        "name": (web.name, 0o600),
        "namespace": ("default", 0o600),
        "uid": (web.uid, 0o600),
        "labels": ('app="shop"\nkey="a\\"b"', 0o600),
        "own/label": ("shop", 0o400),
        "own/note": ("any text", 0o600),
        "own/none": ("", 0o600),
    }
    files: Mapping[str, Mapping[str, tuple[str, int]]] = {
        "map": {"colour": (colour, 0o644), **{name: (text, 0o644) for name, text in more.items()}},
        "keys": {
            "a/b/c": (colour, 0o400),
            **({"a/s": (more["size"], 0o640)} if "size" in more else {}),
        },
        "long": {_LONG: (colour, 0o644)},
        "none": {},
        "binary": {"raw": ("raw", 0o644), "text": ("plain", 0o644)},
        "secret": {"password": (password, 0o400)},
        "part": {"p": (password, 0)},
        "fields": own,
        "amounts": {name: (text, 0o644) for name, text in _OF_NODE.items()},
        "all": {"c": (colour, 0o444), "password": (password, 0o440), "name": (web.name, 0o440)},
        "empty": {},
        "memory": {"": (str(_MI), 0o777)},
        "dir": {"": ("", 0o755)},
        "file": {"": ("", 0o644)},
        "old-dir": {"": ("", 0o755)},
        "old-file": {"": ("", 0o644)},
    }
    sizes = dict.fromkeys(_IN_MEMORY, str(1 << 30))
    return {name: {"": (sizes.get(name, ""), 0o777), **each} for name, each in files.items()}


@witness("START-15", cpu_millicores=3500, memory_bytes=1 << 30)
async def test_volumes_show_what_they_name(node: Node) -> None:
    """A volume shows the files that its spec says, and what has become of its objects a while later."""
    _put_objects(node)
    binary = {"text": "plain"}, {"raw": b64encode(b"raw").decode()}
    node.api.put(
        "ConfigMap",
        {"metadata": {"namespace": "default", "name": "binary"}, "data": binary[0], "binaryData": binary[1]},
    )
    amounts = {
        each["path"]: {"valueFrom": {"resourceFieldRef": each["resourceFieldRef"]}} for each in _AMOUNTS
    }
    fields = {"NODE": "spec.nodeName", "UID": "metadata.uid", "IP": "status.podIP", "HOST": "status.hostIP"}
    fields |= {"IPS": "status.podIPs", "HOSTS": "status.hostIPs"}
    mounts = [
        *({"name": name, "mountPath": f"/m/{name}"} for name in _SHOWN),
        {"name": "map", "mountPath": "/part", "subPath": "colour"},
        {"name": "map", "mountPath": "/chosen", "subPathExpr": "$(WHICH)"},
    ]
    web = node.want(
        pod(
            container(
                env=[
                    *({"name": name, **given} for name, given in amounts.items()),
                    *({"name": name, **_field(path)} for name, path in fields.items()),
                    {"name": "WHICH", "value": "size"},
                ],
                resources={"limits": {"cpu": "1500m"}},
                volumeMounts=mounts,
            ),
            container("c2"),
            metadata={"labels": {"key": 'a"b', "app": "shop"}, "annotations": {"note": "any text"}},
            volumes=[{"name": name, **source} for name, source in _SHOWN.items()],
        )
    )
    created = await _until_created(web)
    await web.until_running("c1", "c2")
    given = {each.key: each.value for each in created.envs}
    own = {
        "NODE": node.name,
        "UID": web.uid,
        "IP": web.status["podIP"],
        "IPS": ",".join(each["ip"] for each in web.status["podIPs"]),
        "HOST": web.status["hostIP"],
        "HOSTS": web.status["hostIP"],
    }
    wrong = [name for name, text in (own | _OF_NODE).items() if given.get(name) != text]
    wrong += _wrong_files(node, created, _files(web, "red", "s3cret", size="big"))
    parts = [{"": ("red", 0o644)}, {"": ("big", 0o644)}]
    wrong += [
        each
        for each, part in zip(("/part", "/chosen"), parts, strict=True)
        if _found(node, created, each) != part
    ]
    await _expect(node, lambda: wrong)
    settings = {"colour": "blue", "taste": "sweet"}
    node.api.put("ConfigMap", {"metadata": {"namespace": "default", "name": "settings"}, "data": settings})
    login = {"password": b64encode(b"other").decode()}
    node.api.put("Secret", {"metadata": {"namespace": "default", "name": "login"}, "data": login})
    await node.wait(100)
    await _expect(node, lambda: _wrong_files(node, created, _files(web, "blue", "other", taste="sweet")))
    await node.restart_kubelet()
    _put_objects(node)
    await node.wait(100)
    await _expect(node, lambda: _wrong_files(node, created, _files(web, "red", "s3cret", size="big")))
    web.delete()
    await web.until_gone()
    paths = [f"/m/{name}" for name in _SHOWN if name not in _OF_HOST]
    await _expect(
        node, lambda: [f"{path} is left" for path in (*paths, "/part") if _found(node, created, path)]
    )


_TOKENS: Mapping[str, tuple[Json, int]] = {
    "usual": ({"path": "usual"}, 3600),
    "other": ({"path": "of/other", "audience": "vault", "expirationSeconds": 900}, 900),
}


@witness("START-15")
async def test_token_says_for_whom_it_is(node: Node) -> None:
    """A token in a volume is bound to the pod, of its account, and for the audience that it names."""
    sources = [{"serviceAccountToken": wanted} for wanted, _ in _TOKENS.values()]
    volumes = {"own": {"sources": sources, "defaultMode": 0o440}, "plain": {"sources": sources[:1]}}
    mounts = [{"name": name, "mountPath": f"/m/{name}"} for name in volumes]
    with node.fault("create serviceaccounts/token", code="500", times=1):
        web = node.want(
            pod(
                container(volumeMounts=mounts),
                serviceAccountName="robot",
                volumes=[{"name": name, "projected": projected} for name, projected in volumes.items()],
            )
        )
        await web.until_event("FailedMount", within=60, contract="EVENTS-01")
    created = await _until_created(web)
    given = [_found(node, created, f"/m/{name}") or {} for name in volumes]
    modes = [{path: mode for path, (_, mode) in each.items() if path} for each in given]
    expected = [dict.fromkeys(("usual", "of/other"), 0o440), {"usual": 0o644}]
    wrong = [] if modes == expected else [f"files: {modes}"]
    for name, (wanted, seconds) in _TOKENS.items():
        claims = _claims(given[0].get(wanted["path"], ("", 0))[0])
        bound = claims.get("kubernetes.io", {})
        audience = claims.get("aud", [])
        wrong += [] if claims.get("exp", 0) - claims.get("iat", 0) == seconds else [f"{name} lasts"]
        wrong += [] if bound.get("pod") == {"name": web.name, "uid": web.uid} else [f"{name} is of {bound}"]
        wrong += [] if bound.get("serviceaccount", {}).get("name") == "robot" else [f"{name}: account"]
        wrong += [] if (audience == ["vault"]) is ("audience" in wanted) else [f"{name} is for {audience}"]
    await _expect(node, lambda: wrong)


def _claims(token: str) -> Json:
    """What a token says, {} where it is none."""
    _, _, rest = token.partition(".")
    text = rest.partition(".")[0]
    claims: Json = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)) or "{}")
    return claims


@witness("START-15", memory_bytes=1 << 30)
async def test_volume_in_memory_is_bounded(node: Node) -> None:
    """A volume in memory is as large as its own limit says, or those of the containers together."""
    limits = [{"limits": {"memory": f"{size}Mi"}} for size in (64, 32)]
    sizes = {"small": {"sizeLimit": "1Mi"}, "large": {"sizeLimit": "1Gi"}, "plain": {}}
    mounts = [{"name": name, "mountPath": f"/m/{name}"} for name in sizes]
    web = node.want(
        pod(
            container("c1", resources=limits[0], volumeMounts=mounts),
            container("c2", resources=limits[1]),
            volumes=[
                {"name": name, "emptyDir": {"medium": "Memory", **size}} for name, size in sizes.items()
            ],
        )
    )
    created = await _until_created(web)
    expected = {"small": _MI, "large": 96 * _MI, "plain": 96 * _MI}
    files = {name: {"": (str(size), 0o777)} for name, size in expected.items()}
    await _expect(node, lambda: _wrong_files(node, created, files))


def _wrong_files(
    node: Node,
    created: Any,  # noqa: ANN401 - see above
    expected: Mapping[str, Mapping[str, tuple[str, int]]],
) -> list[str]:
    """The volumes in which a container finds other files."""
    found = {name: _found(node, created, f"/m/{name}") for name in expected}
    return [f"{name} shows {found[name]}" for name, files in expected.items() if found[name] != files]


def _found(node: Node, created: Any, path: str) -> Mapping[str, tuple[str, int]]:  # noqa: ANN401 - see above
    """The files that the container finds below a path, and what the path itself is."""
    host_path = next((each.host_path for each in created.mounts if each.container_path == path), "/none")
    return node.target.machine.shown(host_path)


async def _expect(node: Node, wrong: Callable[[], Sequence[str]]) -> None:
    await node.expect("volumes show what they name", lambda: [each[:298] for each in wrong()], "START-15")


_LOCAL_HOSTS = [
    ["127.0.0.1", "localhost"],
    ["::1", "localhost", "ip6-localhost", "ip6-loopback"],
    ["fe00::0", "ip6-localnet"],
    ["fe00::0", "ip6-mcastprefix"],
    ["fe00::1", "ip6-allnodes"],
    ["fe00::2", "ip6-allrouters"],
]
_ALIAS = ["10.0.0.9", "db", "db.example"]


@witness("START-15")
async def test_hosts_file_names_the_pod(node: Node) -> None:
    """A hosts file names the pod and what it calls others; files and folders have their permissions."""
    aliases = [{"ip": _ALIAS[0], "hostnames": _ALIAS[1:]}, {"ip": "10.0.0.8"}]
    web = await node.run(container(terminationMessagePath="/dev/end"), hostAliases=aliases)
    host = await node.run(name="host", hostNetwork=True, hostAliases=aliases)
    own = [*_LOCAL_HOSTS, [web.status["podIP"], web.name], _ALIAS]
    wrong = [*_wrong_hosts(node, web, own), *_wrong_hosts(node, host, [_ALIAS])]
    created = web.calls("CreateContainer", "c1")[0].request.config
    folder = f"/var/lib/kubelet/pods/{web.uid}"
    modes = {each: _mode(node, f"{folder}{each}") for each in ("", "/volumes", "/plugins", "/containers/c1")}
    wrong += [f"{path} has mode {mode:o}" for path, mode in modes.items() if mode != _FOLDER]
    if _found(node, created, "/dev/end") != {"": ("", 0o666)}:
        wrong.append("the termination message is there, or not to be written")
    await node.expect("files are as their containers need them", lambda: wrong, "START-15")


_FOLDER, _READABLE = 0o750, 0o644


def _mode(node: Node, path: str) -> int:
    return node.target.machine.shown(path)[""][1]


def _wrong_hosts(node: Node, whose: PodHandle, expected: Sequence[Sequence[str]]) -> Iterator[str]:
    """What the hosts file of the pod's container has that is not expected."""
    created = whose.calls("CreateContainer", "c1")[0].request.config
    text, mode = _found(node, created, "/etc/hosts").get("", ("", 0))
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    if lines != expected or mode != _READABLE or not text.startswith("# Kubernetes-managed hosts file"):
        yield f"the hosts file of {whose.name} has mode {mode:o} and {lines}"


@witness("START-15")
async def test_what_cannot_be_given_keeps_the_container_waiting(node: Node) -> None:
    """Without what its spec cannot do without a container is not created, and without a volume no sandbox."""
    _put_objects(node)
    variables = [
        _field("spec.none"),
        _amount("limits.cpu", of="none"),
        *(_key(kind, name, key) for kind in ("configMapKeyRef", "secretKeyRef") for name, key in _ABSENT),
    ]
    bad: list[PodHandle] = []
    with node.tolerant_api():
        for number, each in enumerate(variables):
            bad.append(node.want(pod(container(env=[{"name": "A", **each}]), name=f"env-{number}")))
        for number, each in enumerate(({"configMapRef": {"name": "none"}}, {"secretRef": {"name": "none"}})):
            bad.append(node.want(pod(container(envFrom=[each]), name=f"whole-{number}")))
        for number, mount in enumerate(_BAD_MOUNTS):
            mounting = container(volumeMounts=[{"name": "data", "mountPath": "/data", **mount}])
            bad.append(node.want(pod(mounting, name=f"mount-{number}", volumes=[{"name": "data"}])))
        for number, volume in enumerate(_BAD_VOLUMES):
            mounting = container(volumeMounts=[{"name": "data", "mountPath": "/data"}])
            bad.append(
                node.want(pod(mounting, name=f"volume-{number}", volumes=[{"name": "data", **volume}]))
            )
        await node.wait(20)
    wrong = [f"of {each.name} it is" for each in bad if _went_too_far(each)]
    await node.expect("nothing is made of these pods", lambda: wrong, "START-15")


@witness("START-15", "EVENTS-01")
async def test_place_that_cannot_be_made(node: Node) -> None:
    """What lies below a file of a volume is not mounted, nor is a file made in a folder that is not there."""
    _put_objects(node)
    mount = {"name": "data", "mountPath": "/data"}
    config = {"name": "data", "configMap": {"name": "settings"}}
    part = container(volumeMounts=[{**mount, "subPath": "colour/none"}])
    below = node.want(pod(part, name="below", volumes=[config]))
    await below.until_waiting("c1", "CreateContainerConfigError", within=60, contract="START-15")
    file = {"name": "data", "hostPath": {"path": "/srv/none/file", "type": "FileOrCreate"}}
    alone = node.want(pod(container(volumeMounts=[mount]), name="alone", volumes=[file]))
    await alone.until_event("FailedMount")


_ABSENT = (("settings", "none"), ("login", "none"), ("none", "none"))
_BAD_MOUNTS: Sequence[Json] = (
    {"subPath": "/etc"},
    {"subPath": "a/../../b"},
    {"subPathExpr": "$(NONE)"},
    {"name": "gone"},
)
_BAD_VOLUMES: Sequence[Json] = (
    {"configMap": {"name": "none"}},
    {"configMap": {"name": "settings", "items": [{"key": "none", "path": "a"}]}},
    {"secret": {"secretName": "none"}},
    {"secret": {"secretName": "login", "items": [{"key": "none", "path": "a"}]}},
    {"projected": {"sources": [{"configMap": {"name": "none"}}, {"secret": {"name": "none"}}]}},
    {"projected": {"sources": [{"secret": {"name": "login", "items": [{"key": "none", "path": "a"}]}}]}},
    {"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "spec.none"}}]}},
    *(
        {"configMap": {"name": "settings", "items": [{"key": "colour", "path": each}]}}
        for each in ("/a", "../a", "", "..a", f"{_LONG}y", "y" * 256)
    ),
    *(
        {"hostPath": {"path": "/var/lib/kubelet/none", "type": each}}
        for each in ("Directory", "File", "Socket", "Other")
    ),
    {"downwardAPI": {"items": [{"path": "a", "resourceFieldRef": {"resource": "limits.cpu"}}]}},
    {"nfs": {"server": "10.0.0.9", "path": "/"}},
    {"hostPath": {"path": "/srv/../etc"}},
    {"emptyDir": {"medium": "Tape"}},
)


def _put_objects(node: Node) -> None:
    """A config map `settings` and a secret `login`."""
    data = {"colour": "red", "size": "big"}
    node.api.put("ConfigMap", {"metadata": {"namespace": "default", "name": "settings"}, "data": data})
    secret = {"password": b64encode(b"s3cret").decode()}
    node.api.put("Secret", {"metadata": {"namespace": "default", "name": "login"}, "data": secret})


async def _until_created(web: PodHandle) -> Any:  # noqa: ANN401 - the config of a container
    """The config by which c1 is created."""
    await web.until_called("CreateContainer", container="c1", within=60, contract="START-15")
    return web.calls("CreateContainer", "c1")[0].request.config


def _wrong_variables(created: Any, web: PodHandle) -> Iterator[str]:  # noqa: ANN401 - see above
    given = {each.key: each.value for each in created.envs}
    expected = {name: value for name, (_, value) in _VARIABLES.items()} | _FROM_WHOLE
    # Of pods that share a node each scenario has its own.
    expected["NAMESPACE"] = web.calls("RunPodSandbox")[0].request.config.metadata.namespace
    for name, value in expected.items():
        if given.get(name) != value:
            yield f"{name} is {given.get(name)!r} instead of {value!r}"


def _wrong_mounts(created: Any, web: PodHandle) -> Iterator[str]:  # noqa: ANN401 - see above
    given = {
        each.container_path: (each.host_path, each.readonly, each.propagation) for each in created.mounts
    }
    folder = f"/pods/{web.uid}/volumes/kubernetes.io~"
    expected = {
        f"/m/{name}": (end if end.startswith("/") else f"{folder}{end}", name in _SHOWS_OBJECTS, 0)
        for name, (_, end) in _VOLUMES.items()
    }
    expected["/relative"] = f"{folder}empty-dir/plain", True, 0
    expected |= {
        f"/p/{name}": ("/var/lib/kubelet/made", False, number) for name, number in _PROPAGATION.items()
    }
    for path, (end, readonly, propagation) in expected.items():
        host_path, *rest = given.get(path, ("", False, 0))
        if not host_path.endswith(end) or rest != [readonly, propagation]:
            yield f"{path} is {given.get(path)}"


def _went_too_far(waiting: PodHandle) -> bool:
    """Whether its sandbox or its container was made before it had what it needs."""
    return bool(waiting.calls("RunPodSandbox" if waiting.name.startswith("volume") else "CreateContainer"))


@witness("START-15")
async def test_file_stays_in_its_volume(node: Node) -> None:
    """Paths that lead up and back again are refused as others are that lead out of a volume."""
    _put_objects(node)
    mounting = container(volumeMounts=[{"name": "data", "mountPath": "/data"}])
    bad: list[PodHandle] = []
    with node.tolerant_api():
        for number, path in enumerate(("a/../b", "a/..")):
            items = [{"key": "colour", "path": path}]
            volume = {"name": "data", "configMap": {"name": "settings", "items": items}}
            bad.append(node.want(pod(mounting, name=f"volume-{number}", volumes=[volume])))
        await node.wait(20)
    wrong = [f"of {each.name} it is" for each in bad if _went_too_far(each)]
    await node.expect("nothing is made of these pods", lambda: wrong, "START-15")
