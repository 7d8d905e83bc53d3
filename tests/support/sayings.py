"""What a pod says: what stands where, and which field a refusal has to name where that is wrong."""

import copy
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

Json: TypeAlias = dict[str, Any]
Row: TypeAlias = tuple[str, object, str]
"""What stands where, and which field is wrong: one below it, or after ">" another one of the pod."""

CONTAINER: Json = {"name": "c1", "image": "img:1", "command": ["run"]}
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "containers": [CONTAINER],
        "initContainers": [{**CONTAINER, "name": "i1"}],
        "volumes": [{"name": "v"}, {"name": "claimed", "persistentVolumeClaim": {"claimName": "c"}}],
    },
}
NOTHING: Json = {}


@dataclass(frozen=True, slots=True)
class Saying:
    """One thing that a pod says: where it stands and what it is, None being that the field is left out.

    `field` is the one that is wrong, "" if none is. Without a place the value is fields of the whole pod.
    """

    place: tuple[str | int, ...]
    value: object
    field: str = ""

    def put(self, pod: Json) -> Json:
        """The pod with this in it."""
        if not self.place:
            return {**pod, **cast("Json", self.value)}
        changed = copy.deepcopy(pod)
        *above, last = self.place
        inner: Any = changed
        for name in above:
            inner = inner[name]
        if self.value is None:
            del inner[last]
        else:
            inner[last] = self.value
        return changed

    @property
    def kind(self) -> tuple[str | int, ...]:
        """What it is about: of two sayings about the same thing a pod can hold one."""
        return self.place[:2]


def in_pods(place: str, value: object, field: str = "") -> Saying:
    """What a field of the pod says."""
    return Saying(tuple(place.split(".")), value, _field(place, field))


def in_apps(place: str, value: object, field: str = "") -> Saying:
    """What the app container says."""
    return Saying(("spec", "containers", 0, place), value, _field(f"spec.containers[0].{place}", field))


def in_inits(place: str, value: object, field: str = "") -> Saying:
    """What the init container says."""
    found = _field(f"spec.initContainers[0].{place}", field)
    return Saying(("spec", "initContainers", 0, place), value, found)


def in_volumes(value: Json, field: str = "") -> Saying:
    """What a volume called v says."""
    return Saying(("spec", "volumes"), [{"name": "v", **value}], f"spec.volumes[0]{field and '.'}{field}")


def in_specs(fields: Json, field: str = "") -> Saying:
    """What several fields of the spec say together."""
    return Saying((), {"spec": {**POD["spec"], **fields}}, field)


def _field(place: str, field: str) -> str:
    return field[1:] if field.startswith(">") else f"{place}{field}"
