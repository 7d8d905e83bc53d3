"""The fake API server's rules for pods: what it fills in, what it refuses, what may change."""

from typing import Any

import pytest
from api_world import ApiWorld, pod, refused

from kubelet_fakes.api.quantity import amount


def test_new_pod_gets_what_a_kubelet_relies_on() -> None:
    """The smallest pod is stored as a real server stored it (recorded with 1.26), and it is Pending."""
    made = ApiWorld().create("pods", pod())

    assert made["spec"] == {
        "containers": [
            {
                "name": "app",
                "image": "img:1",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "nodeName": "node-1",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("img", "Always"),
        ("img:latest", "Always"),
        ("host:5000/img", "Always"),
        ("host:5000/img:1", "IfNotPresent"),
        ("img@sha256:00", "IfNotPresent"),
        ("img:latest@sha256:00", "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    """No tag and latest are pulled always; another tag or a digest only if absent."""
    made = ApiWorld().create("pods", pod(container={"image": image}))

    assert made["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_negative_grace_counts_as_one_second() -> None:
    """It is an old mistake, which is neither refused nor kept."""
    made = ApiWorld().create("pods", pod(terminationGracePeriodSeconds=-1))
    assert made["spec"]["terminationGracePeriodSeconds"] == 1


def test_details_get_defaults_too() -> None:
    """Probes, hooks, ports, requests, references and volumes are filled in; what is given stays."""
    container = {
        "livenessProbe": {"exec": {"command": ["x"]}, "periodSeconds": 3, "timeoutSeconds": 0},
        "readinessProbe": {"httpGet": {"port": 80}},
        "startupProbe": {"grpc": {"port": 80}},
        "lifecycle": {"preStop": {"httpGet": {"port": 80, "path": "/bye"}}},
        "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
        "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }
    token = {"sources": [{"serviceAccountToken": {"path": "t"}}]}
    volumes = [{"name": "c", "configMap": {"name": "c"}}, {"name": "e"}, {"name": "t", "projected": token}]
    made = ApiWorld().create("pods", pod(container=container, volumes=volumes, hostNetwork=True))["spec"]
    app = made["containers"][0]

    assert app["livenessProbe"] == {
        "exec": {"command": ["x"]},
        "timeoutSeconds": 1,
        "periodSeconds": 3,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert app["readinessProbe"]["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}
    assert app["startupProbe"]["grpc"] == {"port": 80, "service": ""}
    assert app["lifecycle"]["preStop"]["httpGet"] == {"port": 80, "path": "/bye", "scheme": "HTTP"}
    assert app["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]
    assert app["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert app["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert made["volumes"][0]["configMap"] == {"name": "c", "defaultMode": 420}
    assert made["volumes"][1] == {"name": "e", "emptyDir": {}}
    assert made["volumes"][2]["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "0"}}, "BestEffort"),
        ({"requests": {"example.com/gpu": "1"}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        (
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}},
            "Guaranteed",
        ),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "999m"}}, "Burstable"),
    ],
)
def test_quality_of_service(resources: dict[str, Any], qos: str) -> None:
    """Limits of cpu and memory that equal the requests guarantee; any amount makes burstable."""
    made = ApiWorld().create("pods", pod(container={"resources": resources}))

    assert made["status"]["qosClass"] == qos


def test_quantities_are_exact() -> None:
    """Decimal, binary and scientific forms mean what they mean; anything else is an error."""
    forms = {"0.1": "100m", "1Ki": "1024", "1e3": "1k", "1E": "1e18", ".5": "500m", "1500n": "1.5u"}

    assert [amount(one) == amount(other) for one, other in forms.items()] == [True] * len(forms)
    for text in ("", "1 Gi", "1kb", "x"):
        with pytest.raises(ValueError, match="is no quantity"):
            amount(text)


PROBE = {"exec": {"command": ["x"]}}

#: A pod that is refused, and the field that the answer names.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "name": (pod("Web"), "metadata.name: Invalid value"),
    "no-name": (pod(""), "metadata.name: Required value"),
    "no-containers": (
        {"metadata": {"name": "a"}, "spec": {"containers": []}},
        "spec.containers: Required value",
    ),
    "no-spec": ({"metadata": {"name": "a"}}, "spec.containers: Required value"),
    "no-container-name": (
        {"metadata": {"name": "a"}, "spec": {"containers": [{"image": "i"}]}},
        "spec.containers[0].name: Required value",
    ),
    "no-image": (pod(container={"image": ""}), "spec.containers[0].image: Required value"),
    "twice": (
        pod(initContainers=[{"name": "app", "image": "i"}]),
        'spec.initContainers[0].name: Duplicate value: "app"',
    ),
    "policy": (pod(restartPolicy="Perhaps"), 'spec.restartPolicy: Unsupported value: "Perhaps"'),
    "pull-policy": (
        pod(container={"imagePullPolicy": "x"}),
        "spec.containers[0].imagePullPolicy: Unsupported",
    ),
    "deadline": (pod(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds: Invalid value"),
    "ephemeral": (
        pod(ephemeralContainers=[{"name": "d", "image": "i"}]),
        "spec.ephemeralContainers: Forbidden",
    ),
    "mount": (
        pod(container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
        'spec.containers[0].volumeMounts[0].name: Not found: "v"',
    ),
    "port": (
        pod(container={"ports": [{"containerPort": 0}]}),
        "spec.containers[0].ports[0].containerPort: Invalid",
    ),
    "probe": (pod(container={"livenessProbe": {}}), "spec.containers[0].livenessProbe: Required value"),
    "two-handlers": (
        pod(container={"livenessProbe": PROBE | {"tcpSocket": {"port": 1}}}),
        "spec.containers[0].livenessProbe.tcpSocket: Forbidden",
    ),
    "liveness-successes": (
        pod(container={"livenessProbe": PROBE | {"successThreshold": 2}}),
        "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
    ),
    "readiness-grace": (
        pod(container={"readinessProbe": PROBE | {"terminationGracePeriodSeconds": 2}}),
        "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid",
    ),
    "init-probe": (
        pod(initContainers=[{"name": "i", "image": "i", "readinessProbe": PROBE}]),
        "spec.initContainers[0].readinessProbe: Forbidden",
    ),
    "init-policy": (
        pod(initContainers=[{"name": "i", "image": "i", "restartPolicy": "Sometimes"}]),
        "spec.initContainers[0].restartPolicy: Unsupported",
    ),
    "quantity": (
        pod(container={"resources": {"limits": {"cpu": "many"}}}),
        "spec.containers[0].resources.limits[cpu]: Invalid",
    ),
    "over-limit": (
        pod(container={"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1001m"}}}),
        "spec.containers[0].resources.requests: Invalid",
    ),
}


@pytest.mark.parametrize(("wrong", "text"), REFUSED.values(), ids=REFUSED)
def test_pod_is_refused(wrong: dict[str, Any], text: str) -> None:
    """A pod that breaks a rule is 422 and the answer names the field; nothing is stored."""
    core = ApiWorld()
    error = refused(core.create, "pods", wrong)

    assert (error.code, error.reason) == (422, "Invalid")
    assert text in str(error)
    assert core.list_objects("pods") == ((), "0")


def test_all_that_is_wrong_is_named() -> None:
    """One answer names every field."""
    error = refused(ApiWorld().create, "pods", pod(restartPolicy="x", dnsPolicy="y"))

    assert [each["field"] for each in error.details["causes"]] == ["spec.restartPolicy", "spec.dnsPolicy"]


def test_sidecar_may_have_probes() -> None:
    """An init container that goes on is like the others."""
    sidecar = {"name": "s", "image": "i", "restartPolicy": "Always", "startupProbe": PROBE}
    made = ApiWorld().create("pods", pod(initContainers=[sidecar]))

    assert made["spec"]["initContainers"][0]["startupProbe"]["periodSeconds"] == 10


TOLERATION = {"key": "k", "effect": "NoExecute", "tolerationSeconds": 5}

#: What may change in a running pod.
CHANGES: dict[str, dict[str, Any]] = {
    "image": {"spec": {"containers": [{"name": "app", "image": "img:2"}]}},
    "deadline": {"spec": {"activeDeadlineSeconds": 60}},
    "sooner": {"spec": {"activeDeadlineSeconds": 99}},
    "toleration": {"spec": {"tolerations": [TOLERATION, {"operator": "Exists"}]}},
    "toleration-seconds": {"spec": {"tolerations": [TOLERATION | {"tolerationSeconds": 9}]}},
    "labels": {"metadata": {"labels": {"a": "b"}}},
}


@pytest.mark.parametrize("patch", CHANGES.values(), ids=CHANGES)
def test_pod_may_change(patch: dict[str, Any]) -> None:
    """Image, deadline, tolerations and metadata may change."""
    core = ApiWorld()
    old = core.create("pods", pod(activeDeadlineSeconds=100, tolerations=[TOLERATION]))
    new = core.patch("pods", "web", patch)

    assert new != old
    assert (new["status"], new["metadata"]["uid"]) == (old["status"], old["metadata"]["uid"])


#: What may not, and the field that the answer names.
FORBIDDEN: dict[str, tuple[dict[str, Any], str]] = {
    "policy": ({"spec": {"restartPolicy": "Never"}}, "this one changes spec.restartPolicy"),
    "grace": (
        {"spec": {"terminationGracePeriodSeconds": 1}},
        "this one changes spec.terminationGracePeriodSeconds",
    ),
    "command": (
        {"spec": {"containers": [{"name": "app", "command": ["x"]}]}},
        "this one changes spec.containers[0].command",
    ),
    "node": ({"spec": {"nodeName": "node-2"}}, "this one changes spec.nodeName"),
    "container": (
        {"spec": {"containers": [{"name": "more", "image": "i"}]}},
        "spec.containers: Forbidden: pod updates may not add or remove containers",
    ),
    "no-image": (
        {"spec": {"containers": [{"name": "app", "image": ""}]}},
        "spec.containers[0].image: Required",
    ),
    "later": ({"spec": {"activeDeadlineSeconds": 101}}, "spec.activeDeadlineSeconds: Invalid value: 101"),
    "never": ({"spec": {"activeDeadlineSeconds": None}}, "spec.activeDeadlineSeconds: Invalid value"),
    "toleration": ({"spec": {"tolerations": []}}, "spec.tolerations: Forbidden: existing toleration"),
    "ephemeral": (
        {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}},
        "this one changes spec.ephemeralContainers",
    ),
    "uid": ({"metadata": {"uid": "other"}}, 'metadata.uid: Invalid value: "other": field is immutable'),
    "mirror": (
        {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
        "metadata.annotations[kubernetes.io/config.mirror]: Forbidden",
    ),
}


@pytest.mark.parametrize(("patch", "text"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_pod_may_not_change(patch: dict[str, Any], text: str) -> None:
    """Everything else is 422 and the answer names the field that would change."""
    core = ApiWorld()
    old = core.create("pods", pod(activeDeadlineSeconds=100, tolerations=[TOLERATION]))
    error = refused(core.patch, "pods", "web", patch)

    assert (error.code, text in str(error)) == (422, True), str(error)
    assert core.get("pods", "web") is old


def test_status_is_not_changed_by_an_update_of_the_pod() -> None:
    """The pod itself and its status are written apart."""
    core = ApiWorld()
    made = core.create("pods", pod())
    core.patch("pods", "web", {"status": {"phase": "Running"}})
    core.update("pods", {**made, "status": {"phase": "Failed"}})
    core.patch(
        "pods", "web", {"spec": {"restartPolicy": "Never"}, "status": {"reason": "x"}}, subresource="status"
    )

    assert core.get("pods", "web")["status"] == made["status"] | {"reason": "x"}
    assert core.get("pods", "web")["spec"] is made["spec"]


def test_tolerant_server_stores_what_is_invalid() -> None:
    """What would be refused is stored for as long as the server is set to be tolerant."""
    core = ApiWorld()
    core.create("pods", pod())
    changed = {"spec": {"hostNetwork": True}}
    core.tolerant = True
    made = core.patch("pods", "web", changed)
    core.tolerant = False

    assert made["spec"]["hostNetwork"] is True
    assert "Forbidden" in str(refused(core.patch, "pods", "web", {"spec": {"hostNetwork": False}}))


def test_ephemeral_containers_are_added_and_stay() -> None:
    """Kubectl debug adds one with defaults; it cannot be changed, removed or given to a mirror pod."""
    core = ApiWorld()
    core.create("pods", pod())
    debug = {"name": "debug", "image": "img:2", "targetContainerName": "app"}
    made = core.add_ephemeral("web", debug)
    more = core.add_ephemeral("web", {"name": "more", "image": "img:2"})["spec"]["ephemeralContainers"]
    core.create(
        "pods",
        {**pod("static"), "metadata": {"name": "st", "annotations": {"kubernetes.io/config.mirror": "x"}}},
    )

    assert made["spec"]["ephemeralContainers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert [each["name"] for each in more] == ["debug", "more"]
    for name, patch in {
        "may not be changed": {"name": "debug", "image": "img:3"},
        "may not be removed": {"name": "debug", "$patch": "delete"},
        "Duplicate value": {"name": "app", "image": "i"},
        "cannot be set for an Ephemeral Container": {
            "name": "d",
            "image": "i",
            "ports": [{"containerPort": 1}],
        },
        "targetContainerName: Not found": {"name": "d", "image": "i", "targetContainerName": "x"},
        "image: Required value": {"name": "d"},
    }.items():
        assert name in str(refused(core.add_ephemeral, "web", patch)), name
    assert "static pods do not support" in str(refused(core.add_ephemeral, "st", debug))


def test_binding_happens_once() -> None:
    """The scheduler gives a pod its node; a second time, or for a pod that goes, it conflicts."""
    core = ApiWorld()
    core.create("pods", pod(node=""))
    core.create("pods", pod("kept", node="") | {"metadata": {"name": "kept", "finalizers": ["x/y"]}})
    core.delete("pods", "kept")
    bound = core.bind("web", "node-1")

    assert bound["spec"]["nodeName"] == "node-1"
    assert [(each["type"], each["status"]) for each in bound["status"]["conditions"]] == [
        ("PodScheduled", "True")
    ]
    assert 'already assigned to node "node-1"' in str(refused(core.bind, "web", "node-2"))
    assert "is being deleted" in str(refused(core.bind, "kept", "node-2"))


def test_generations_count_changes_of_the_spec() -> None:
    """Pods have a generation from 1.33 on: it counts bindings, changes of the spec and the deletion."""
    core = ApiWorld(pod_generations=True)
    core.create("pods", pod(node=""))
    core.bind("web", "node-1")
    core.patch("pods", "web", CHANGES["image"])
    core.patch("pods", "web", CHANGES["labels"])
    core.patch("pods", "web", {"status": {"phase": "Running"}}, subresource="status")

    assert core.get("pods", "web")["metadata"]["generation"] == 3
    assert core.delete("pods", "web")["metadata"]["generation"] == 4
    assert "generation" not in ApiWorld().create("pods", pod())["metadata"]
