"""What a container can say wrongly, and which field a refusal has to name: one row for each mistake."""

from sayings import Json, Row

EXEC: Json = {"exec": {"command": ["x"]}}
NAME_FIELD: Json = {"fieldRef": {"fieldPath": "metadata.name"}}


def _from(source: Json, field: str = "") -> Row:
    """A variable from this source."""
    return "env", [{"name": "A", "valueFrom": source}], f"[0].valueFrom{field and '.'}{field}"


def _mount(mount: Json, field: str) -> Row:
    return "volumeMounts", [{"name": "v", "mountPath": "/v", **mount}], f"[0].{field}"


def _limits(limits: Json, field: str) -> Row:
    return "resources", {"limits": limits}, f".limits.{field}"


OF_CONTAINERS: list[Row] = [
    ("name", "C1", ""),
    ("name", None, ""),
    ("image", "", ""),
    ("image", None, ""),
    ("image", " img:1", ""),
    ("image", "img:1\n", ""),
    ("imagePullPolicy", "Maybe", ""),
    ("terminationMessagePolicy", "Never", ""),
    ("command", "run", ""),
    ("args", [1], "[0]"),
    ("tty", "yes", ""),
    ("restartPolicy", "Sometimes", ""),
    ("env", [{"name": "A=B"}], "[0].name"),
    ("env", [{"name": "Ä"}], "[0].name"),
    ("env", [{"value": "x"}], "[0].name"),
    ("env", [{"name": "A", "value": 1}], "[0].value"),
    ("env", [{"name": "A", "value": "x", "valueFrom": NAME_FIELD}], "[0].valueFrom"),
    _from({}),
    _from({**NAME_FIELD, "configMapKeyRef": {"name": "m", "key": "k"}}),
    _from({"fieldRef": {"fieldPath": ""}}, "fieldRef.fieldPath"),
    _from({"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}}, "fieldRef.apiVersion"),
    _from({"resourceFieldRef": {"resource": "limits.gpu"}}, "resourceFieldRef.resource"),
    _from({"secretKeyRef": {"name": "s", "key": "a b"}}, "secretKeyRef.key"),
    _from({"secretKeyRef": {"name": "s", "key": "..a"}}, "secretKeyRef.key"),
    _from({"secretKeyRef": {"name": "S", "key": "a"}}, "secretKeyRef.name"),
    _from({"configMapKeyRef": {"key": "k"}}, "configMapKeyRef.name"),
    _from({"configMapKeyRef": {"name": "a_b", "key": "k"}}, "configMapKeyRef.name"),
    ("envFrom", [{}], "[0]"),
    ("envFrom", [{"configMapRef": {"name": "m"}, "secretRef": {"name": "s"}}], "[0]"),
    _from({"configMapKeyRef": {"name": "m", "key": "."}}, "configMapKeyRef.key"),
    ("envFrom", [{"configMapRef": {"name": "M"}}], "[0].configMapRef.name"),
    ("envFrom", [{"configMapRef": {}}], "[0].configMapRef.name"),
    ("envFrom", [{"secretRef": {"name": "S"}}], "[0].secretRef.name"),
    ("envFrom", [{"prefix": "A=", "secretRef": {"name": "s"}}], "[0].prefix"),
    ("ports", [{"containerPort": 0}], "[0].containerPort"),
    ("ports", [{"containerPort": 80, "hostPort": 70_000}], "[0].hostPort"),
    ("ports", [{"containerPort": 80, "protocol": "ICMP"}], "[0].protocol"),
    ("ports", [{"containerPort": 80, "name": "UPPER"}], "[0].name"),
    ("ports", [{"containerPort": 80, "name": "a--b"}], "[0].name"),
    ("ports", [{"containerPort": 80, "name": "a-very-long-name-of-a-port"}], "[0].name"),
    ("ports", [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}], "[1].name"),
    ("ports", [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}], "[1].hostPort"),
    _limits({"cpu": "-1"}, "cpu"),
    _limits({"memory": "lots"}, "memory"),
    _limits({"gpu": "1"}, "gpu"),
    ("resources", {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}, ".requests.cpu"),
    ("resources", {"requests": {"example.com/gpu": "1"}}, ".limits.example.com/gpu"),
    (
        "resources",
        {"limits": {"example.com/gpu": "2"}, "requests": {"example.com/gpu": "1"}},
        ".requests.example.com/gpu",
    ),
    ("resources", {"claims": [{"name": "gpu"}]}, ".claims"),
    ("resizePolicy", [{"resourceName": "disk", "restartPolicy": "NotRequired"}], "[0].resourceName"),
    ("resizePolicy", [{"resourceName": "cpu", "restartPolicy": "Perhaps"}], "[0].restartPolicy"),
    ("resizePolicy", [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2, "[1].resourceName"),
    ("securityContext", {"runAsUser": -1}, ".runAsUser"),
    ("securityContext", {"runAsGroup": -1}, ".runAsGroup"),
    ("securityContext", {"procMount": "Mine"}, ".procMount"),
    ("securityContext", {"procMount": ""}, ".procMount"),
    ("securityContext", {"seccompProfile": {"type": "Mine"}}, ".seccompProfile.type"),
    ("securityContext", {"seccompProfile": {"type": ""}}, ".seccompProfile.type"),
    ("securityContext", {"appArmorProfile": {"type": "Mine"}}, ".appArmorProfile.type"),
    ("securityContext", {"appArmorProfile": {"type": "Localhost"}}, ".appArmorProfile.localhostProfile"),
    _mount({"name": "w"}, "name"),
    _mount({"mountPath": ""}, "mountPath"),
    _mount({"mountPropagation": "Bidirectional"}, "mountPropagation"),
    ("securityContext", {"procMount": "Unmasked"}, ".procMount"),
    _mount({"subPath": "../x"}, "subPath"),
    _mount({"subPath": "/x"}, "subPath"),
    _mount({"subPathExpr": "/x"}, "subPathExpr"),
    _mount({"subPath": "a", "subPathExpr": "b"}, "subPathExpr"),
    _mount({"mountPropagation": "Up"}, "mountPropagation"),
    _mount({"recursiveReadOnly": "Perhaps"}, "recursiveReadOnly"),
    ("volumeMounts", [{"name": "v", "mountPath": "/v"}] * 2, "[1].mountPath"),
    ("volumeDevices", [{"name": "", "devicePath": "/d"}], "[0].name"),
    ("volumeDevices", [{"name": "claimed"}], "[0].devicePath"),
    ("volumeDevices", [{"name": "claimed", "devicePath": ""}], "[0].devicePath"),
    ("volumeDevices", [{"name": "claimed", "devicePath": "/d/../e"}], "[0].devicePath"),
]
"""What stands where in a container, of any kind."""
OF_APPS: list[Row] = [
    ("restartPolicy", "Always", ""),
    ("livenessProbe", {}, ""),
    ("livenessProbe", {**EXEC, "tcpSocket": {"port": 80}}, ""),
    ("livenessProbe", {"exec": {}}, ".exec.command"),
    *(
        ("startupProbe", {**EXEC, field: number}, f".{field}")
        for number in (-1, 2**31)
        for field in (
            "failureThreshold",
            "initialDelaySeconds",
            "periodSeconds",
            "successThreshold",
            "timeoutSeconds",
        )
    ),
    ("livenessProbe", {**EXEC, "successThreshold": 2}, ".successThreshold"),
    ("livenessProbe", {**EXEC, "terminationGracePeriodSeconds": 0}, ".terminationGracePeriodSeconds"),
    ("readinessProbe", {**EXEC, "terminationGracePeriodSeconds": 5}, ".terminationGracePeriodSeconds"),
    ("readinessProbe", {"httpGet": {"port": 0}}, ".httpGet.port"),
    ("readinessProbe", {"httpGet": {"port": 80, "scheme": "FTP"}}, ".httpGet.scheme"),
    ("readinessProbe", {"httpGet": {"path": "/"}}, ".httpGet.port"),
    *(
        (
            "readinessProbe",
            {"httpGet": {"port": 80, "httpHeaders": [{"name": name, "value": "x"}]}},
            ".httpGet.httpHeaders[0].name",
        )
        for name in ("a b", "a_b", "")
    ),
    ("startupProbe", {"tcpSocket": {"port": "NO"}}, ".tcpSocket.port"),
    ("startupProbe", {"grpc": {"port": 70_000}}, ".grpc.port"),
    ("lifecycle", {"preStop": {}}, ".preStop"),
    ("lifecycle", {"preStop": {"exec": {"command": []}}}, ".preStop.exec.command"),
    ("lifecycle", {"preStop": {"sleep": {"seconds": -1}}}, ".preStop.sleep.seconds"),
    ("lifecycle", {"preStop": {"sleep": {"seconds": 31}}}, ".preStop.sleep.seconds"),
    ("lifecycle", {"postStart": {**EXEC, "sleep": {"seconds": 1}}}, ".postStart"),
    ("lifecycle", {"stopSignal": "TERM"}, ".stopSignal"),
    ("lifecycle", {"stopSignal": "SIGTERM"}, ".stopSignal"),
]
"""What stands where in an app container."""
OF_INITS: list[Row] = [
    ("restartPolicy", "Never", ""),
    ("livenessProbe", EXEC, ""),
    ("lifecycle", {"preStop": EXEC}, ""),
    ("resizePolicy", [{"resourceName": "cpu", "restartPolicy": "NotRequired"}], ""),
]
"""What stands where in an init container."""
