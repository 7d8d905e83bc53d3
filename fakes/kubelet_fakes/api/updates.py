"""What the API server refuses when a pod is changed.

Source: ValidatePodUpdate, ValidatePodEphemeralContainersUpdate and ValidatePodStatusUpdate.
"""

from collections.abc import Iterator
from typing import Any

from kubelet_fakes.api.errors import FieldError
from kubelet_fakes.api.objects import FrozenDict, at, is_array, is_object, replaced
from kubelet_fakes.api.validation import FORBIDDEN, INVALID, REQUIRED, check_ephemeral

_MIRROR = "kubernetes.io/config.mirror"
_INT32_MAX = 2**31 - 1
_ONLY = (
    "pod updates may not change fields other than `spec.containers[*].image`, "
    "`spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to "
    "existing tolerations), `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative); this one changes "
)


def check_spec_update(old: FrozenDict, new: FrozenDict) -> Iterator[FieldError]:
    """What is wrong with an update of a pod itself: image, deadline and tolerations may change, no more."""
    if at(old, "metadata", "annotations", _MIRROR) != at(new, "metadata", "annotations", _MIRROR):
        yield FieldError(f"metadata.annotations[{_MIRROR}]", FORBIDDEN, "may not change on an existing pod")
    before, after = old["spec"], new["spec"]
    if before is after:
        return
    for kind in ("containers", "initContainers"):
        counts = [len(spec.get(kind, ())) for spec in (before, after)]
        if counts[0] != counts[1]:
            yield FieldError(f"spec.{kind}", FORBIDDEN, "pod updates may not add or remove containers")
            return
        for index, container in enumerate(after.get(kind, ())):
            if not container.get("image"):
                yield FieldError(f"spec.{kind}[{index}].image", REQUIRED)
    yield from _check_deadline(before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds"))
    yield from _check_tolerations(before.get("tolerations", []), after.get("tolerations", []))
    difference = _difference(_comparable(before), _comparable(after), "spec")
    if difference:
        yield FieldError("spec", FORBIDDEN, _ONLY + difference)


def check_ephemeral_update(old: FrozenDict, new: FrozenDict) -> Iterator[FieldError]:
    """What is wrong with a change of the ephemeral containers: they are added, and stay as they are."""
    path = "spec.ephemeralContainers"
    if at(old, "metadata", "annotations", _MIRROR) is not None:
        yield FieldError(path, FORBIDDEN, "static pods do not support ephemeral containers")
        return
    after = {each.get("name"): each for each in new["spec"].get("ephemeralContainers", ())}
    for each in old["spec"].get("ephemeralContainers", ()):
        name = each["name"]
        if name not in after:
            yield FieldError(path, FORBIDDEN, f'existing ephemeral containers "{name}" may not be removed')
        elif after[name] != each:
            yield FieldError(path, FORBIDDEN, f'existing ephemeral containers "{name}" may not be changed')
    yield from check_ephemeral(new["spec"])


def check_resize(old: FrozenDict, new: FrozenDict) -> Iterator[FieldError]:
    """What is wrong with a resize: resources of containers may change, of static pods nothing (STATIC-24)."""
    if at(old, "metadata", "annotations", _MIRROR) is not None:
        yield FieldError("", FORBIDDEN, "static pods cannot be resized")
        return
    before, after = (_without_resources(pod["spec"]) for pod in (old, new))
    difference = _difference(before, after, "spec")
    if difference:
        text = f"only cpu and memory resources are mutable; this one changes {difference}"
        yield FieldError("spec", FORBIDDEN, text)


def _without_resources(spec: FrozenDict) -> FrozenDict:
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            spec = replaced(spec, (kind,), [replaced(each, ("resources",), None) for each in spec[kind]])
    return spec


def check_status_update(old: FrozenDict, new: FrozenDict) -> Iterator[FieldError]:
    """A container that is not restarted any more does not come back from terminated (STATUS-20)."""
    policy = at(old, "spec", "restartPolicy")
    if policy == "Always" or _decide_themselves(old):
        return
    for field in ("containerStatuses", "initContainerStatuses"):
        after = {each.get("name"): each for each in at(new, "status", field) or ()}
        for index, each in enumerate(at(old, "status", field) or ()):
            terminated = at(each, "state", "terminated")
            if terminated is None or _is_sidecar(old, each["name"]) or each["name"] not in after:
                continue
            final = policy == "Never" or terminated.get("exitCode", 0) == 0
            if final and at(after[each["name"]], "state", "terminated") is None:
                text = "may not be transitioned to non-terminated state"
                yield FieldError(f"status.{field}[{index}].state", FORBIDDEN, text)


def _decide_themselves(pod: FrozenDict) -> bool:
    """Containers of the pod say when they are restarted (KEP-5307): then all of them may be."""
    every = (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
    regular = (each for each in every if not _is_sidecar(pod, each["name"]))
    return any(each.get("restartPolicy") for each in regular)


def _is_sidecar(pod: FrozenDict, name: str) -> bool:
    found = (each for each in pod["spec"].get("initContainers", ()) if each["name"] == name)
    return any(each.get("restartPolicy") == "Always" for each in found)


def _check_deadline(before: int | None, after: int | None) -> Iterator[FieldError]:
    """The deadline may be set, and then only come nearer."""
    path = "spec.activeDeadlineSeconds"
    if after is None:
        if before is not None:
            yield FieldError(path, INVALID, "must not update from a positive integer to nil value")
    elif not 0 <= after <= _INT32_MAX:
        yield FieldError(path, INVALID, f"{after}: must be between 0 and {_INT32_MAX}")
    elif before is not None and after > before:
        yield FieldError(path, INVALID, f"{after}: must be less than or equal to previous value {before}")


def _check_tolerations(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Iterator[FieldError]:
    """Tolerations may be added; of an old one only the seconds may change, where its effect is NoExecute."""
    kept = [_without_seconds(each) for each in after]
    for each in before:
        if _without_seconds(each) not in kept:
            text = "existing toleration can not be modified except its tolerationSeconds"
            yield FieldError("spec.tolerations", FORBIDDEN, text)


def _without_seconds(toleration: dict[str, Any]) -> dict[str, Any]:
    if toleration.get("effect") != "NoExecute":
        return toleration
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _comparable(spec: FrozenDict) -> FrozenDict:
    """The spec without what may change."""
    for field in ("activeDeadlineSeconds", "tolerations"):
        spec = replaced(spec, (field,), None)
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            spec = replaced(spec, (kind,), [replaced(each, ("image",), None) for each in spec[kind]])
    return spec


def _difference(old: object, new: object, path: str) -> str:
    """The path of the first field that differs, or nothing."""
    if old == new:
        return ""
    if is_object(old) and is_object(new):
        for key in [*old, *(key for key in new if key not in old)]:
            found = _difference(old.get(key), new.get(key), f"{path}.{key}")
            if found:
                return found
    if is_array(old) and is_array(new) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            found = _difference(one, other, f"{path}[{index}]")
            if found:
                return found
    return path
