"""What a pod as a whole can say wrongly, and which field a refusal has to name: one row for each mistake."""

from sayings import CONTAINER, Json, Row, Saying, in_specs

BUSY: Json = {**CONTAINER, "resources": {"limits": {"cpu": "1"}}}
LONG = "a" * 300


def _required_node(term: Json, field: str) -> Row:
    return _required([term], f"[0].{field}")


def _required(terms: list[Json], field: str) -> Row:
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"nodeAffinity": {name: {"nodeSelectorTerms": terms}}}
    return "spec.affinity", affinity, f".nodeAffinity.{name}.nodeSelectorTerms{field}"


OF_METADATA: list[Row] = [
    ("metadata.name", "Web", ""),
    ("metadata.name", LONG, ""),
    ("metadata.name", None, ""),
    ("metadata.generateName", "-web", ""),
    ("metadata.generation", -1, ""),
    ("metadata.namespace", "a.b", ""),
    ("metadata.labels", {"-a": "x"}, ".-a"),
    ("metadata.labels", {"a": "no spaces please"}, ".a"),
    ("metadata.labels", {"a/b/c": ""}, ".a/b/c"),
    ("metadata.annotations", {"": "x"}, "."),
    ("metadata.annotations", {"a": "x" * (300 << 10)}, ""),
    ("metadata.annotations", {"a": "ä" * (200 << 10)}, ""),
]
OF_PODS: list[Row] = [
    ("spec.containers", [], ""),
    ("spec.containers", "c1", ""),
    ("spec.containers", [CONTAINER, CONTAINER], "[1].name"),
    ("spec.ephemeralContainers", [CONTAINER], ""),
    ("spec.resourceClaims", [{"name": "gpu", "resourceClaimName": "g"}], ""),
    ("spec.colour", "red", ""),
    ("spec.restartPolicy", "Sometimes", ""),
    ("spec.dnsPolicy", "Mine", ""),
    ("spec.dnsPolicy", "None", ">spec.dnsConfig.nameservers"),
    ("spec.dnsConfig", {"nameservers": ["10.0.0.1"] * 4}, ".nameservers"),
    ("spec.dnsConfig", {"nameservers": ["one"]}, ".nameservers[0]"),
    ("spec.dnsConfig", {"searches": ["a"] * 33}, ".searches"),
    ("spec.dnsConfig", {"searches": ["a" * 250] * 10}, ".searches"),
    ("spec.dnsConfig", {"searches": ["a", "b c"]}, ".searches[1]"),
    ("spec.dnsConfig", {"options": [{"value": "2"}]}, ".options[0].name"),
    ("spec.preemptionPolicy", "Always", ""),
    ("spec.preemptionPolicy", "", ""),
    ("spec.activeDeadlineSeconds", 0, ""),
    ("spec.activeDeadlineSeconds", 2**31, ""),
    ("spec.priority", 2**31, ""),
    ("spec.hostname", "no.dots", ""),
    ("spec.hostnameOverride", "a" * 65, ""),
    ("spec.subdomain", "UPPER", ""),
    ("spec.nodeName", "node_1", ""),
    ("spec.serviceAccountName", "a/b", ""),
    ("spec.priorityClassName", "A", ""),
    ("spec.runtimeClassName", "A", ""),
    ("spec.hostNetwork", "maybe", ""),
    ("spec.hostAliases", [{"ip": "1.2.3", "hostnames": ["a"]}], "[0].ip"),
    ("spec.hostAliases", [{"ip": "::1", "hostnames": ["a", "A"]}], "[0].hostnames[1]"),
    ("spec.readinessGates", [{"conditionType": ""}], "[0].conditionType"),
    ("spec.readinessGates", [{"conditionType": "a b"}], "[0].conditionType"),
    ("spec.overhead", {"cpu": "-1"}, ".cpu"),
    ("spec.overhead", {"gpu": "1"}, ".gpu"),
    ("spec.overhead", {"hugepages-2Mi": "2Mi"}, ""),
    ("spec.resources", {"limits": {"ephemeral-storage": "1"}}, ".limits.ephemeral-storage"),
    ("spec.resources", {"claims": [{"name": "a"}]}, ".claims"),
    ("spec.resources", {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}, ".requests.cpu"),
    ("spec.securityContext", {"runAsUser": -1}, ".runAsUser"),
    ("spec.securityContext", {"runAsGroup": 2**31}, ".runAsGroup"),
    ("spec.securityContext", {"fsGroup": -5}, ".fsGroup"),
    ("spec.securityContext", {"supplementalGroups": [0, -1]}, ".supplementalGroups[1]"),
    ("spec.securityContext", {"supplementalGroupsPolicy": "All"}, ".supplementalGroupsPolicy"),
    ("spec.securityContext", {"fsGroupChangePolicy": "Never"}, ".fsGroupChangePolicy"),
    ("spec.securityContext", {"seLinuxChangePolicy": "Never"}, ".seLinuxChangePolicy"),
    ("spec.securityContext", {"sysctls": [{"name": "A!", "value": "1"}]}, ".sysctls[0].name"),
    ("spec.securityContext", {"sysctls": [{"name": "a.b", "value": "1"}] * 2}, ".sysctls[1].name"),
    ("spec.securityContext", {"seccompProfile": {"type": "Localhost"}}, ".seccompProfile.localhostProfile"),
    (
        "spec.securityContext",
        {"seccompProfile": {"type": "Unconfined", "localhostProfile": "p"}},
        ".seccompProfile.localhostProfile",
    ),
    *(
        (
            "spec.securityContext",
            {"seccompProfile": {"type": "Localhost", "localhostProfile": path}},
            ".seccompProfile.localhostProfile",
        )
        for path in ("/p", "a/../p")
    ),
    (
        "spec.securityContext",
        {"appArmorProfile": {"type": "Localhost", "localhostProfile": " p"}},
        ".appArmorProfile.localhostProfile",
    ),
    ("spec.os", {"name": "beos"}, ".name"),
]
OF_SCHEDULING: list[Row] = [
    ("spec.schedulingGates", [{"name": "a"}, {"name": "a"}], ""),
    ("spec.nodeSelector", {"a b": "x"}, ".a b"),
    ("spec.nodeSelector", {"a": "x y"}, ".a"),
    ("spec.tolerations", [{"operator": "Maybe"}], "[0].operator"),
    ("spec.tolerations", [{"operator": "Equal", "value": "x"}], "[0].operator"),
    ("spec.tolerations", [{"key": "k", "operator": "Exists", "value": "x"}], "[0].value"),
    ("spec.tolerations", [{"key": "k", "value": "x y"}], "[0].value"),
    ("spec.tolerations", [{"key": "a b", "operator": "Exists"}], "[0].key"),
    ("spec.tolerations", [{"operator": "Exists", "tolerationSeconds": 3}], "[0].effect"),
    ("spec.tolerations", [{"operator": "Exists", "effect": "Never"}], "[0].effect"),
    _required([], ""),
    _required_node({"matchExpressions": [{"key": "a", "operator": "Near"}]}, "matchExpressions[0].operator"),
    _required_node({"matchExpressions": [{"key": "a b", "operator": "Exists"}]}, "matchExpressions[0].key"),
    _required_node({"matchExpressions": [{"key": "a", "operator": "In"}]}, "matchExpressions[0].values"),
    _required_node(
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
        "matchExpressions[0].values",
    ),
    _required_node(
        {"matchExpressions": [{"key": "a", "operator": "Lt", "values": ["1", "2"]}]},
        "matchExpressions[0].values",
    ),
    _required_node(
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x y"]}]},
        "matchExpressions[0].values[0]",
    ),
    _required_node({"matchFields": [{"key": "a", "operator": "In", "values": ["x"]}]}, "matchFields[0].key"),
    _required_node({"matchFields": [{"key": "metadata.name", "operator": "In"}]}, "matchFields[0].values"),
    _required_node(
        {"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}, "matchFields[0].operator"
    ),
    _required_node(
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["A_"]}]},
        "matchFields[0].values[0]",
    ),
]
OF_WHOLES: list[Saying] = [
    in_specs({"hostPID": True, "shareProcessNamespace": True}, "spec.shareProcessNamespace"),
    in_specs({"hostUsers": False, "hostNetwork": True}, "spec.hostNetwork"),
    in_specs(
        {"hostIPC": True, "securityContext": {"sysctls": [{"name": "kernel/shm_a", "value": "1"}]}},
        "spec.securityContext.sysctls[0].name",
    ),
    in_specs({"hostnameOverride": "web", "hostNetwork": True}, "spec.hostnameOverride"),
    in_specs(
        {"hostNetwork": True, "securityContext": {"sysctls": [{"name": "net.a", "value": "1"}]}},
        "spec.securityContext.sysctls[0].name",
    ),
    in_specs(
        {
            "hostNetwork": True,
            "containers": [{**CONTAINER, "ports": [{"containerPort": 80, "hostPort": 81}]}],
        },
        "spec.containers[0].ports[0].hostPort",
    ),
    in_specs(
        {
            "restartPolicy": "Never",
            "containers": [
                {
                    **CONTAINER,
                    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
                }
            ],
        },
        "spec.containers[0].resizePolicy[0].restartPolicy",
    ),
    in_specs(
        {"resources": {"requests": {"cpu": "1"}}, "containers": [BUSY, {**BUSY, "name": "c2"}]},
        "spec.resources.requests.cpu",
    ),
    in_specs(
        {"resources": {"limits": {"cpu": "500m"}}, "containers": [BUSY]},
        "spec.containers[0].resources.limits.cpu",
    ),
    in_specs(
        {
            "containers": [
                {
                    **CONTAINER,
                    "volumeMounts": [{"name": "claimed", "mountPath": "/d"}],
                    "volumeDevices": [{"name": "claimed", "devicePath": "/d"}],
                }
            ]
        },
        "spec.containers[0].volumeDevices[0].devicePath",
    ),
    in_specs(
        {"volumes": [{"name": "v"}, {"name": "v"}]},
        "spec.volumes[1].name",
    ),
]
"""What several fields say that do not go together."""
