"""Texts of manifests: which ones are read at all, and what the kubelet adds where they say nothing."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kubelet_conformance.node import Node, PodHandle, container, pod, witness

_CONTAINERS = "{name: c1, image: 'img:1', command: [run]}"
_TEXT = f"apiVersion: v1\nkind: Pod\nspec: {{containers: [{_CONTAINERS}], volumes: [{{name: a}}]}}\n"
_JSON = (
    '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "NAME"}, '
    '"spec": {"containers": [%s], "volumes": [{"name": "a"}]}}'
)
_C1 = '{"name": "c1", "image": "img:1", "command": ["run"]}'
_GOOD_TEXTS = (
    *(
        f"# A comment.\n{_TEXT}metadata: {{name: NAME, annotations: {{a: {each}}}}}"
        for each in ("'1'", "!!str 1", "1.2.3", "0o", "text")
    ),
    f"{_TEXT}metadata: &all {{name: NAME, annotations: {{a: b}}}}\nstatus: {{<<: {{}}}}\n",
    f"{_TEXT}metadata: {{name: NAME, annotations: {{a: &x b, c: *x}}, creationTimestamp: null}}",
    f"{_TEXT}metadata: {{name: NAME, annotations: {{}}, generation: 0x1F}}\n...\n",
    f"---\n{_TEXT}metadata:\n  name: NAME\n  generation: 0b11\n  annotations:\n    a: |\n      b\n",
    *(f"{_TEXT}metadata: {{name: NAME, generation: {each}}}" for each in ("1_000", 2**63 - 1)),
    _JSON.replace("}, ", ', "annotations": {"a": "\\ud83d\\ude00"}}, ') % _C1,
    f" \n{_JSON % _C1}\n",
)
_BAD_TEXTS = (
    *("", "[]", "text", "- a", "{", "a: b: c", "a: [", "? [a]\n: b"),
    *(
        f"{_TEXT}metadata: {{name: NAME, annotations: {{a: {each}}}}}"
        for each in ("1", "0x1", "017", "1.5", ".5", "1.5e+3", "yes", "true")
    ),
    f"{_TEXT}metadata: {{name: NAME, generation: 1.5}}",
    f"{_TEXT}metadata: {{name: NAME, generation: 9223372036854775808}}",
    _JSON.replace('"spec": {', '"spec": {"priority": NaN, ') % _C1,
    _JSON % f"{_C1}, null",
)


@witness("STATIC-26", kubernetes=(1, 32), until=(1, 32), needs="room for many pods", max_pods=500)
async def test_texts_of_manifests(node: Node) -> None:
    """A manifest is YAML or JSON, and its values have the types that the API has for its fields."""
    texts = {f"good-{i}": text for i, text in enumerate(_GOOD_TEXTS)}
    texts |= {f"bad-{i}": text for i, text in enumerate(_BAD_TEXTS)}
    for name, text in texts.items():
        node.manifests.write(f"{name}.yaml", text.replace("NAME", name))
    await only_these_run(node, texts, len(_GOOD_TEXTS))


@witness("STATIC-26", kubernetes=(1, 32), until=(1, 32))
async def test_key_is_a_text(node: Node) -> None:
    """The name of an annotation is a text, whatever it looks like in YAML."""
    text = f"{_TEXT}metadata: {{name: good, annotations: {{1: a}}}}"
    node.manifests.write("good.yaml", text)
    await only_these_run(node, {"good": text}, 1)


@witness("STATIC-26", kubernetes=(1, 32), until=(1, 32))
async def test_longest_names(node: Node) -> None:
    """Manifests with names and keys of 253 characters are run, with longer ones they are not."""
    longest, texts = "a." * 126 + "a", dict[str, str]()
    for kind, word in (("good", longest), ("bad", f"{longest}a")):
        key = {"name": "settings", "key": word, "optional": True}
        env = [{"name": "A", "valueFrom": {"secretKeyRef": key}}]
        begun = pod()
        begun["metadata"]["generateName"] = word
        for number, manifest in enumerate((begun, pod(priorityClassName=word), pod(container(env=env)))):
            manifest["metadata"]["name"] = name = f"{kind}-{number}"
            texts[name] = json.dumps(manifest)
            node.manifests.write(f"{name}.json", texts[name])
    await only_these_run(node, texts, len(texts) // 2)


async def only_these_run(node: Node, texts: Mapping[str, str], count: int) -> None:
    """See that the first so many of these manifests have a mirror, and no others one or a sandbox.

    The API server refuses most of what a kubelet has to refuse: without a mirror such a pod may still run.
    """
    await node.wait(25)
    good, ending = set(list(texts)[:count]), f"-{node.target.node_name}"
    pods = {name: node.target.api.get("default", f"{name}{ending}") for name in texts}
    # One that is refused at its admission is not run; without an API server it is shown all the same.
    shown = {name for name, found in pods.items() if found and found["status"].get("phase") != "Failed"}
    here = node.target.namespace("default")
    every = (one for one in node.target.runtime.sandboxes() if one.namespace == here)
    started = {one.pod_name.removesuffix(ending) for one in every}
    wrong = [
        f"but for {name}: {texts.get(name, name)[:100]}" for name in sorted(good ^ shown | started - good)
    ]
    await node.expect("all good manifests and no bad ones are run", lambda: wrong, "STATIC-26")


_GRACE = "io.kubernetes.pod.terminationGracePeriod"
_ANNOTATIONS = {
    _GRACE: "30",
    "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
    "io.kubernetes.container.terminationMessagePolicy": "File",
}
_SHARES_OF_HALF_A_CORE = 512
_FAILED_AFTER = 20, 32
"""When three probes that are 10 s apart have failed, in seconds: at least, and at most."""
_PROBES = {
    "livenessProbe": {"httpGet": {"port": 80}},
    "readinessProbe": {"exec": {"command": ["x", "0", "0"]}},
    "startupProbe": {"tcpSocket": {"port": 80}},
}


def _bare(name: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the Pod's spec
    """A manifest that says no more than it has to."""
    web = {"name": "c1", "image": "img:1", "command": ["run"], "ports": [{"containerPort": 80}]}
    spec: dict[str, Any] = {"containers": [web], **fields}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@witness("STATIC-26", undisturbed="it looks at a moment that a fault puts off")
async def test_manifest_gets_the_defaults_of_the_api(node: Node) -> None:
    """What a manifest does not say is as the API server would have it."""
    node.runtime.answer_http("/", 200)
    limits = {"cpu": "500m", "memory": "64Mi"}
    plain = node.want_static(_bare("plain"))
    host = node.want_static(_bare("host", hostNetwork=True))
    limited = node.want_static(pod(container(resources={"limits": limits}), name="limited"))
    asking = node.want_static(pod(container(resources={"requests": {"memory": "1"}}), name="asking"))
    scratch = container(volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}])
    mounting = node.want_static(pod(scratch, name="mounting", volumes=[{"name": "scratch"}]))
    latest = node.want_static(pod(container(image="img:latest"), name="latest"))
    probed = node.want_static(pod({**container(), **_PROBES}, name="probed"))
    every = (plain, host, limited, asking, mounting, latest, probed)
    for each in every:
        await each.until_running("c1", contract="STATIC-26")
    plain.exit("c1", 0)
    await plain.until(lambda: plain.container().attempt == 1, "another attempt")
    await node.wait(25)
    node.runtime.answer_http("/", 500)
    failing = node.now
    await probed.until_called("StopContainer")
    wrong = [*_wrong(plain, host, limited, latest)]
    for each, score in ((plain, 1000), (limited, -997), (asking, 999)):
        given = each.calls("CreateContainer")[0].request.config.linux.resources.oom_score_adj
        if given != score:
            wrong.append(f"{each.name} has the OOM score {given} instead of {score}")
    mounted = mounting.calls("CreateContainer")[0].request.config.mounts
    if not any(one.host_path.endswith("empty-dir/scratch") for one in mounted):
        wrong.append("a volume without a source is no emptyDir")
    if not _FAILED_AFTER[0] <= node.now - failing <= _FAILED_AFTER[1]:
        wrong.append(f"a failing probe ends the container after {node.now - failing:.1f} s")
    await node.expect("a manifest has the defaults of the API", lambda: wrong, "STATIC-26")


@witness("STATIC-26", kubernetes=(1, 27))
async def test_negative_grace_of_a_manifest_counts_as_one_second(node: Node) -> None:
    """A negative grace period is read as 1 s, and 0 is 0, from kubernetes/kubernetes#115606 on."""
    web = node.want_static(_bare("web", terminationGracePeriodSeconds=-1))
    none = node.want_static(_bare("none", terminationGracePeriodSeconds=0))
    await web.until_running("c1")
    await none.until_running("c1")
    wrong = [*_wrong_annotations(web, {_GRACE: "1"}), *_wrong_annotations(none, {_GRACE: "0"})]
    await node.expect("a negative grace period counts as 1 s, and none as none", lambda: wrong, "STATIC-26")


def _wrong_annotations(web: PodHandle, expected: Mapping[str, str]) -> Iterator[str]:
    found = web.calls("CreateContainer")[0].request.config.annotations
    if any(found.get(name) != text for name, text in expected.items()):
        yield f"{web.name} has the annotations {json.dumps(dict(found))}"


def _wrong(plain: PodHandle, host: PodHandle, limited: PodHandle, latest: PodHandle) -> Iterator[str]:
    for each in (plain, host, limited):
        yield from _wrong_annotations(each, _ANNOTATIONS)
    for each, port in ((plain, 0), (host, 80)):
        ports = each.calls("RunPodSandbox")[0].request.config.port_mappings
        if [(one.protocol, one.container_port, one.host_port) for one in ports] != [(0, 80, port)]:
            yield f"{each.name} has the ports {list(ports)}"
    shares = limited.calls("CreateContainer")[0].request.config.linux.resources.cpu_shares
    if shares != _SHARES_OF_HALF_A_CORE:
        yield f"a limit of 500m gives {shares} shares of CPU"
    if plain.calls("PullImage") or not latest.calls("PullImage"):
        yield "only the tag latest is pulled always"
