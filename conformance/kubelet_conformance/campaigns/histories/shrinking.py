"""The ways to make a history that breaks something smaller.

Hypothesis could do it too, but it knows nothing of histories: it takes ten times as many plays, and a play is
what costs.
"""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from kubelet_conformance.campaigns.histories.history import History
from kubelet_conformance.campaigns.histories.steps import Step, Wait, Want

Json = dict[str, Any]
_SEVERAL = 4
_PLAIN = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30}
_NEEDED = frozenset({"containers", *_PLAIN})
_OF_CONTAINER = frozenset({"name", "image", "command"})


def places(history: History) -> int:
    """How many places a history has."""
    return max(len(history.steps), len(history.orders), 1)


def _replaced(history: History, place: int, count: int, *steps: Step) -> History:
    """The history with these steps in place of so many."""
    return replace(history, steps=(*history.steps[:place], *steps, *history.steps[place + count :]))


def _without_orders(history: History, place: int) -> Iterator[History]:
    if place == 0 and (history.orders or history.seed):
        yield replace(history, orders=(), seed=0)


def _without_events(history: History, place: int) -> Iterator[History]:
    if place == 0 and history.evented:
        yield replace(history, evented=False)


def _without_several(history: History, place: int) -> Iterator[History]:
    if place % _SEVERAL == 0 and place < len(history.steps):
        yield _replaced(history, place, _SEVERAL)


def _without_one(history: History, place: int) -> Iterator[History]:
    if place < len(history.steps):
        yield _replaced(history, place, 1)


def _with_one_wait(history: History, place: int) -> Iterator[History]:
    match history.steps[place : place + 2]:
        case (Wait(seconds=first), Wait(seconds=second)):
            yield _replaced(history, place, 2, Wait(first + second))
        case _:
            pass


def _with_plainer_pod(history: History, place: int) -> Iterator[History]:
    step = history.steps[place] if place < len(history.steps) else None
    if isinstance(step, Want):
        if step.static:
            yield _replaced(history, place, 1, replace(step, static=False))
        for manifest in _plainer(step.manifest):
            yield _replaced(history, place, 1, replace(step, manifest=manifest))


def _plainer(manifest: Json) -> Iterator[Json]:
    """The pod with less, one thing at a time."""
    spec: Json = manifest["spec"]
    for name in ("initContainers", "containers"):
        containers: list[Json] = spec.get(name) or []
        for number, container in enumerate(containers):
            others = containers[:number] + containers[number + 1 :]
            if others or name != "containers":
                yield _with(manifest, name, others)
            for field in sorted(container.keys() - _OF_CONTAINER - {"restartPolicy"}):
                less = {key: value for key, value in container.items() if key != field}
                yield _with(manifest, name, [*containers[:number], less, *containers[number + 1 :]])
    for field in sorted(spec.keys() - _NEEDED):
        yield {**manifest, "spec": {key: value for key, value in spec.items() if key != field}}
    for field, plain in _PLAIN.items():
        if spec[field] != plain:
            yield _with(manifest, field, plain)


def _with(manifest: Json, field: str, value: object) -> Json:
    spec: Json = {**manifest["spec"], field: value}
    if not value:
        del spec[field]
    return {**manifest, "spec": spec}


def _in_plain_order(history: History, place: int) -> Iterator[History]:
    if place < len(history.orders) and history.orders[place]:
        yield replace(history, orders=(*history.orders[:place], 0, *history.orders[place + 1 :]))


WAYS: tuple[Callable[[History, int], Iterator[History]], ...] = (
    _without_orders,
    _without_events,
    _without_several,
    _without_one,
    _with_one_wait,
    _with_plainer_pod,
    _in_plain_order,
)
"""Each yields smaller histories, the plainest first, for one place."""
