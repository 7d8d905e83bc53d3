"""Changes that the catalogue declares free: no kubelet is wrong for them, so no mutant is made of them."""

from collections.abc import Callable
from dataclasses import dataclass

from scene import Action, Scene

SECOND_STOP_SECONDS = 2.1
"""How long after a pod-level kill real kubelets were seen to stop the same sandbox again."""
_IDEMPOTENT = frozenset({"StopPodSandbox", "StopContainer", "RemoveContainer", "RemovePodSandbox"})


@dataclass(frozen=True, slots=True)
class Freedom:
    """One declared freedom: for which kinds of change it holds, where it is declared, and when it applies."""

    name: str
    changes: frozenset[str]
    cited: str
    applies: Callable[[Scene, Action], bool]


def is_repeat(scene: Scene, action: Action) -> bool:
    """The same stop or removal of the same object has succeeded before."""
    return action.rpc in _IDEMPOTENT and any(
        one.rpc == action.rpc and one.target == action.target and not one.failed and one.reply < action.call
        for one in scene.actions
    )


def is_repeated_soon(scene: Scene, action: Action) -> bool:
    """The same stop or removal of the same object comes again within the time real kubelets take."""
    return action.rpc in _IDEMPOTENT and any(
        one.rpc == action.rpc
        and one.target == action.target
        and one.call > action.call
        and one.begin - action.begin <= SECOND_STOP_SECONDS
        for one in scene.actions
    )


def could_be_repeated(_: Scene, action: Action) -> bool:
    """A second one like it may follow."""
    return action.rpc in _IDEMPOTENT


def swaps_parallel_stops(scene: Scene, action: Action) -> bool:
    """It and the next stop two ordinary containers of one pod: a StopContainer, or the hook before it."""
    other = scene.next_of_pod(action)
    return (
        other is not None
        and other.target != action.target
        and all(
            one.rpc in {"StopContainer", "ExecSync"} and scene.name_of.get(one.target) not in scene.sidecars
            for one in (action, other)
        )
    )


def fails_and_is_retried(_: Scene, action: Action) -> bool:
    """A RunPodSandbox that failed, so that the kubelet tries again at its next sync, whenever that is."""
    return action.rpc == "RunPodSandbox" and action.failed


def stops_an_unknown_one_instead(scene: Scene, action: Action) -> bool:
    """It could be left out, and the runtime never had what is stopped in its place."""
    could_go = is_repeat(scene, action) or is_repeated_soon(scene, action)
    return could_go and len(scene.at_runtime(action.call, containers=False)) == 1


def swaps_a_repeat(scene: Scene, action: Action) -> bool:
    """One of the two swapped calls is a repeat that may come at any time."""
    other = scene.next_of_pod(action)
    return other is not None and (is_repeat(scene, action) or is_repeat(scene, other))


_MOVES = frozenset({"drop", "delay"})
FREEDOMS = (
    Freedom(
        "repeat",
        _MOVES,
        "30b: the same id may be stopped or removed more than once (idempotent calls are free)",
        is_repeat,
    ),
    Freedom(
        "repeated soon",
        _MOVES,
        "30b: a second StopPodSandbox 0.1-2.1 s after a kill, two RemoveContainer from two cleaners",
        is_repeated_soon,
    ),
    Freedom(
        "repetition",
        frozenset({"duplicate"}),
        "30: extra idempotent StopPodSandbox calls; 30b: one id may be stopped or removed more than once",
        could_be_repeated,
    ),
    Freedom(
        "parallel stops",
        frozenset({"swap"}),
        "30: order of parallel StopContainer calls",
        swaps_parallel_stops,
    ),
    Freedom(
        "retry",
        frozenset({"duplicate"}),
        "30: retries are upper bounds, any event may wake the worker earlier",
        fails_and_is_retried,
    ),
    Freedom(
        "unknown in place of a repeat",
        frozenset({"sandbox id"}),
        "30b: idempotent calls are free; calls may name ids that were never created in the trace",
        stops_an_unknown_one_instead,
    ),
    Freedom("swapped repeat", frozenset({"swap"}), "30b: idempotent calls are free", swaps_a_repeat),
)


def free(scene: Scene, action: Action, change: str) -> Freedom | None:
    """The freedom that covers this change of this call, if any."""
    return next(
        (one for one in FREEDOMS if change in one.changes and one.applies(scene, action)),
        None,
    )
