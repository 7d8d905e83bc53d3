"""Strategies that build pods: containers, inits, sidecars, policies, probes, hooks and grace periods.

The first of each choice is the plainest: there a failure shrinks to. Each strategy is made once, not
where it is drawn from: Hypothesis takes longer to make and check one than to draw.
"""

from typing import Any

from hypothesis import strategies as st

from kubelet_conformance.node.manifests import IMAGE, container, exec_hook, exec_probe, pod

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
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_SIDECARS = ("run", "run", "run stopdelay=3", "exit 1 5", "seq 1@1 run")


def _http(path: str) -> Json:
    return {"httpGet": {"path": path, "port": _PORT}}


_handlers = st.one_of(
    st.sampled_from(PATHS).map(_http),
    st.sampled_from(("x 0 0", "x 1 0", "x 0 3")).map(exec_probe),
    st.sampled_from(({"tcpSocket": {"port": _PORT}}, {"grpc": {"port": _PORT}})),
)
_periods = st.sampled_from((10, 1, 3))
_failures = st.sampled_from((3, 1, 2))
_delays = st.sampled_from((0, 2, 15))
_successes = st.sampled_from((1, 2))


@st.composite
def _probes(draw: st.DrawFn, *, successes: bool = False) -> Json:
    fields: Json = {"periodSeconds": draw(_periods), "failureThreshold": draw(_failures)}
    delay = draw(_delays)
    if delay:
        fields["initialDelaySeconds"] = delay
    if successes:
        fields["successThreshold"] = draw(_successes)
    return {**draw(_handlers), **fields}


_probes_of = {name: _probes(successes=name == "readinessProbe") for name in _PROBES}
_hooks = st.one_of(
    st.sampled_from(("x 0 0", "x 0 2", "x 1 0", "x 0 40")).map(exec_hook),
    st.sampled_from(PATHS).map(_http),
)
_pulls = st.sampled_from(("Always", "IfNotPresent", "Never"))
_fifths = st.integers(0, 4)
_either = st.booleans()


def _seldom(draw: st.DrawFn) -> bool:
    """True in about one of five."""
    return draw(_fifths) == 4  # noqa: PLR2004 - see above


@st.composite
def _extras(draw: st.DrawFn) -> Json:
    """Probes and hooks of a container that goes on."""
    fields: Json = {}
    if not draw(_either):
        return fields
    for name, probes in _probes_of.items():
        if _seldom(draw):
            fields[name] = draw(probes)
    lifecycle = {name: draw(_hooks) for name in ("postStart", "preStop") if _seldom(draw)}
    if lifecycle:
        fields["lifecycle"] = lifecycle
    if _seldom(draw):
        fields["imagePullPolicy"] = draw(_pulls)
    return fields


_some_extras = _extras()
_init_counts = st.sampled_from((0, 0, 0, 1, 2, 3))
_init_runs = st.sampled_from(_INITS)
_sidecar_runs = st.sampled_from(_SIDECARS)


@st.composite
def _inits(draw: st.DrawFn) -> tuple[Json, ...]:
    count = draw(_init_counts)
    made: list[Json] = []
    for number in range(1, count + 1):
        if draw(_either):
            command = draw(_sidecar_runs)
            made.append(container(f"s{number}", command, restartPolicy="Always", **draw(_some_extras)))
        else:
            made.append(container(f"i{number}", draw(_init_runs)))
    return tuple(made)


_some_inits = _inits()
_app_counts = st.sampled_from((1, 1, 2, 3))
_app_runs = st.sampled_from(_RUNS)
_images = st.sampled_from((*IMAGES[:1] * 3, *IMAGES[1:]))
_deadlines = st.sampled_from((60, 5, 20))
_policies = st.sampled_from(("Always", "Always", "OnFailure", "Never"))
_graces = st.sampled_from((30, 5, 1, 2, 40))


@st.composite
def pods(draw: st.DrawFn) -> Json:
    """A manifest; its name is put in later."""
    apps = [
        container(
            f"c{number}",
            draw(_app_runs),
            image=draw(_images),
            **draw(_some_extras),
        )
        for number in range(1, draw(_app_counts) + 1)
    ]
    spec: Json = {}
    if _seldom(draw) and _seldom(draw):
        spec["activeDeadlineSeconds"] = draw(_deadlines)
    if _seldom(draw) and _seldom(draw):
        spec["hostNetwork"] = True
    return pod(
        *apps,
        init=draw(_some_inits),
        restart=draw(_policies),
        grace=draw(_graces),
        **spec,
    )
