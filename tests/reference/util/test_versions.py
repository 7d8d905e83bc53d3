"""Which Kubernetes version has which switch, by a table that was written by hand."""

from dataclasses import fields

import pytest

from kubelet_reference.server.command import OLDEST
from kubelet_reference.util.versions import ON_SINCE, Behaviour

NEWEST = 36
VERSIONS = range(OLDEST, NEWEST + 1)

SINCE: dict[str, int] = {
    "marks_disruptions": 26,
    "adopts_known_pods": 27,
    "cancels_volume_waits": 27,
    "explicit_zero_grace_counts": 27,
    "log_names_are_anchored": 27,
    "reads_pull_errors": 27,
    "succeeded_means_exited": 27,
    "terminal_first_seen_gets_terminated_sync": 27,
    "terminal_phase_before_deletion": 27,
    "app_proves_initialized": 28,
    "asks_runtime_config": 28,
    "reports_started_inits": 28,
    "sends_user_specified_image": 28,
    "startup_success_holds_probe": 28,
    "reports_host_ips": 29,
    "reports_ready_to_start_containers": 29,
    "restarts_changed_sidecars": 29,
    "runs_sidecars": 29,
    "stops_sidecars_in_order": 29,
    "tells_image_size": 29,
    "evicts_at_once": 31,
    "hash_is_name_and_image": 31,
    "keeps_previous_pull_error": 32,
    "shutdown_awaits_volumes": 32,
    "trigger_restarts_probe_period": 32,
    "watches_resizes": 32,
    "resizes_in_place": 33,
    "tells_resize_by_condition": 33,
    "prepares_resources": 34,
    "refuses_api_references": 34,
    "reports_observed_generation": 34,
    "checks_pull_credentials": 35,
    "has_restart_rules": 35,
    "keeps_readiness": 35,
    "mounts_images": 35,
    "retries_when_backoff_ends": 35,
    "takes_restart_period": 35,
    "network_ready_at_once": 36,
    "restarts_all_containers": 36,
}
"""The first minor version that does it, where nobody sets a gate."""

UNTIL: dict[str, int] = {"grace_override_is_final": 27, "asks_image_status_before_always_pull": 31}
"""The last one, of what newer versions do no more."""

NEVER = {"streams_container_events", "restarts_sooner", "sends_stop_signals"}
"""What no version does unless its gate is set."""

GATED: dict[str, str] = {
    "runs_sidecars": "SidecarContainers",
    "reports_ready_to_start_containers": "PodReadyToStartContainersCondition",
    "streams_container_events": "EventedPLEG",
    "prepares_resources": "DynamicResourceAllocation",
    "resizes_in_place": "InPlacePodVerticalScaling",
    "mounts_images": "ImageVolume",
    "takes_restart_period": "KubeletCrashLoopBackOffMax",
    "checks_pull_credentials": "KubeletEnsureSecretPulledImages",
    "reports_observed_generation": "PodObservedGenerationTracking",
    "restarts_sooner": "ReduceDefaultCrashLoopBackOffDecay",
    "sends_stop_signals": "ContainerStopSignals",
    "has_restart_rules": "ContainerRestartRules",
    "refuses_api_references": "PreventStaticPodAPIReferences",
    "restarts_all_containers": "RestartAllContainersOnContainerExits",
}
"""What opens it."""

SWITCHES = [field.name for field in fields(Behaviour) if field.name != "minor"]


def expected(name: str, minor: int) -> bool:
    """What the table says."""
    if name in UNTIL:
        return minor <= UNTIL[name]
    return name not in NEVER and minor >= SINCE[name]


def test_every_switch_has_one_row() -> None:
    """A switch that nobody has dated, or dated twice, is found here."""
    assert sorted([*SINCE, *UNTIL, *NEVER]) == sorted(SWITCHES)


@pytest.mark.parametrize("minor", VERSIONS)
def test_version_has_its_switches(minor: int) -> None:
    """Each version does what the table says, and nothing else."""
    behaviour = Behaviour.of(f"1.{minor}")

    assert {name: getattr(behaviour, name) for name in SWITCHES} == {
        name: expected(name, minor) for name in SWITCHES
    }


@pytest.mark.parametrize("name", GATED)
def test_gate_opens_and_shuts_its_switch(name: str) -> None:
    """A gate that is set decides."""
    gate = GATED[name]
    found = {
        (minor, on): getattr(Behaviour.of(f"1.{minor}", {gate: on}), name)
        for minor in VERSIONS
        for on in (True, False)
    }

    assert found == {(minor, on): on for minor, on in found}


def test_every_gate_has_a_switch() -> None:
    """What opens nothing is no gate of the core."""
    assert ON_SINCE.keys() == set(GATED.values())
