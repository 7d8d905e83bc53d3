"""Manifests that the API server would refuse, or just about take: nobody else checks those of static pods."""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from kubelet_conformance.node import Node, container, pod, witness
from kubelet_conformance.scenarios.config.test_manifest_texts import only_these_run

Json = dict[str, Any]
Fields = Mapping[str, tuple[Sequence[Any], Sequence[Any]]]
"""Good and bad values of fields, by their paths; None is a field that is not given."""

_NEEDS = "room for some hundred pods"
_EMPTY: Json = {}
_LONG = "a" * 63
_LONGEST = "a." * 126 + "a"
_INT = 2**31 - 1
_C, _I = "spec.containers.0", "spec.initContainers.0"
_BAD_NAMES = ("Upper", "a_b", "-a", "a-", "a..b", "a" * 254)
_BAD_LABELS = (*_BAD_NAMES, "a.b", f"{_LONG}a")
_IDS = ((0, _INT), (-1, _INT + 1))
_MODE = ((0, 0o777), (-1, 0o1000))
_FILE = (("a/..b", "a/b"), ("", "/a", "../a", "a/../b", "..data"))
_REFERENCE = {"name": "settings", "optional": True}


def _of(expected: Sequence[str], *, empty: bool = True) -> tuple[Sequence[Any], Sequence[Any]]:
    """One of these words, or nothing where that is a field that is not given."""
    return ((*expected, "") if empty else expected), ("Other", *(() if empty else ("",)))


def _term(operator: str) -> Json:
    values = {} if operator.endswith("Exist") or operator == "Exists" else {"values": ["1"]}
    return {"matchExpressions": [{"key": "a", "operator": operator, **values}]}


def _profile(kind: str, good: Sequence[Json]) -> Fields:
    bad = [{"type": "Other"}, {"type": "Localhost"}, {"type": "Unconfined", "localhostProfile": "a"}]
    if kind == "appArmorProfile":
        bad += [{"type": "Localhost", "localhostProfile": each} for each in (" a", "a" * 4096)]
    return {f"{place}.securityContext.{kind}": (good, bad) for place in ("spec", _C)}


_OF_POD: Fields = {
    "apiVersion": ((), ("v2", None)),
    "kind": ((), ("Job", None)),
    "spec": ((), (None, [])),
    "spec.containers": ((), (None, [], {}, [None])),
    # The node's name comes behind it: "a-" is the beginning of a name that is allowed.
    "metadata.name": ((), (None, "", *(each for each in _BAD_NAMES if each != "a-"))),
    "metadata.namespace": ((), (_LONG + "a", "Upper", "a.b")),
    "metadata.generateName": (("a-", f"{_LONG}.b", ""), ("Upper", "a..b")),
    "metadata.generation": ((0,), (-1, "1", 0.5, True)),
    "metadata.creationTimestamp": (("2030-01-31T12:00:00Z",), ("soon", "2030-01-31T12:00:00", 5)),
    "metadata.labels": (
        ({f"{_LONG}.b/{_LONG}": _LONG, "c_D": ""}, {"a.b/A-1": "A_b.c"}, {f"{_LONGEST}/a": ""}),
        (
            {"a b": "c"},
            {"/a": "b"},
            {f"{_LONGEST}b/a": "b"},
            {"A/b": "c"},
            {"a": "b c"},
            {"a": f"{_LONG}a"},
            {f"{_LONG}a": "b"},
            {"": "a"},
        ),
    ),
    "metadata.annotations": (
        ({"A.b/C": "any text"},),
        ({"a b": "c"}, {"a": "x" * (256 << 10)}, ["a"]),
    ),
    "spec.restartPolicy": (("Always", "OnFailure", "Never"), ("Other",)),
    "spec.dnsPolicy": _of(("ClusterFirst", "ClusterFirstWithHostNet", "Default")),
    "spec.preemptionPolicy": _of(("PreemptLowerPriority", "Never"), empty=False),
    "spec.activeDeadlineSeconds": ((1000, _INT), (0, _INT + 1)),
    "spec.priority": ((-(2**31), _INT), (-(2**31) - 1, _INT + 1)),
    "spec.hostname": ((_LONG, ""), _BAD_LABELS),
    "spec.subdomain": ((_LONG, ""), _BAD_LABELS),
    "spec.serviceAccountName": (("",), _BAD_NAMES),
    "spec.priorityClassName": (("a.b", ""), _BAD_NAMES),
    "spec.runtimeClassName": ((), ("", *_BAD_NAMES)),
    "spec.dnsConfig": (
        (
            {"nameservers": ["1.1.1.1", "::1", "1.1.1.3"], "options": [{"name": "ndots"}]},
            {"searches": ["a"] * 32},
            {"searches": ["a-b.cde", *(["a" * 226] * 8), "a" * 224]},
        ),
        (
            {"nameservers": ["1.1.1.1"] * 4},
            {"nameservers": ["1.1.1"]},
            {"searches": ["a"] * 33},
            {"searches": ["a-b.cde", *(["a" * 226] * 8), "a" * 225]},
            {"searches": ["a b"]},
            {"options": [{"value": "1"}]},
        ),
    ),
    "spec.hostAliases.0": (
        ({"ip": "::1", "hostnames": ["a.b"]},),
        ({"ip": "1.1"}, {"ip": "1.1.1.1", "hostnames": ["a_b"]}, {"ip": ["::1"]}),
    ),
    "spec.os.name": (("linux",), ("other",)),
    "spec.tolerations.0": (
        [
            *(
                {"operator": "Exists", "effect": each}
                for each in ("NoSchedule", "PreferNoSchedule", "NoExecute", "")
            ),
            {"key": "a", "operator": "Equal"},
            {"key": "a", "operator": ""},
        ],
        ({"operator": "Other"}, {"operator": "Exists", "effect": "Other"}),
    ),
    "spec.readinessGates.0.conditionType": (("a.b/C",), ("", "a b", "a/b/c", None)),
    "spec.schedulingGates.0": ((), ({"name": "a"},)),
    "spec.resourceClaims.0": ((), ({"name": "a", "resourceClaimName": "b"},)),
    "spec.ephemeralContainers.0": ((), (container("debug"),)),
    "spec.securityContext.runAsUser": _IDS,
    "spec.securityContext.runAsGroup": _IDS,
    "spec.securityContext.fsGroup": _IDS,
    "spec.securityContext.supplementalGroups.0": _IDS,
    "spec.securityContext.supplementalGroupsPolicy": _of(("Merge", "Strict"), empty=False),
    "spec.securityContext.fsGroupChangePolicy": _of(("OnRootMismatch", "Always"), empty=False),
    "spec.securityContext.seLinuxChangePolicy": _of(("Recursive", "MountOption"), empty=False),
    "spec.securityContext.sysctls": (
        ([{"name": "kernel.shm_rmid_forced", "value": "1"}], [{"name": "net/ipv4/a", "value": "1"}]),
        (
            [{"name": "A.b", "value": "1"}],
            [{"name": f"{_LONG}." * 4, "value": "1"}],
            [{"name": "a.b", "value": "1"}, {"name": "a/b", "value": "1"}],
        ),
    ),
    **_profile(
        "seccompProfile",
        (
            {"type": "RuntimeDefault"},
            {"type": "Unconfined"},
            {"type": "Localhost", "localhostProfile": "a/b"},
        ),
    ),
    # A node without AppArmor refuses the other ones.
    **_profile("appArmorProfile", ({"type": "Unconfined"},)),
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms": (
        [[_term(each), _term("DoesNotExist")] for each in ("In", "NotIn", "Exists", "Gt", "Lt")],
        ([_term("Other")],),
    ),
}
_OF_CONTAINER: Fields = {
    _C: ((), (container("c 1"), container(image=""))),
    "spec.containers.1": ((container("c2"),), (container("c1"), container("i1"))),
    f"{_C}.name": ((_LONG,), (None, "", *_BAD_LABELS)),
    f"{_C}.image": (("img:1",), (None, "", " img:1", "img:1 ")),
    f"{_C}.imagePullPolicy": _of(("Always", "IfNotPresent", "Never")),
    f"{_C}.command": ((), (5, "run", [5])),
    f"{_C}.tty": ((True, False), ("true", 1)),
    f"{_C}.restartPolicy": ((), ("Always", "Other")),
    f"{_I}.restartPolicy": ((), ("Never", "Other")),
    f"{_I}.livenessProbe": ((), ({"exec": {"command": ["x"]}},)),
    f"{_I}.lifecycle": ((), ({"preStop": {"exec": {"command": ["x"]}}},)),
    f"{_C}.terminationMessagePolicy": (("File", "FallbackToLogsOnError"), ("Other",)),
    f"{_C}.securityContext.runAsUser": _IDS,
    f"{_C}.securityContext.runAsGroup": _IDS,
    f"{_C}.securityContext.procMount": (("Default",), ("Unmasked", "Other", "")),
    f"{_C}.ports": (
        (
            [{"containerPort": 1, "hostPort": 0, "protocol": "UDP", "name": "a" * 15}],
            [{"containerPort": 65535, "hostPort": 65535, "protocol": "SCTP", "hostIP": "::1"}],
            [{"containerPort": 5, "name": "a"}, {"containerPort": 5, "name": "b", "protocol": ""}],
            [{"containerPort": 5, "protocol": "TCP"}],
        ),
        (
            *([{"containerPort": each}] for each in (0, 65536, "80", None)),
            *([{"containerPort": 1, "hostPort": each}] for each in (-1, 65536)),
            *([{"containerPort": 1, "name": each}] for each in ("a" * 16, "1", "a--b", "A", "a-")),
            [{"containerPort": 1, "protocol": "Other"}],
            [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}],
            [{"containerPort": 1, "hostPort": 7}, {"containerPort": 2, "hostPort": 7}],
        ),
    ),
    f"{_I}.ports": ((), ([{"containerPort": 1, "hostPort": 7}, {"containerPort": 2, "hostPort": 7}],)),
    f"{_C}.resizePolicy": (
        (
            [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
            [
                {"resourceName": "memory", "restartPolicy": "RestartContainer"},
                {"resourceName": "cpu", "restartPolicy": "NotRequired"},
            ],
        ),
        (
            [{"resourceName": "gpu", "restartPolicy": "NotRequired"}],
            [{"resourceName": "cpu", "restartPolicy": "Other"}],
            [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2,
        ),
    ),
    f"{_I}.resizePolicy": ((), ([{"resourceName": "cpu", "restartPolicy": "NotRequired"}],)),
    f"{_C}.resources": (
        (
            {"limits": {"cpu": 1, "memory": "1Mi"}, "requests": {"cpu": "1", "ephemeral-storage": "1k"}},
            {"limits": {"cpu": 0.5}, "requests": {"memory": "0"}},
        ),
        (
            {"limits": {"gpu": 1}},
            {"requests": {"gpu": 1}},
            {"requests": {"a.b/c": 1}},
            {"requests": {"hugepages-2Mi": "2Mi"}},
            {"limits": {"a.b/c": 2}, "requests": {"a.b/c": 1}},
            {"limits": {"cpu": 1}, "requests": {"cpu": "1001m"}},
            {"limits": {"cpu": -1}},
            {"limits": {"cpu": "one"}},
            {"limits": {"cpu": True}},
            {"limits": ["cpu"]},
            {"limits": {"a/b/c": 1}},
            {"claims": [{"name": "gone"}]},
            {"claims": [{"name": ""}]},
        ),
    ),
    f"{_C}.env.0": (
        (
            {"name": "A.b-c_1", "value": "c"},
            {"name": "_", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "A", "value": "", "valueFrom": {"configMapKeyRef": {**_REFERENCE, "key": "a-B_c.d"}}},
            {"name": "A", "valueFrom": {"secretKeyRef": {**_REFERENCE, "key": ".a"}}},
            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "requests.hugepages-2Mi"}}},
        ),
        (
            *({"name": each} for each in ("", "a=b", "\n", None)),
            {"name": "A", "value": 1},
            {"name": "A", "valueFrom": {}},
            {"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": ""}}},
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v2"}}},
            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.gpu"}}},
            *(
                {"name": "A", "valueFrom": {kind: {**_REFERENCE, "key": key}}}
                for kind in ("configMapKeyRef", "secretKeyRef")
                for key in ("", "a b", "..a")
            ),
            *(
                {"name": "A", "valueFrom": {kind: {"name": name, "key": "a", "optional": True}}}
                for kind in ("configMapKeyRef", "secretKeyRef")
                for name in ("", "A_b")
            ),
        ),
    ),
    f"{_C}.envFrom.0": (
        ({"prefix": "A_", "configMapRef": _REFERENCE}, {"secretRef": _REFERENCE}),
        (
            {},
            {"configMapRef": _REFERENCE, "secretRef": _REFERENCE},
            {"prefix": "=", "secretRef": _REFERENCE},
            *(
                {kind: {"name": name, "optional": True}}
                for kind in ("configMapRef", "secretRef")
                for name in ("", "A_b")
            ),
        ),
    ),
}
_EXEC = {"exec": {"command": ["x", "0", "0"]}}
_OF_PROBES: Fields = {
    f"{_C}.readinessProbe": (
        (
            _EXEC,
            {"httpGet": {"port": 1, "scheme": "HTTPS", "httpHeaders": [{"name": "A-1", "value": ""}]}},
            {"httpGet": {"port": "web", "scheme": "HTTP", "path": ""}, "successThreshold": 2},
            {"tcpSocket": {"port": 65535}, "timeoutSeconds": 0, "periodSeconds": _INT},
            {"grpc": {"port": 1}, "initialDelaySeconds": _INT, "failureThreshold": _INT},
            {**_EXEC, "successThreshold": _INT, "timeoutSeconds": _INT},
        ),
        (
            {},
            {**_EXEC, "tcpSocket": {"port": 1}},
            {"exec": {}},
            *({"httpGet": {"port": each}} for each in (0, 65536, "", "a" * 16, "1", "a--b", 1.5, True)),
            {"httpGet": {"port": 1, "scheme": "FTP"}},
            {"httpGet": {"port": 1, "httpHeaders": [{"name": "a b", "value": ""}]}},
            *({"tcpSocket": {"port": each}} for each in (0, "")),
            *({"grpc": {"port": each}} for each in (0, 65536, "a")),
            *(
                {**_EXEC, field: each}
                for field in (
                    *("initialDelaySeconds", "timeoutSeconds"),
                    *("successThreshold", "failureThreshold"),
                )
                for each in (-1, _INT + 1)
            ),
            {**_EXEC, "periodSeconds": _INT + 1},
            {**_EXEC, "terminationGracePeriodSeconds": 5},
        ),
    ),
    f"{_C}.livenessProbe": (
        ({**_EXEC, "terminationGracePeriodSeconds": 1}, {**_EXEC, "successThreshold": 1}),
        ({**_EXEC, "terminationGracePeriodSeconds": 0}, {**_EXEC, "successThreshold": 2}),
    ),
    f"{_C}.startupProbe": ((), ({}, {**_EXEC, "successThreshold": 2})),
    f"{_C}.lifecycle.preStop": (
        ({"sleep": {"seconds": 1}}, {"sleep": {"seconds": 30}}, {"tcpSocket": {"port": 1}}),
        (
            {},
            {"exec": {}},
            {**_EXEC, "sleep": {"seconds": 1}},
            *({"sleep": {"seconds": each}} for each in (-1, 31)),
        ),
    ),
    f"{_C}.lifecycle.postStart": ((_EXEC,), ({}, {"exec": {"command": []}})),
}
_TOKEN = {"path": "a", "expirationSeconds": 600}
_OF_VOLUMES: Fields = {
    "spec.volumes.1.name": ((), ("data",)),
    "spec.volumes.0.name": ((), (None, "", *_BAD_LABELS)),
    "spec.volumes.1.hostPath": (
        [
            {"path": "/a"},
            *(
                {"path": "/a", "type": each}
                for each in (
                    *("DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket"),
                    *("CharDevice", "BlockDevice", ""),
                )
            ),
        ],
        ({"path": ""}, {"path": "/a/../b"}, {"path": "/a", "type": "Other"}, {"type": ""}),
    ),
    "spec.volumes.2.emptyDir": (
        [{"medium": each, "sizeLimit": "1Mi"} for each in ("", "Memory", "HugePages-2Mi")],
        ({"sizeLimit": -1}, {"sizeLimit": "big"}),
    ),
    **{
        f"spec.volumes.{number}.{kind}": (
            [{name: "a", "optional": True, "defaultMode": each} for each in (0, 0o777)],
            [
                {"optional": True},
                *({name: "a", "defaultMode": each} for each in (-1, 0o1000)),
                *({name: "a", "items": [{"key": "k", "path": each}]} for each in _FILE[1]),
                *({name: "a", "items": [{"key": "k", "path": "p", "mode": each}]} for each in _MODE[1]),
                {name: "a", "items": [{"key": "", "path": "p"}]},
            ],
        )
        for number, kind, name in ((7, "configMap", "name"), (8, "secret", "secretName"))
    },
    "spec.volumes.3.persistentVolumeClaim": ((), ({"claimName": ""},)),
    "spec.volumes.4.image": ((), ({}, {"reference": "img:1", "pullPolicy": "Other"})),
    "spec.volumes.5.downwardAPI": (
        [
            {
                "items": [{"path": each, "mode": mode, "fieldRef": {"fieldPath": "metadata.labels"}}],
                "defaultMode": mode,
            }
            for each, mode in zip(_FILE[0], _MODE[0], strict=True)
        ],
        [
            *({"items": [{"path": each, "fieldRef": {"fieldPath": "metadata.name"}}]} for each in _FILE[1]),
            *(
                {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}, "mode": m}]}
                for m in _MODE[1]
            ),
            *({"defaultMode": each} for each in _MODE[1]),
            {"items": [{"path": "a"}]},
            {"items": [{"path": "a", "resourceFieldRef": {"resource": "limits.cpu"}}]},
        ],
    ),
    "spec.volumes.6.projected": (
        [
            {"sources": [{"configMap": _REFERENCE}, {"downwardAPI": _EMPTY}], "defaultMode": each}
            for each in _MODE[0]
        ]
        + [
            {"sources": [{"serviceAccountToken": {**_TOKEN, "expirationSeconds": each}}]}
            for each in (600, 1 << 32)
        ],
        [
            *(
                {"sources": [{"serviceAccountToken": {**_TOKEN, "expirationSeconds": each}}]}
                for each in (599, (1 << 32) + 1)
            ),
            *({"sources": [{"serviceAccountToken": {"path": each}}]} for each in _FILE[1]),
            *({"sources": [], "defaultMode": each} for each in _MODE[1]),
            {"sources": [{"configMap": _REFERENCE, "secret": _REFERENCE}]},
            *({"sources": [{kind: {"optional": True}}]} for kind in ("configMap", "secret")),
            {"sources": [{"downwardAPI": {"items": [{"path": "a"}]}}]},
            {"sources": [{"clusterTrustBundle": {"path": "a", "name": "b"}}]},
        ],
    ),
    f"{_C}.volumeMounts.0": (
        [
            {"name": "data", "mountPath": "/data", "subPath": "a", "mountPropagation": "None"},
            {"name": "data", "mountPath": "/data", "subPathExpr": "a", "mountPropagation": "HostToContainer"},
            {"name": "data", "mountPath": "/data", "subPath": ""},
            *(
                {"name": "data", "mountPath": "/data", "readOnly": True, "recursiveReadOnly": each}
                for each in ("Disabled", "IfPossible", "Enabled")
            ),
        ],
        [
            {"name": "gone", "mountPath": "/data"},
            {"name": "data", "mountPath": ""},
            {"name": "data", "mountPath": "/data", "subPath": "a", "subPathExpr": "b"},
            *(
                {"name": "data", "mountPath": "/data", "mountPropagation": each}
                for each in ("Other", "Bidirectional")
            ),
            {"name": "data", "mountPath": "/data", "recursiveReadOnly": "Other"},
            *({"name": "data", "mountPath": "/data", "subPath": each} for each in ("/a", "../a")),
            *({"name": "data", "mountPath": "/data", "subPathExpr": each} for each in ("/a", "../a")),
        ],
    ),
    f"{_C}.volumeMounts": ((), ([{"name": "data", "mountPath": "/data"}] * 2,)),
    f"{_C}.volumeDevices.0": (
        (),
        (
            {"name": "", "devicePath": "/dev/a"},
            {"name": "data", "devicePath": "a/.."},
            {"name": "data", "devicePath": ""},
        ),
    ),
}


_RESIZE: Json = {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]}
_ALLOWED: tuple[Json, ...] = (
    {"hostUsers": False, "containers": [container(securityContext={"procMount": "Unmasked"})]},
    {"hostPID": True, "hostIPC": True, "hostUsers": True},
    {"hostNetwork": True, "securityContext": {"sysctls": [{"name": "kernel/shm_rmid_forced", "value": "1"}]}},
    {"hostIPC": True, "securityContext": {"sysctls": [{"name": "net/ipv4/a", "value": "1"}]}},
    {"restartPolicy": "Never", "containers": [container(**_RESIZE)]},
)
"""What a pod may have together, though one of it with another it may not."""


@witness("STATIC-26", kubernetes=(1, 32), until=(1, 32), needs=_NEEDS, max_pods=500)
async def test_fields_of_pods(node: Node) -> None:
    """Manifests that are wrong as a whole, or in a field of the pod, are not run; others are."""
    good = pod(container("c1"), volumes=[{"name": "data"}])
    together: tuple[Json, ...] = (
        {"dnsPolicy": "None"},
        {"hostPID": True, "shareProcessNamespace": True},
        *({"hostUsers": False, each: True} for each in ("hostNetwork", "hostPID", "hostIPC")),
        {"hostNetwork": True, "securityContext": {"sysctls": [{"name": "net/a", "value": "1"}]}},
        *(
            {"hostIPC": True, "securityContext": {"sysctls": [{"name": f"{each}a", "value": "1"}]}}
            for each in ("kernel.shm", "kernel.msg", "kernel.sem", "fs/mqueue.")
        ),
    )
    wrong = [{**deepcopy(good), "spec": {**good["spec"], **fields}} for fields in together]
    await only_good_ones_are_run(
        node, good, _OF_POD, wrong, [{**good, "spec": {**good["spec"], **each}} for each in _ALLOWED]
    )


@witness("STATIC-26", kubernetes=(1, 32), until=(1, 32), needs=_NEEDS, max_pods=500)
async def test_fields_of_containers(node: Node) -> None:
    """Manifests that are wrong in a field of a container are not run; others are."""
    volumes = [{"name": "data"}]
    good = pod(container("c1"), init=(container("i1", "exit 0 0"),), volumes=volumes)
    never = container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}])
    host = container(ports=[{"containerPort": 1, "hostPort": 2}])
    shared = container("c2", ports=[{"containerPort": 1, "hostPort": 7}])
    bad = [
        pod(never, restart="Never", volumes=volumes),
        pod(host, hostNetwork=True, volumes=volumes),
        pod(shared, container("c3", ports=shared["ports"]), volumes=volumes),
    ]
    await only_good_ones_are_run(node, good, _OF_CONTAINER, bad)


@witness("STATIC-26", kubernetes=(1, 32), until=(1, 32), needs=_NEEDS, max_pods=500)
async def test_fields_of_probes_and_hooks(node: Node) -> None:
    """Manifests that are wrong in a field of a probe or a hook are not run; others are."""
    await only_good_ones_are_run(node, pod(volumes=[{"name": "data"}]), _OF_PROBES, [])


@witness("STATIC-26", kubernetes=(1, 32), until=(1, 32), needs=_NEEDS, max_pods=500)
async def test_fields_of_volumes(node: Node) -> None:
    """Manifests that are wrong in a field of a volume or a mount are not run; others are."""
    volumes = [{"name": "data"}, *({"name": f"v{number}"} for number in range(1, 9))]
    good = pod(volumes=volumes, serviceAccountName="robot")
    two = [{"name": "data", "emptyDir": {}, "hostPath": {"path": "/a"}}]
    of_nobody = [{"name": "data", "projected": {"sources": [{"serviceAccountToken": _TOKEN}]}}]
    await only_good_ones_are_run(node, good, _OF_VOLUMES, [pod(volumes=two), pod(volumes=of_nobody)])


def _rules(count: int = 1, **exit_codes: object) -> list[Json]:
    """So many rules that restart a container which exits with 1, or with these codes."""
    return [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1], **exit_codes}}] * count


_CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
_OF_1_36: Fields = {
    f"{_C}.restartPolicyRules": (
        (
            *(_rules(20), _rules(values=list(range(255))), _rules(operator="NotIn")),
            [{**_rules()[0], "action": "RestartAllContainers"}],
        ),
        (
            *(_rules(21), _rules(values=list(range(256))), _rules(operator="Other")),
            *([{"action": "Restart"}], [{**_rules()[0], "action": "Other"}]),
        ),
    ),
    f"{_C}.restartPolicy": (("Always", "OnFailure", "Never"), ("Other",)),
    f"{_I}.restartPolicy": (("Never", "OnFailure"), ("Other",)),
    f"{_I}.resizePolicy": (([{"resourceName": "cpu", "restartPolicy": "NotRequired"}],), ()),
    "spec.serviceAccountName": ((), ("robot",)),
    "spec.imagePullSecrets": ((), ([{"name": "login"}],)),
    f"{_C}.env.0": (
        ({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},),
        [
            {"name": "A", "valueFrom": {kind: {**_REFERENCE, "key": "a"}}}
            for kind in ("configMapKeyRef", "secretKeyRef")
        ],
    ),
    f"{_C}.envFrom.0": ((), ({"configMapRef": _REFERENCE}, {"secretRef": _REFERENCE})),
    "spec.volumes.0": (
        (
            {"name": "a", "projected": {"sources": [{"downwardAPI": _EMPTY}]}},
            {"name": "a", "downwardAPI": _EMPTY},
        ),
        [
            {"name": "a", **source}
            for source in (
                {"configMap": _REFERENCE},
                {"secret": {"secretName": "login", "optional": True}},
                {"persistentVolumeClaim": {"claimName": "a"}},
                {"csi": {"driver": "a.b"}},
                {"glusterfs": {"endpoints": "a", "path": "b"}},
                {"azureFile": {"secretName": "a", "shareName": "b"}},
                {"ephemeral": {"volumeClaimTemplate": _CLAIM}},
                {"projected": {"sources": [{"configMap": _REFERENCE}]}},
                {"projected": {"sources": [{"secret": _REFERENCE}]}},
            )
        ],
    ),
}


@witness("STATIC-26", "STATIC-22", kubernetes=(1, 36), needs=_NEEDS, max_pods=500)
async def test_fields_of_newer_versions(node: Node) -> None:
    """Rules for restarts are taken within their limits, and references to objects of the API are not."""
    good = pod(
        container("c1", restartPolicy="Never"), init=(container("i1", "exit 0 0"),), volumes=[{"name": "a"}]
    )
    bad = pod(container("c1", restartPolicyRules=_rules()), volumes=good["spec"]["volumes"])
    await only_good_ones_are_run(node, good, _OF_1_36, [bad])


async def only_good_ones_are_run(
    node: Node, pattern: Json, fields: Fields, more: Sequence[Json], allowed: Sequence[Json] = ()
) -> None:
    """Write a manifest for each bad value and some that have all good ones, and see which have a mirror."""
    all_good = (*_good(pattern, fields), *map(deepcopy, allowed))
    good = {f"good-{i}": (manifest, "") for i, manifest in enumerate(all_good)}
    every = ((manifest, f"bad {i}") for i, manifest in enumerate(more))
    written = good | {f"bad-{i}": each for i, each in enumerate((*every, *_bad(pattern, fields)))}
    for name, (manifest, _) in written.items():
        if manifest.get("metadata", {}).get("name") == pattern["metadata"]["name"]:
            manifest["metadata"]["name"] = name
        node.manifests.write(f"{name}.json", json.dumps(manifest))
    await only_these_run(node, {name: text for name, (_, text) in written.items()}, len(good))


def _good(pattern: Json, fields: Fields) -> Iterator[Json]:
    """The first good values of all fields in one manifest, the second ones in the next."""
    for turn in range(max(len(good) for good, _ in fields.values())):
        made = deepcopy(pattern)
        for path, (good, _) in fields.items():
            if turn < len(good):
                _put(made, path, good[turn])
        yield made


def _bad(pattern: Json, fields: Fields) -> Iterator[tuple[Json, str]]:
    """Each bad value in a manifest of its own, with its path."""
    for path, (_, bad) in fields.items():
        for value in bad:
            made = deepcopy(pattern)
            _put(made, path, value)
            yield made, f"{path} = {value}"


def _put(place: Any, path: str, value: object) -> None:  # noqa: ANN401 - JSON of any shape
    """Put a value where a path leads, through objects and lists that may have to be made."""
    name, _, rest = path.partition(".")
    key: Any = int(name) if name.isdigit() else name
    if name == str(len(place)):
        place.append({})
    if not rest:
        place[key] = deepcopy(value)
        return
    if not name.isdigit():
        place.setdefault(key, [] if rest[0].isdigit() else {})
    _put(place[key], rest, value)
