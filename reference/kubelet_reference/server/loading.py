"""Reads the configuration: the file strictly, then the flags, which win (as in the kubelet)."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias, cast

from kubelet_reference.config.field_errors import FieldError, FieldPath, ManifestError
from kubelet_reference.server.configuration import API_VERSION, FIELDS, FLAGS, KIND, Configuration
from kubelet_reference.server.errors import BadInputError
from kubelet_reference.server.readers import flag_gates, parse
from kubelet_reference.server.unsupported_fields import FOREIGN_FIELDS, FOREIGN_GATES
from kubelet_reference.util.versions import Behaviour

RESTART_PERIOD_GATE = "KubeletCrashLoopBackOffMax"
"""Lets crashLoopBackOff.maxContainerRestartPeriod be set (1.32)."""

ALWAYS_ON = {"PodLifecycleSleepAction": "sleep hooks are always run"}
"""Gates that cannot be closed here, each with the reason."""


GATES_SINCE: Mapping[str, int] = {
    "ContainerRestartRules": 34,
    "ContainerStopSignals": 33,
    "DynamicResourceAllocation": 26,
    "EventedPLEG": 25,
    "ImageVolume": 31,
    "InPlacePodVerticalScaling": 27,
    "KubeletCrashLoopBackOffMax": 32,
    "KubeletEnsureSecretPulledImages": 33,
    "PodLifecycleSleepAction": 29,
    "PodObservedGenerationTracking": 33,
    "PodReadyToStartContainersCondition": 28,
    "PreventStaticPodAPIReferences": 34,
    "ReduceDefaultCrashLoopBackOffDecay": 33,
    "RestartAllContainersOnContainerExits": 35,
    "SidecarContainers": 28,
}
"""The minor version that first had a feature gate."""


def check_gates(gates: Mapping[str, bool], behaviour: Behaviour, place: FieldPath) -> None:
    """Note gates that are unknown, or set to what is not offered."""
    for name, value in gates.items():
        since, here = GATES_SINCE.get(name), place.field(name)
        if since is None and name in FOREIGN_GATES:
            here.wrong("a kubelet has this feature gate, kubelet-reference does not: leave it out")
        elif since is None:
            here.wrong(f"unknown feature gate; known are {', '.join(sorted(GATES_SINCE))}")
        elif behaviour.minor < since:
            here.wrong(f"Kubernetes 1.{behaviour.minor} has no such gate, 1.{since} is the first")
        elif not value and name in ALWAYS_ON:
            here.wrong(f"can only be true in kubelet-reference: {ALWAYS_ON[name]}")


def with_gates(behaviour: Behaviour, gates: Mapping[str, bool]) -> Behaviour:
    """The behaviour as the gates change it."""
    return type(behaviour).of(f"1.{behaviour.minor}", gates)


Values: TypeAlias = dict[str, Any]
"""Clean values by their attribute of `Configuration`."""


def load(path: str | None, flags: Mapping[str, str | int], behaviour: Behaviour) -> Configuration:
    """The configuration in the file at `path`, if one is given, with what the flags change.

    Args:
        path: Of the file, YAML or JSON.
        flags: The value of each flag that was given, by its name without the dashes.
        behaviour: Of the version that decides which feature gates there are.

    Raises:
        BadInputError: Something in the file or in a flag is wrong; all of it is named.
    """
    in_file = _from_file(path, behaviour) if path else Values()
    in_flags = _from_flags(flags, behaviour)
    merged: Values = {**in_file, **in_flags}
    # Gates are merged one by one, everything else is replaced.
    gates = {**in_file.get("feature_gates", {}), **in_flags.get("feature_gates", {})}
    merged["feature_gates"] = gates
    # All of this can only stand in the file.
    _refuse(list(_contradictions(merged, with_gates(behaviour, gates))), f"{path}: ")
    return Configuration(**merged)


def _contradictions(given: Values, behaviour: Behaviour) -> Iterator[FieldError]:
    """What does not go together, each value being fine by itself."""
    found = Configuration(**given)
    if "max_container_restart_period" in given and not behaviour.takes_restart_period:
        yield FieldError(
            "crashLoopBackOff.maxContainerRestartPeriod",
            f"may only be set with the feature gate {RESTART_PERIOD_GATE}: add it to featureGates",
        )
    for signal in sorted(found.eviction_soft.keys() - found.eviction_soft_grace_period.keys()):
        yield FieldError(f"evictionSoft.{signal}", "has no grace period: add one to evictionSoftGracePeriod")
    high, low = found.image_gc_high_threshold, found.image_gc_low_threshold
    if low >= high:
        yield FieldError(
            "imageGCLowThresholdPercent",
            f"must be less than imageGCHighThresholdPercent, got {low} and {high}",
        )


def _from_file(path: str, behaviour: Behaviour) -> Values:
    errors: list[FieldError] = []
    try:
        raw = parse(Path(path).read_bytes())
    except OSError as error:
        raise BadInputError(f"{path}: cannot read the configuration: {error.strerror}") from None
    except ManifestError as error:
        raise BadInputError(f"{path}: {error}") from None
    values = _read_object(raw, FieldPath(errors), behaviour)
    _refuse(errors, f"{path}: ")
    if values.get("static_pod_path"):
        # Relative to the file that says it, as in the kubelet.
        values["static_pod_path"] = str(Path(path).absolute().parent / values["static_pod_path"])
    return values


def _read_object(raw: object, place: FieldPath, behaviour: Behaviour) -> Values:
    if not isinstance(raw, dict):
        place.expected(f"an object of kind {KIND}", raw)
        return {}
    fields = cast("dict[object, object]", raw)
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if fields.get(name) != wanted:
            place.field(name).expected(wanted, fields.get(name))
    values: Values = {}
    for key, value in fields.items():
        known, here = FIELDS.get(str(key)), place.field(str(key))
        if known is not None and value is not None:
            attribute, read = known
            values[attribute] = read(value, here)
        elif known is None and key not in {"apiVersion", "kind"}:
            here.wrong(_unknown(str(key)))
    check_gates(values.get("feature_gates", {}), behaviour, place.field("featureGates"))
    return _with_zeros_filled(values)


def _unknown(name: str) -> str:
    if name in FOREIGN_FIELDS:
        return "a kubelet has this field, kubelet-reference does not: leave it out"
    close = get_close_matches(name, FIELDS, n=1)
    return f"unknown field, did you mean {close[0]}?" if close else "unknown field: leave it out"


def _with_zeros_filled(values: Values) -> Values:
    """The values without those that stand for their default: 0 pods, a burst of 0, no endpoint."""
    standing = ("max_pods", "registry_burst", "runtime_socket", "address", "healthz_address")
    given = {name: value for name, value in values.items() if value is not None}
    return {name: value for name, value in given.items() if value or name not in standing}


def _from_flags(flags: Mapping[str, str | int], behaviour: Behaviour) -> Values:
    errors: list[FieldError] = []
    values: Values = {}
    for name, raw in flags.items():
        attribute, read = FIELDS[FLAGS[name].field]
        take = flag_gates if name == "feature-gates" else read
        values[attribute] = take(raw, FieldPath(errors, f"--{name}"))
    check_gates(values.get("feature_gates", {}), behaviour, FieldPath(errors, "--feature-gates"))
    _refuse(errors, "")
    if values.get("static_pod_path"):
        values["static_pod_path"] = str(Path(values["static_pod_path"]).absolute())
    return _with_zeros_filled(values)


def _refuse(errors: list[FieldError], where: str) -> None:
    if errors:
        raise BadInputError(where + "; ".join(map(str, errors)))
