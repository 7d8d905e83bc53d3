"""What a pod as a whole can say wrongly, and which field a refusal has to name: one row for each mistake."""

from sayings import CONTAINER, Json, Row, Saying, in_specs

LONG = "a" * 300


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NEAR: Json = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]}
OF_NEAR = f".nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator"

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
    ("spec.serviceAccountName", "a/b", ""),
    ("spec.priorityClassName", "A", ""),
    ("spec.runtimeClassName", "A", ""),
    ("spec.hostNetwork", "maybe", ""),
    ("spec.hostAliases", [{"ip": "1.2.3", "hostnames": ["a"]}], "[0].ip"),
    ("spec.hostAliases", [{"ip": "::1", "hostnames": ["a", "A"]}], "[0].hostnames[1]"),
    ("spec.readinessGates", [{"conditionType": ""}], "[0].conditionType"),
    ("spec.readinessGates", [{"conditionType": "a b"}], "[0].conditionType"),
    ("spec.overhead", {"cpu": "-1"}, ".cpu"),
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
    ("spec.tolerations", [{"operator": "Maybe"}], "[0].operator"),
    ("spec.tolerations", [{"operator": "Exists", "effect": "Never"}], "[0].effect"),
    ("spec.affinity", {"nodeAffinity": {REQUIRED: NEAR}}, OF_NEAR),
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
        {"volumes": [{"name": "v"}, {"name": "v"}]},
        "spec.volumes[1].name",
    ),
]
"""What several fields say that do not go together."""
