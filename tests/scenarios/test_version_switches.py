"""Each difference between versions shows: flip one switch alone, and a contract is broken."""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

import pytest

from kubelet_conformance.contract.verdicts import Outcome, Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.play import judge, perform
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.in_process import stage
from kubelet_conformance.targets.opening import open_stage
from kubelet_reference.util.versions import Behaviour

pytestmark = pytest.mark.slow


class Shown(NamedTuple):
    """A scenario that shows a switch when it is played as that version, and the contract that tells."""

    scenario: str
    version: str
    contract: str


SHOWN: dict[str, Shown] = {
    "terminal_first_seen_gets_terminated_sync": Shown(
        "workers.pod_sent_as_ended_is_not_started", "1.27", "WORK-29"
    ),
    "terminal_phase_before_deletion": Shown("termination.deleted_pod_goes_step_by_step", "1.27", "TERM-18"),
    "grace_override_is_final": Shown("termination.pre_stop_was_given_its_own_time", "1.26", "TERM-11"),
    "explicit_zero_grace_counts": Shown("workers.forced_deletion_has_a_grace_of_its_own", "1.26", "WORK-08"),
    "hash_is_name_and_image": Shown("backoff.pod_of_the_same_name_begins_anew", "1.31", "RESTART-08"),
    "succeeded_means_exited": Shown("sandbox.what_never_ran_has_not_succeeded", "1.27", "SANDBOX-07"),
    "startup_success_holds_probe": Shown("probes.startup_is_not_asked_twice", "1.28", "PROBE-08"),
    "trigger_restarts_probe_period": Shown("probes.each_probe_has_its_own_cadence", "1.32", "PROBE-23"),
    "reports_started_inits": Shown("container_status.finished_init_stays_so", "1.28", "CSTAT-09"),
    "asks_image_status_before_always_pull": Shown(
        "images.image_is_looked_for_before_it_is_pulled", "1.31", "IMAGE-03"
    ),
    "sends_user_specified_image": Shown("images.policy_decides_who_pulls", "1.32", "IMAGE-16"),
    "keeps_previous_pull_error": Shown("images.failed_pulls_back_off", "1.32", "IMAGE-09"),
    "reports_ready_to_start_containers": Shown("conditions.sandbox_comes_and_goes", "1.29", "COND-06"),
    "app_proves_initialized": Shown("phase.init_that_cannot_run_again_counts_as_done", "1.28", "COND-02"),
    "reports_host_ips": Shown("status.unchanged_status_is_not_written", "1.30", "STATUS-16"),
    "log_names_are_anchored": Shown("restart.foreign_files_among_the_logs", "1.27", "RESTART-15"),
    "reads_pull_errors": Shown("images.well_known_errors_of_a_registry", "1.27", "IMAGE-10"),
    "tells_image_size": Shown("events.life_of_a_pod_is_told", "1.29", "IMAGE-18"),
    "asks_runtime_config": Shown("kubelet_restart.healthy_pod_is_left_alone", "1.28", "CRI-42"),
    "cancels_volume_waits": Shown("worker_ends.deletion_ends_the_wait_for_volumes", "1.27", "WORK-06"),
    "adopts_known_pods": Shown("worker_ends.removal_that_no_worker_was_told_of", "1.27", "WORK-27"),
    "retries_when_backoff_ends": Shown("backoff.delays_double_up_to_the_cap", "1.34", "WORK-16"),
    "keeps_readiness": Shown("probes.readiness_is_kept_over_a_restart_of_the_kubelet", "1.35", "PROBE-25"),
    "stops_sidecars_in_order": Shown("sidecar_end.sidecars_go_last_and_in_reverse", "1.29", "SIDECAR-12"),
    "restarts_changed_sidecars": Shown("sidecar.changed_sidecar_is_replaced", "1.32", "SIDECAR-20"),
    "network_ready_at_once": Shown("conditions.slow_pull_in_a_ready_sandbox", "1.35", "COND-07"),
    "marks_disruptions": Shown("eviction.greediest_pod_goes_and_the_others_stay", "1.26", "COND-08"),
    "evicts_at_once": Shown("eviction.hard_eviction_is_quick", "1.31", "EVICT-03"),
    "shutdown_awaits_volumes": Shown("shutdown.next_group_waits_for_volumes", "1.32", "SHUT-03"),
    "runs_sidecars": Shown("sidecar.sidecars_are_refused_without_their_gate", "1.28", "SIDECAR-01"),
    "resizes_in_place": Shown("resize.container_is_resized_while_it_runs", "1.33", "RESIZE-01"),
    "watches_resizes": Shown("resize.container_is_resized_while_it_runs", "1.33", "PLEG-17"),
    "tells_resize_by_condition": Shown("resize.container_is_resized_while_it_runs", "1.33", "COND-09"),
    "streams_container_events": Shown("pleg_evented.events_drive_the_workers", "1.32", "PLEG-14"),
    "has_restart_rules": Shown("restart_rules.own_policy_overrides_that_of_the_pod", "1.35", "RESTART-19"),
    "restarts_all_containers": Shown("restart_rules.exit_code_restarts_the_whole_pod", "1.36", "RESTART-22"),
    "refuses_api_references": Shown("static_pods.static_pod_may_not_refer_to_the_api", "1.34", "STATIC-22"),
    "sends_stop_signals": Shown("restart_rules.stop_signal_of_its_own", "1.36", "TERM-28"),
    "prepares_resources": Shown("devices.claimed_device_is_prepared_and_given_back", "1.34", "SYNC-18"),
    "mounts_images": Shown("image_volumes.image_is_mounted", "1.35", "IMAGE-20"),
    "checks_pull_credentials": Shown("images.image_of_another_has_to_be_earned", "1.35", "IMAGE-21"),
    "takes_restart_period": Shown("backoff.delays_are_no_longer_than_configured", "1.35", "BACKOFF-11"),
    "restarts_sooner": Shown("backoff.reduced_delays", "1.36", "BACKOFF-11"),
    "reports_observed_generation": Shown("status.generation_is_told", "1.34", "STATUS-18"),
}

SWITCHES = [field.name for field in fields(Behaviour) if field.name != "minor"]


class Flipped:
    """Stands in for `Behaviour`: that of each version, but for one switch."""

    def __init__(self, switch: str) -> None:
        self._switch = switch

    def of(self, version: str, gates: Mapping[str, bool] | None = None) -> Behaviour:
        """The behaviour of a version, with the switch the other way round."""
        right = Behaviour.of(version, gates)
        return replace(right, **{self._switch: not getattr(right, self._switch)})


def trace_of(scenario: str, version: str) -> bytes:
    """What was seen of the reference in that scenario, though a wait of it may have timed out."""
    body = every_scenario()[scenario]
    assert scenario_of(body).is_meant_for(version)
    done = perform(body, scenario, open_stage(Choice()), version)
    assert not done.failed
    return done.trace


def judged(scenario: str, trace: bytes, *contracts: str) -> dict[str, Outcome]:
    """The outcomes of these contracts, of all of them if none is named, by their ids."""
    chosen = [every_contract()[each] for each in contracts or every_contract()]
    found, wrong = judge(Path(scenario), chosen, scenario, trace)
    assert not wrong
    return dict(found.outcomes)


def test_every_switch_has_a_row() -> None:
    """A switch that nothing tests is found here."""
    assert sorted(SHOWN) == sorted(SWITCHES)


@pytest.mark.parametrize("switch", SHOWN)
def test_flipped_switch_breaks_its_contract(monkeypatch: pytest.MonkeyPatch, switch: str) -> None:
    """The contract is kept as the version does it, and broken when this switch alone is flipped."""
    scenario, version, contract = SHOWN[switch]
    right = trace_of(scenario, version)
    monkeypatch.setattr(stage, "Behaviour", Flipped(switch))
    wrong = trace_of(scenario, version)

    verdicts = [judged(scenario, trace, contract)[contract].verdict for trace in (right, wrong)]
    assert verdicts == [Verdict.KEPT, Verdict.BROKEN]
