"""Whatever a pod can say wrongly is refused, with the field's name; the rest of the node goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubelet_world import MANIFESTS, in_world
from sayings import CONTAINER, HOST_PROCESS, POD, Saying, in_apps, in_inits, in_pods, in_specs, in_volumes
from wrong_containers import OF_APPS, OF_CONTAINERS, OF_INITS
from wrong_pods import APP_ARMOR, COST, OF_METADATA, OF_PODS, OF_SCHEDULING, OF_WHOLES, SECCOMP, SPREAD
from wrong_volumes import OF_VOLUMES, claim

from kubelet_reference.config import ManifestError, read_pod
from kubelet_reference.versions import Behaviour

if TYPE_CHECKING:
    from kubelet_world import World

Json = dict[str, Any]

KINDS: dict[str, list[Saying]] = {
    "metadata": [in_pods(*row) for row in OF_METADATA],
    "pods": [in_pods(*row) for row in OF_PODS],
    "scheduling": [in_pods(*row) for row in OF_SCHEDULING],
    "apps": [in_apps(*row) for row in (*OF_CONTAINERS, *OF_APPS)],
    "inits": [in_inits(*row) for row in (*OF_CONTAINERS, *OF_INITS)],
    "volumes": [in_volumes(*row) for row in OF_VOLUMES],
    "wholes": OF_WHOLES,
}
"""Everything that is wrong, by what it is about."""
WRONG = [one for kind in KINDS.values() for one in kind]
NAMED = [one for one in WRONG if one.place != ("metadata", "name") or one.value]
"""What is wrong with pods that have a name: about a pod without one no event can be recorded."""

NODE: Json = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "a", "operator": "NotIn", "values": ["x", ""]},
                    {"key": "a.b/c", "operator": "Gt", "values": ["1"]},
                ],
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
            },
            {},
        ]
    },
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {
            "weight": 100,
            "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["any thing"]}]},
        }
    ],
}
RIGHT = [
    in_pods("metadata.generateName", "web-"),
    in_pods("metadata.finalizers", ["example.com/mine", "orphan"]),
    in_pods("metadata.annotations", {"Upper.Case/Name": "", COST: "-10", SECCOMP: "localhost/a/b.json"}),
    in_pods("metadata.annotations", {f"{APP_ARMOR}/i1": "", f"{APP_ARMOR}/c1": "localhost/mine"}),
    in_pods("spec.schedulerName", ""),
    in_pods("spec.imagePullSecrets", [{"name": "A_"}]),
    in_pods("spec.dnsConfig", {"searches": ["example.com.", "svc"], "options": [{"name": "ndots"}]}),
    in_pods("spec.hostAliases", [{"ip": "::1"}]),
    in_pods("spec.tolerations", [{"operator": "Exists"}, {"key": "a", "value": ""}]),
    in_pods("spec.affinity", {"nodeAffinity": NODE}),
    in_pods("spec.topologySpreadConstraints", [SPREAD, {**SPREAD, "topologyKey": "other"}]),
    in_pods("spec.topologySpreadConstraints", [{**SPREAD, "matchLabelKeys": ["a"], "labelSelector": {}}]),
    in_pods("spec.overhead", {"cpu": "100m", "example.com/a": "1"}),
    in_pods("spec.resources", {"limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}}),
    in_pods("spec.securityContext", {"seccompProfile": {"type": "Localhost", "localhostProfile": "a/..b"}}),
    in_pods("spec.securityContext", {"windowsOptions": {"runAsUserName": "NT AUTHORITY\\SYSTEM"}}),
    in_pods("spec.securityContext", {"windowsOptions": {"hostProcess": False}}),
    in_specs({"securityContext": HOST_PROCESS, "hostNetwork": True}),
    in_specs({"os": {"name": "windows"}, "hostPID": False, "securityContext": {"runAsNonRoot": True}}),
    in_specs({"os": {"name": "linux"}, "securityContext": {"runAsUser": 1}}),
    in_specs(
        {"containers": [{**CONTAINER, "lifecycle": {"stopSignal": "SIGUSR1"}}], "os": {"name": "linux"}}
    ),
    in_specs(
        {"containers": [{**CONTAINER, "securityContext": {"procMount": "Unmasked"}}], "hostUsers": False}
    ),
    in_specs(
        {
            "serviceAccountName": "me",
            "volumes": [
                {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            ],
            "containers": [CONTAINER],
        }
    ),
    in_specs(
        {
            "containers": [{**CONTAINER, "ports": [{"containerPort": 80, "hostPort": 80}]}],
            "initContainers": [
                {**CONTAINER, "name": name, "ports": [{"containerPort": 80, "hostPort": 80}]} for name in "ab"
            ],
        }
    ),
    in_specs(
        {
            "resources": {"requests": {"cpu": "1"}},
            "containers": [{**CONTAINER, "resources": {"requests": {"cpu": "1"}}}],
            "initContainers": [{**CONTAINER, "name": "i1", "resources": {"requests": {"cpu": "1"}}}],
        }
    ),
    in_specs(
        {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
        annotations={SECCOMP: "runtime/default"},
    ),
    *(
        say(*row)
        for say in (in_apps, in_inits)
        for row in (
            ("env", [{"name": "9 lives!"}, {"name": "A", "value": "x"}]),
            ("env", [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['A/B']"}}}]),
            ("env", [{"name": "A", "valueFrom": {"resourceFieldRef": _}}])
            if False
            else ("envFrom", [{"prefix": "A_", "secretRef": {"name": "s"}}]),
        )
    ),
]
