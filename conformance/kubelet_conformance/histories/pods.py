"""Strategies that build pods: containers, inits, sidecars, policies, probes, hooks and grace periods.

The first of each choice is the plainest: there a failure shrinks to.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kubelet_conformance.node.pods import IMAGE, container, exec_hook, exec_probe, pod

__all__ = ("IMAGES", "PATHS", "pods")

Json = dict[str, Any]

IMAGES = (IMAGE, "img:2", "img:3")
PATHS = ("/a", "/b")
"""Where the servers in pods are asked by probes and hooks."""
_PORT = 8080

_RUNS = (
    *("run", "run", "run", "run stopdelay=3", "run stopdelay=45", "run stopcode=3"),
    *("exit 0 4", "exit 1 4", "exit 0 0", "exit 1 0", "seq 1@2 run", "seq 0@3 1@1 run", "nostart"),
)
_INITS = ("exit 0 1", "exit 0 1", "exit 0 0", "exit 0 12", "seq 1@1 0@1", "exit 1 1", "run")
_SIDECARS = ("run", "run", "run stopdelay=3", "exit 1 5", "seq 1@1 run")


def _http(path: str) -> Json:
    return {"httpGet": {"path": path, "port": _PORT}}


_handlers = st.one_of(
    st.sampled_from(PATHS).map(_http),
    st.sampled_from(("x 0 0", "x 1 0", "x 0 3")).map(exec_probe),
    st.just({"tcpSocket": {"port": _PORT}}),
)


@st.composite
def _probes(draw: st.DrawFn, *, successes: bool = False) -> Json:
    fields: Json = {
        "periodSeconds": draw(st.sampled_from((10, 1, 3))),
        "failureThreshold": draw(st.sampled_from((3, 1, 2))),
    }
    delay = draw(st.sampled_from((0, 2, 15)))
    if delay:
        fields["initialDelaySeconds"] = delay
    if successes:
        fields["successThreshold"] = draw(st.sampled_from((1, 2)))
    return {**draw(_handlers), **fields}


_hooks = st.one_of(
    st.sampled_from(("x 0 0", "x 0 2", "x 1 0", "x 0 40")).map(exec_hook),
    st.sampled_from(PATHS).map(_http),
)


def _seldom(draw: st.DrawFn) -> bool:
    """True in about one of five."""
    return draw(st.integers(0, 4)) == 4  # noqa: PLR2004 - see above


@st.composite
def _extras(draw: st.DrawFn) -> Json:
    """Probes and hooks of a container that goes on."""
    fields: Json = {}
    if not draw(st.booleans()):
        return fields
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if _seldom(draw):
            fields[name] = draw(_probes(successes=name == "readinessProbe"))
    lifecycle = {name: draw(_hooks) for name in ("postStart", "preStop") if _seldom(draw)}
    if lifecycle:
        fields["lifecycle"] = lifecycle
    if _seldom(draw):
        fields["imagePullPolicy"] = draw(st.sampled_from(("Always", "IfNotPresent", "Never")))
    return fields


@st.composite
def _inits(draw: st.DrawFn) -> tuple[Json, ...]:
    count = draw(st.sampled_from((0, 0, 0, 1, 2, 3)))
    made: list[Json] = []
    for number in range(1, count + 1):
        if draw(st.booleans()):
            command = draw(st.sampled_from(_SIDECARS))
            made.append(container(f"s{number}", command, restartPolicy="Always", **draw(_extras())))
        else:
            made.append(container(f"i{number}", draw(st.sampled_from(_INITS))))
    return tuple(made)


@st.composite
def pods(draw: st.DrawFn) -> Json:
    """A manifest; its name is put in later."""
    apps = [
        container(
            f"c{number}",
            draw(st.sampled_from(_RUNS)),
            image=draw(st.sampled_from((*IMAGES[:1] * 3, *IMAGES[1:]))),
            **draw(_extras()),
        )
        for number in range(1, draw(st.sampled_from((1, 1, 2, 3))) + 1)
    ]
    spec: Json = {}
    if _seldom(draw) and _seldom(draw):
        spec["activeDeadlineSeconds"] = draw(st.sampled_from((60, 5, 20)))
    if _seldom(draw) and _seldom(draw):
        spec["hostNetwork"] = True
    return pod(
        *apps,
        init=draw(_inits()),
        restart=draw(st.sampled_from(("Always", "Always", "OnFailure", "Never"))),
        grace=draw(st.sampled_from((30, 5, 1, 2, 40))),
        **spec,
    )
