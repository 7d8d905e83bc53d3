"""Admission: which pods the node takes, and what becomes of those it refuses."""

from collections.abc import Sequence
from typing import Any

from kubelet_conformance.node import Node, PodHandle, container, pod, witness


def asking(cpu: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the Container type
    """A container that asks for that much CPU."""
    return container(resources={"requests": {"cpu": cpu}}, **fields)


@witness("ADMIT-01", cpu_millicores=1000)
async def test_admitted_pod_is_not_asked_again(node: Node) -> None:
    """A pod that was admitted runs on when it is changed, though it would not be admitted now."""
    mine = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": {"disk": "ssd"}}}
    node.api.put("Node", mine)
    await node.wait(15)
    web = await node.run(asking("600m"), nodeSelector={"disk": "ssd"})
    node.api.put("Node", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}})
    await node.wait(15)
    web.annotate({"a": "b"})
    await node.wait(10)


@witness("ADMIT-02", "ADMIT-03", "ADMIT-11", cpu_millicores=1000)
async def test_pod_that_does_not_fit_fails_for_good(node: Node) -> None:
    """A pod that asks for more than the node has left fails at once and for good."""
    await node.run(asking("700m"), name="first")
    big = node.want(pod(asking("400m"), name="big"))
    await big.until_phase("Failed")
    small = node.want(pod(asking("300m"), name="small"))
    await small.until_running("c1")
    await node.wait(70)


@witness("ADMIT-03", "ADMIT-02", memory_bytes=1 << 30)
async def test_memory_counts(node: Node) -> None:
    """A pod that asks for more memory than there is fails with OutOfmemory."""
    greedy = container(resources={"requests": {"memory": "2Gi"}})
    big = node.want(pod(greedy, name="big"))
    await big.until_phase("Failed")
    await node.wait(3)


_HALF = 1 << 29


@witness("ADMIT-03", memory_bytes=2 * _HALF)
async def test_memory_counts_to_the_last_byte(node: Node) -> None:
    """Of two pods that ask for half of the memory both are run, and none that asks for a byte more."""
    node.api.needs_ordinary_pods()
    one, two = (
        {"containers": [container(resources={"requests": {"memory": str(each)}})]}
        for each in (_HALF, _HALF + 1)
    )
    await node.run(*one["containers"], name="half")
    text = f"memory, requested: {_HALF + 1}, used: {_HALF}, capacity: {2 * _HALF}"
    await _refused_as_expected(node, [(two, "OutOfmemory", text)])
    await _refused_as_expected(node, [(one, "", "")])


@witness("ADMIT-03", max_pods=2)
async def test_number_of_pods_counts(node: Node) -> None:
    """A node that has as many pods as it takes refuses the next, and takes one when another is gone."""
    first = await node.run(name="first")
    await node.run(name="second")
    third = node.want(pod(name="third"))
    await third.until_phase("Failed")
    first.delete()
    await first.until_gone()
    fourth = node.want(pod(name="fourth"))
    await fourth.until_running("c1", contract="ADMIT-03")


@witness("ADMIT-03")
async def test_node_must_be_the_one_selected(node: Node) -> None:
    """A pod that selects another kind of node, or another operating system, is refused."""
    ssd = node.want(pod(name="ssd", nodeSelector={"disk": "ssd"}))
    windows = node.want(pod(name="windows", os={"name": "windows"}))
    selects = node.want(pod(name="selects", nodeSelector={"kubernetes.io/os": "windows"}))
    for each in (ssd, windows, selects):
        await each.until_phase("Failed", contract="ADMIT-03")
    await node.expect(
        "the operating system is the reason",
        lambda: [] if windows.status["reason"] == "PodOSNotSupported" else [windows.status["reason"]],
        "ADMIT-03",
    )
    await node.run(name="fits", nodeSelector={"kubernetes.io/os": "linux"})


_LABELS = {"disk": "ssd", "size": "5"}
_NAME = "metadata.name"


def _affine(*terms: dict[str, Any], **others: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    """The spec of a pod that wants a node to which one of the terms applies."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}, **others}


def _term(*expressions: str, field: str = "matchExpressions") -> dict[str, Any]:
    """A term of such expressions as `disk In ssd hdd`."""
    found = [each.split() for each in expressions]
    return {field: [{"key": key, "operator": operator, "values": values} for key, operator, *values in found]}


_FITTING = (
    *("disk In hdd ssd", "disk NotIn hdd", "none NotIn ssd", "disk Exists", "none DoesNotExist"),
    *("size Gt 4", "size Lt 6"),
)
_UNFITTING = (
    *("disk In hdd", "none In ssd", "disk NotIn hdd ssd", "none Exists", "disk DoesNotExist"),
    *("size Gt 5", "size Gt 6", "size Lt 5", "size Lt 4", "none Gt 0", "none Lt 9", "disk Gt 0", "disk Lt 9"),
)


@witness("ADMIT-03")
async def test_labels_of_the_node_decide(node: Node) -> None:
    """A pod is run on a node to which its selector and one term of its affinity apply, and on no other."""
    mine = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": _LABELS}}
    node.api.put("Node", mine)
    await node.wait(15)
    fits: list[dict[str, Any]] = [
        *(_affine(_term(each)) for each in _FITTING),
        _affine(_term("disk In hdd"), _term("disk In ssd", "size In 5"), nodeSelector=_LABELS),
        _affine(_term(f"{_NAME} In {node.name}", field="matchFields")),
        _affine({**_term("disk Exists"), **_term(f"{_NAME} NotIn other", field="matchFields")}),
        {"affinity": {}},
        {"affinity": {"nodeAffinity": {}}},
        {"os": {"name": "linux"}},
    ]
    unfit: list[dict[str, Any]] = [
        *(_affine(_term(each)) for each in _UNFITTING),
        _affine({}),
        _affine(_term("disk In ssd", "size In 6")),
        _affine(_term("disk In ssd"), nodeSelector={**_LABELS, "size": "6"}),
        _affine(_term(f"{_NAME} In other", field="matchFields")),
        _affine({**_term("disk Exists"), **_term(f"{_NAME} In other", field="matchFields")}),
        _affine({**_term("none Exists"), **_term(f"{_NAME} In {node.name}", field="matchFields")}),
        {"nodeSelector": {"none": ""}},
    ]
    await _refused_as_expected(
        node, [*((each, "", "") for each in fits), *((each, "NodeAffinity", "") for each in unfit)]
    )


def _sized(*cpu: int, init: Sequence[tuple[int, bool]] = (), overhead: int = 0) -> dict[str, Any]:
    """The spec of a pod whose containers ask for so much; of init containers it says which are sidecars."""
    apps = [asking(f"{each}m", name=f"c{number}") for number, each in enumerate(cpu)]
    inits = [
        asking(
            f"{each}m",
            name=f"i{number}",
            **({"restartPolicy": "Always"} if stays else {"command": "exit 0 0"}),
        )
        for number, (each, stays) in enumerate(init)
    ]
    return {
        "containers": apps,
        "initContainers": inits,
        **({"overhead": {"cpu": f"{overhead}m"}} if overhead else {}),
    }


_JUST_FIT: Sequence[dict[str, Any]] = (
    _sized(600, 400),
    _sized(100, init=[(1000, False)]),
    _sized(600, init=[(600, False), (400, True)]),
    _sized(100, init=[(400, True), (600, False)]),
    _sized(900, overhead=100),
)
_TOO_LARGE: Sequence[dict[str, Any]] = (
    _sized(600, 401),
    _sized(100, init=[(1001, False)]),
    _sized(601, init=[(600, False), (400, True)]),
    _sized(100, init=[(400, True), (601, False)]),
    _sized(901, overhead=100),
)


@witness("ADMIT-03", kubernetes=(1, 29), cpu_millicores=1000)
async def test_demand_of_all_containers_counts(node: Node) -> None:
    """A pod takes what runs together, or what its most demanding init container does beside its sidecars."""
    node.api.needs_ordinary_pods()
    text = "requested: 1001, used: 0, capacity: 1000"
    await _refused_as_expected(node, [(spec, "OutOfcpu", text) for spec in _TOO_LARGE])
    for spec in _JUST_FIT:
        await _refused_as_expected(node, [(spec, "", "")])


@witness("ADMIT-03")
async def test_host_port_is_of_an_address_and_a_protocol(node: Node) -> None:
    """Containers may have one host port between them at different addresses, or for different protocols."""
    port = {"containerPort": 80, "hostPort": 80}
    await node.run(container(ports=[{**port, "hostIP": "10.0.0.7"}]), name="holder")
    ports = (
        ({**port, "hostIP": "10.0.0.8"}, ""),
        ({**port, "hostIP": "0.0.0.0"}, "NodePorts"),  # noqa: S104 - nothing listens
        ({**port, "hostIP": "10.0.0.7"}, "NodePorts"),
        ({**port, "protocol": "UDP"}, ""),
        ({"containerPort": 80}, ""),
    )
    await _refused_as_expected(node, [(_with_port(each), reason, "") for each, reason in ports])


@witness("ADMIT-03", kubernetes=(1, 34))
async def test_host_port_of_a_sidecar_is_taken(node: Node) -> None:
    """A sidecar holds its host port as an app container does, from kubernetes/kubernetes#132040 on."""
    port = {"containerPort": 81, "hostPort": 81}
    await node.run(name="holder", init=(container("s1", restartPolicy="Always", ports=[port]),))
    await _refused_as_expected(node, [(_with_port(port), "NodePorts", "")])


def _with_port(port: dict[str, Any]) -> dict[str, Any]:
    """The spec of a pod whose container has this port."""
    return {"containers": [container(ports=[port])]}


async def _refused_as_expected(node: Node, cases: Sequence[tuple[dict[str, Any], str, str]]) -> None:
    """Create pods with these fields in their specs, see which are refused and why, and delete them."""
    wanted = [
        node.want(pod(name=f"pod-{number}", grace=1, **spec)) for number, (spec, *_) in enumerate(cases)
    ]
    await node.wait(12)

    def wrong() -> list[str]:
        return [
            f"{spec}: {one.status.get('reason')}, {one.status.get('message')}"
            for (spec, reason, text), one in zip(cases, wanted, strict=True)
            if one.status.get("reason", "") != reason
            or bool(one.sandboxes()) is bool(reason)
            or (reason and text not in one.status["message"])
        ]

    await node.expect("pods are refused for what applies to them, and others run", wrong, "ADMIT-03")
    for one in wanted:
        one.delete()
    for one in wanted:
        await one.until_gone()


@witness("ADMIT-04", cpu_millicores=1000, undisturbed="the pod that takes its time may be gone before")
async def test_terminating_pod_still_counts(node: Node) -> None:
    """What a deleted pod took is free when its containers have stopped, not before."""
    node.api.needs_ordinary_pods()
    port = {"containerPort": 80, "hostPort": 8080}
    old = await node.run(asking("800m", command="run stopdelay=10", ports=[port]), name="old")
    old.delete()
    await node.wait(2)
    early = node.want(pod(asking("500m"), name="early"))
    same_port = node.want(pod(container(ports=[port]), name="same-port"))
    await early.until_phase("Failed")
    await same_port.until_phase("Failed")
    await old.until_gone()
    await node.run(asking("500m"), name="late")


@witness("ADMIT-04", "ADMIT-05", "RESTARTKUBELET-05", cpu_millicores=1000)
async def test_every_pod_is_admitted_again_after_a_restart(node: Node) -> None:
    """A kubelet that starts again admits the pods it finds, but for those that have ended."""
    node.api.needs_ordinary_pods()
    done = node.want(pod(asking("900m", command="exit 0 2"), name="done", restart="Never"))
    await done.until_phase("Succeeded")
    await node.run(asking("900m"), name="runs")
    await node.restart_kubelet()
    await node.wait(8)
    late = node.want(pod(asking("900m"), name="late"))
    await late.until_phase("Failed")


@witness("ADMIT-05")
async def test_ended_pod_is_not_asked_again(node: Node) -> None:
    """A pod that has ended stays as it ended, though the node no longer has the label that it selected."""
    mine = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": {"disk": "ssd"}}}
    node.api.put("Node", mine)
    await node.wait(15)
    job = node.want(pod(container(command="exit 0 1"), restart="Never", nodeSelector={"disk": "ssd"}))
    await job.until_phase("Succeeded")
    node.api.put("Node", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}})
    await node.restart_kubelet()
    await node.wait(15)


@witness("ADMIT-06", "ADMIT-02")
async def test_host_port_is_given_once(node: Node) -> None:
    """Of two pods that want one port of the node the later fails; another port or protocol is free."""
    port = {"containerPort": 80, "hostPort": 8080}
    await node.run(container(ports=[port]), name="first")
    second = node.want(pod(container(ports=[port]), name="second"))
    await second.until_phase("Failed")
    await node.run(container(ports=[{**port, "protocol": "UDP"}]), name="third")
    await node.run(container(ports=[{**port, "hostPort": 8081}]), name="fourth")


@witness("ADMIT-07")
async def test_unknown_resources_are_no_hindrance(node: Node) -> None:
    """A resource that the node knows nothing of is left out of account."""
    asks = {"requests": {"example.com/gadget": "1"}, "limits": {"example.com/gadget": "1"}}
    await node.wait(3)
    await node.run(container(resources=asks))


@witness("ADMIT-10", "WORK-34", cpu_millicores=1000)
async def test_refused_pod_can_be_deleted(node: Node) -> None:
    """A pod that was refused goes when it is deleted, with nothing to stop."""
    big = node.want(pod(asking("2"), name="big"))
    await big.until_phase("Failed")
    await node.wait(3)
    big.delete()
    await big.until_gone()


@witness(cpu_millicores=1000)
async def test_refused_static_pod_has_no_mirror(node: Node) -> None:
    """A static pod that does not fit is not run and has no mirror."""
    node.want_static(pod(asking("2"), name="big"))
    # A static pod is critical: of no pod that could make room for it, a kubelet may speak as of a failure.
    refusals = "OutOfcpu", "UnexpectedAdmissionError"
    await node.until(lambda: any(map(node.events, refusals)), "event of the refusal", within=10)
    await node.wait(10)


@witness("ADMIT-03", kubernetes=(1, 32), until=(1, 32), feature_gates={"SidecarContainers": False})
async def test_sidecars_are_refused_without_their_feature(node: Node) -> None:
    """A kubelet without the sidecar feature refuses a pod that needs it, and says why."""
    sidecar = container("s1", restartPolicy="Always")
    web = node.want(pod(init=(sidecar,)))
    await web.until_phase("Failed")


CRITICAL = 2_000_000_000


@witness("STATIC-23", "ADMIT-08", cpu_millicores=1000)
async def test_static_pod_gets_its_room(node: Node) -> None:
    """On a full node pods make room for a static one, the cheapest that will do, and each has its grace."""
    node.api.needs_ordinary_pods()
    await node.run(asking("300m"), name="keeps", grace=10)
    goes = await node.run(asking("600m", command="run stopdelay=4"), name="goes", grace=12)
    static = node.want_static(pod(asking("500m"), name="static"))
    await static.until_running("c1", within=60)
    await goes.until_phase("Failed", within=10)
    await node.wait(3)


@witness("STATIC-03", cpu_millicores=1000)
async def test_static_pod_for_which_there_is_no_room_leaves_nothing(node: Node) -> None:
    """A static pod that asks for more than the node has is refused, and goes with its manifest."""
    web = await node.run()
    node.want_static(pod(asking("2000m"), name="static"))
    await node.wait(3)
    node.manifests.remove("static.yaml")
    await web.until_condition("Ready")
    await node.wait(3)


@witness("ADMIT-08", "COND-08", memory_bytes=1 << 30)
async def test_pod_of_the_system_gets_its_room(node: Node) -> None:
    """A pod of system priority makes those go that matter less, and no other critical one."""
    node.api.needs_ordinary_pods()
    much = {"requests": {"memory": "400Mi"}}
    await node.run(container(resources=much), name="system", priority=CRITICAL)
    web = await node.run(
        container(command="run stopcode=0", resources=much), name="web", priority=100, grace=8
    )
    new = node.want(pod(container(resources=much), name="new", priority=CRITICAL))
    await new.until_running("c1", within=60)
    await web.until_phase("Failed", within=20)


@witness("ADMIT-08", "ADMIT-03", cpu_millicores=1000)
async def test_pod_of_the_system_makes_room_for_a_higher_one(node: Node) -> None:
    """Of two pods of system priority that do not fit together the one of lower priority goes."""
    node.api.needs_ordinary_pods()
    lower = await node.run(asking("600m"), name="lower", priority=CRITICAL, grace=2)
    higher = node.want(pod(asking("600m"), name="higher", priority=CRITICAL + 1000))
    await higher.until_running("c1", within=60, contract="ADMIT-03")
    await lower.until_phase("Failed", within=20)


def _guaranteed(cpu: str) -> dict[str, Any]:
    given = {"cpu": cpu, "memory": "1Mi"}
    return container(resources={"requests": given, "limits": given})


_NEEDED: Sequence[tuple[int, set[str]]] = (
    (350, {"large", "small"}),
    (200, {"medium"}),
    (500, {"large", "medium"}),
    (150, {"medium"}),
)
"""How much CPU is missing, and which of the pods have to go for that."""


@witness("ADMIT-08", "ADMIT-03", cpu_millicores=1000)
async def test_as_few_pods_as_will_do_make_room(node: Node) -> None:
    """Of the pods that are cheapest the largest go first, and the smallest that fills the rest."""
    node.api.needs_ordinary_pods()
    for missing, expected in _NEEDED:
        others = [
            await node.run(asking(cpu), name=name, grace=2)
            for name, cpu in (("large", "300m"), ("medium", "200m"), ("small", "100m"))
        ]
        others.append(await node.run(_guaranteed("300m"), name="guaranteed", grace=2))
        new = node.want(pod(asking(f"{missing + 100}m"), name="new", priority=CRITICAL, grace=2))
        await new.until_running("c1", within=60, contract="ADMIT-03")
        await _expect_gone(node, others, expected)
        for each in (*others, new):
            each.delete()
        for each in (*others, new):
            await each.until_gone()


@witness("ADMIT-08", "ADMIT-03", cpu_millicores=1000)
async def test_room_that_just_suffices_is_made(node: Node) -> None:
    """A pod of system priority that needs all of the node makes every other pod go."""
    node.api.needs_ordinary_pods()
    others = [await node.run(asking("500m"), name=name, grace=2) for name in ("first", "second")]
    new = node.want(pod(asking("1"), name="new", priority=CRITICAL))
    await new.until_running("c1", within=60, contract="ADMIT-03")
    await _expect_gone(node, others, {"first", "second"})


async def _expect_gone(node: Node, others: Sequence[PodHandle], expected: set[str]) -> None:
    """The end of a pod that is preempted may be shown after the new one is shown as Running."""

    def gone() -> set[str]:
        return {each.name for each in others if each.phase != "Running"}

    await node.until(lambda: expected <= gone(), "these pods make room", within=20, contract="ADMIT-03")
    await node.expect("no other pods make room", lambda: sorted(gone() - expected), "ADMIT-03")


@witness("ADMIT-08", "ADMIT-03", max_pods=2, undisturbed="it looks at a moment that a fault puts off")
async def test_pod_of_the_system_gets_its_place(node: Node) -> None:
    """Where a node has as many pods as it takes, one goes for a pod of system priority."""
    node.api.needs_ordinary_pods()
    others = [await node.run(name=name, grace=2) for name in ("first", "second")]
    new = node.want(pod(name="new", priority=CRITICAL))
    await new.until_running("c1", within=60, contract="ADMIT-03")
    await node.wait(5)
    left = [each.name for each in others if each.phase == "Running"]
    await node.expect("one pod has to go", lambda: left if len(left) != 1 else [], "ADMIT-03")


@witness("ADMIT-09", undisturbed="it waits for what a fault lets pass unseen")
async def test_node_without_memory_takes_who_asks_for_some(node: Node) -> None:
    """Under memory pressure a pod that asks for none is refused, unless it tolerates that."""
    tolerant = [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}]
    with node.pressure(memory_available="50Mi"):
        await node.wait(25)
        greedy = node.want(pod(name="greedy"))
        await greedy.until_phase("Failed", contract="ADMIT-03")
        await node.run(container(resources={"requests": {"memory": "64Mi"}}), name="modest", within=3)
    await node.wait(1)
    patient = node.want(pod(name="patient", tolerations=tolerant))
    await patient.until_running("c1", contract="ADMIT-03")


@witness("ADMIT-09")
async def test_node_without_disk_takes_critical_pods_only(node: Node) -> None:
    """Under disk pressure every pod is refused that is not critical."""
    with node.pressure(nodefs_available="5%"):
        await node.wait(25)
        modest = node.want(pod(container(resources={"requests": {"memory": "64Mi"}}), name="modest"))
        await modest.until_phase("Failed", contract="ADMIT-03")
        system = node.want(pod(name="system", priority=CRITICAL))
        await system.until_running("c1", contract="ADMIT-03")


_CONDITIONS = {
    "memory_available": "MemoryPressure",
    "nodefs_inodesFree": "DiskPressure",
    "imagefs_available": "DiskPressure",
    "pid_available": "PIDPressure",
}
_LIMITS = dict.fromkeys((each.replace("_", ".") for each in _CONDITIONS), "10%")


@witness(
    "ADMIT-03",
    "ADMIT-09",
    eviction_hard=_LIMITS,
    eviction_pressure_transition_period=15,
    undisturbed="an image that is slow to go keeps the condition",
)
async def test_refused_pod_is_told_what_the_node_lacks(node: Node) -> None:
    """The status of a pod that a node refuses for its condition names that condition."""
    wrong: list[str] = []
    for signal, condition in _CONDITIONS.items():
        web = pod(name=signal.lower().replace("_", "-"))
        with node.pressure(**{signal: "5%"}):
            await node.wait(25)
            refused = node.want(web)
            await refused.until_phase("Failed", within=20, contract="ADMIT-03")
        message = refused.status["message"]
        wrong += [] if f"[{condition}]" in message else [message]
        await node.wait(40)
    await node.expect("a pod is refused for the condition of its node", lambda: wrong, "ADMIT-03")


@witness("WORK-34", cpu_millicores=1000)
async def test_refused_pod_that_was_to_go_before_goes(node: Node) -> None:
    """A pod that was deleted before the kubelet saw it, and that the node refuses, goes all the same."""
    await node.run(name="other")
    await node.kubelet.kill()
    web = node.want(pod(container(resources={"requests": {"cpu": "2"}})))
    web.delete()
    await node.kubelet.start()
    await web.until_gone()


_PRESSURE = "node.kubernetes.io/memory-pressure"
_TOLERATED: Sequence[tuple[bool, dict[str, str]]] = (
    (True, {"operator": "Exists"}),
    (True, {"key": _PRESSURE, "operator": "Exists"}),
    (False, {"key": _PRESSURE, "operator": "Exists", "effect": "NoExecute"}),
    (False, {"key": "other", "operator": "Exists", "effect": "NoSchedule"}),
)


@witness("ADMIT-03", undisturbed="another kubelet does not know of the pressure that was")
async def test_toleration_has_to_be_of_the_taint(node: Node) -> None:
    """A pod that asks for no memory is taken under memory pressure if it tolerates just that."""
    with node.pressure(memory_available="50Mi"):
        await node.wait(25)
    for number, (is_taken, toleration) in enumerate(_TOLERATED):
        web = node.want(pod(name=f"p{number}", tolerations=[toleration]))
        await web.until_phase("Running" if is_taken else "Failed", within=20, contract="ADMIT-03")
