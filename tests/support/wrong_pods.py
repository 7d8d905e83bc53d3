"""What a pod as a whole can say wrongly, and which field a refusal has to name: one row for each mistake."""

from sayings import CONTAINER, HOST_PROCESS, NOTHING, Json, Row, Saying, in_specs
from wrong_volumes import claim

BUSY: Json = {**CONTAINER, "resources": {"limits": {"cpu": "1"}}}
LONG = "a" * 300
OWNER: Json = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
SPREAD: Json = {"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "ScheduleAnyway"}
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
COST = "controller.kubernetes.io/pod-deletion-cost"


def _affinity(kind: str, when: str, value: object, field: str) -> Row:
    """A row of an affinity that is required or preferred."""
    name = f"{when}DuringSchedulingIgnoredDuringExecution"
    return "spec.affinity", {kind: {name: value}}, f".{kind}.{name}{field}"


def _required_node(term: Json, field: str) -> Row:
    return _affinity(
        "nodeAffinity", "required", {"nodeSelectorTerms": [term]}, f".nodeSelectorTerms[0].{field}"
    )


def _spread(constraint: Json, field: str) -> Row:
    return "spec.topologySpreadConstraints", [{**SPREAD, **constraint}], f"[0].{field}"


def _annotated(name: str, value: str) -> Row:
    return "metadata.annotations", {name: value}, f".{name}"


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
    ("metadata.ownerReferences", [{**OWNER, "apiVersion": "a/b/c"}], "[0].apiVersion"),
    ("metadata.ownerReferences", [{**OWNER, "kind": ""}], "[0].kind"),
    ("metadata.ownerReferences", [{**OWNER, "kind": "Event"}], "[0].kind"),
    ("metadata.ownerReferences", [{**OWNER, "name": ""}], "[0].name"),
    ("metadata.ownerReferences", [{**OWNER, "uid": ""}], "[0].uid"),
    ("metadata.ownerReferences", [OWNER, OWNER], "[1].controller"),
    ("metadata.finalizers", ["a b"], "[0]"),
    ("metadata.finalizers", ["mine"], "[0]"),
    ("metadata.finalizers", ["orphan", "foregroundDeletion"], ""),
    ("metadata.managedFields", [{}], "[0].operation"),
    ("metadata.managedFields", [{"operation": "Guess"}], "[0].operation"),
    ("metadata.managedFields", [{"operation": "Apply", "fieldsType": "V9"}], "[0].fieldsType"),
    ("metadata.managedFields", [{"operation": "Apply", "manager": LONG}], "[0].manager"),
    ("metadata.managedFields", [{"operation": "Apply", "subresource": LONG}], "[0].subresource"),
    _annotated(COST, "dear"),
    _annotated(COST, "007"),
    _annotated(COST, str(2**31)),
    _annotated(TOLERATIONS, "["),
    _annotated(TOLERATIONS, "{}"),
    ("metadata.annotations", {TOLERATIONS: '[{"operator": "Maybe"}]'}, f".{TOLERATIONS}[0].operator"),
    ("metadata.annotations", {TOLERATIONS: '[{"key": "a b"}]'}, f".{TOLERATIONS}[0].key"),
    _annotated(SECCOMP, "mine"),
    _annotated(SECCOMP, "localhost/../mine"),
    _annotated("container.seccomp.security.alpha.kubernetes.io/c1", "mine"),
    _annotated(f"{APP_ARMOR}/c1", "mine"),
    _annotated(f"{APP_ARMOR}/c9", "unconfined"),
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
    (
        "spec.securityContext",
        {"windowsOptions": {"runAsUserName": "a\\b\\c"}},
        ".windowsOptions.runAsUserName",
    ),
    ("spec.securityContext", {"windowsOptions": {"runAsUserName": "..."}}, ".windowsOptions.runAsUserName"),
    (
        "spec.securityContext",
        {"windowsOptions": {"gmsaCredentialSpecName": "A_"}},
        ".windowsOptions.gmsaCredentialSpecName",
    ),
    (
        "spec.securityContext",
        {"windowsOptions": {"gmsaCredentialSpec": ""}},
        ".windowsOptions.gmsaCredentialSpec",
    ),
    ("spec.securityContext", HOST_PROCESS, ">spec.hostNetwork"),
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
    ("spec.topologySpreadConstraints", [SPREAD] * 2, "[1]"),
    _spread({"maxSkew": 0}, "maxSkew"),
    _spread({"topologyKey": ""}, "topologyKey"),
    _spread({"whenUnsatisfiable": "Cry"}, "whenUnsatisfiable"),
    _spread({"minDomains": 0}, "minDomains"),
    _spread({"minDomains": 2}, "minDomains"),
    _spread({"nodeAffinityPolicy": "Maybe"}, "nodeAffinityPolicy"),
    _spread({"nodeTaintsPolicy": "Maybe"}, "nodeTaintsPolicy"),
    _spread({"matchLabelKeys": ["a"]}, "matchLabelKeys"),
    _spread({"matchLabelKeys": ["a b"], "labelSelector": {}}, "matchLabelKeys[0]"),
    _spread({"matchLabelKeys": ["a"], "labelSelector": {"matchLabels": {"a": "x"}}}, "matchLabelKeys[0]"),
    _spread({"labelSelector": {"matchLabels": {"a": "x y"}}}, "labelSelector.matchLabels.a"),
    _spread(
        {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}},
        "labelSelector.matchExpressions[0].operator",
    ),
    _spread(
        {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn"}]}},
        "labelSelector.matchExpressions[0].values",
    ),
    _spread(
        {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x y"]}]}},
        "labelSelector.matchExpressions[0].values[0]",
    ),
    _affinity("nodeAffinity", "required", {"nodeSelectorTerms": []}, ".nodeSelectorTerms"),
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
    *(
        _affinity("nodeAffinity", "preferred", [{"weight": weight, "preference": NOTHING}], "[0].weight")
        for weight in (0, 101)
    ),
    _affinity(
        "nodeAffinity",
        "preferred",
        [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "In"}]}}],
        "[0].preference.matchExpressions[0].values",
    ),
    _affinity("podAffinity", "required", [{"topologyKey": ""}], "[0].topologyKey"),
    _affinity("podAffinity", "required", [{"topologyKey": "a b"}], "[0].topologyKey"),
    _affinity(
        "podAffinity", "required", [{"topologyKey": "a", "namespaces": ["a", "A"]}], "[0].namespaces[1]"
    ),
    _affinity(
        "podAffinity", "required", [{"topologyKey": "a", "matchLabelKeys": ["a"]}], "[0].matchLabelKeys"
    ),
    _affinity(
        "podAntiAffinity",
        "required",
        [{"topologyKey": "a", "labelSelector": NOTHING, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]}],
        "[0].matchLabelKeys[0]",
    ),
    _affinity(
        "podAntiAffinity",
        "preferred",
        [{"weight": 0, "podAffinityTerm": {"topologyKey": "a"}}],
        "[0].weight",
    ),
    _affinity(
        "podAntiAffinity",
        "preferred",
        [
            {
                "weight": 9,
                "podAffinityTerm": {"topologyKey": "a", "namespaceSelector": {"matchLabels": {"-": ""}}},
            }
        ],
        "[0].podAffinityTerm.namespaceSelector.matchLabels.-",
    ),
]
OF_WHOLES: list[Saying] = [
    *(
        in_specs({"os": {"name": "windows"}, **said}, field)
        for said, field in (
            ({"securityContext": {"runAsUser": 1}}, "spec.securityContext.runAsUser"),
            (
                {"securityContext": {"sysctls": [{"name": "a.b", "value": "1"}]}},
                "spec.securityContext.sysctls",
            ),
            ({"hostPID": True}, "spec.hostPID"),
            ({"hostUsers": True}, "spec.hostUsers"),
            ({"shareProcessNamespace": False}, "spec.shareProcessNamespace"),
            (
                {"containers": [{**CONTAINER, "securityContext": {"privileged": False}}]},
                "spec.containers[0].securityContext.privileged",
            ),
            (
                {"containers": [{**CONTAINER, "lifecycle": {"stopSignal": "SIGUSR1"}}]},
                "spec.containers[0].lifecycle.stopSignal",
            ),
        )
    ),
    in_specs(
        {"os": {"name": "linux"}, "securityContext": {"windowsOptions": {}}},
        "spec.securityContext.windowsOptions",
    ),
    in_specs(
        {
            "securityContext": HOST_PROCESS,
            "containers": [{**CONTAINER, "securityContext": {"windowsOptions": {"hostProcess": False}}}],
        },
        "spec.containers[0].securityContext.windowsOptions.hostProcess",
    ),
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
    in_specs(
        {
            "volumes": [
                {"name": "v", **claim({})},
                {"name": "w", "persistentVolumeClaim": {"claimName": "web-v"}},
            ]
        },
        "spec.volumes[1].persistentVolumeClaim.claimName",
    ),
    in_specs({"volumes": [{"name": "v" * 60, **claim({})}]}, "spec.volumes[0].name", name="a" * 200),
    in_specs(
        {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
        f"metadata.annotations.{SECCOMP}",
        annotations={SECCOMP: "unconfined"},
    ),
    in_specs(
        {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "a"}}},
        f"metadata.annotations.{APP_ARMOR}/c1",
        annotations={f"{APP_ARMOR}/c1": "localhost/b"},
    ),
]
"""What several fields say that do not go together."""
