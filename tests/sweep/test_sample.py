"""A thousand plays of the sweep of all scenarios, on the reference: nothing breaks."""

from itertools import islice
from pathlib import Path

import pytest
from sampling import sampled

from kubelet_conformance.campaigns.sweep.campaign import Sweep
from kubelet_conformance.campaigns.sweep.plan import FaultPattern, Plan
from kubelet_conformance.contract.checking import Check
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice

PARTS = 5
"""The thousand plays are of so many parts, each of its own scenarios."""
PLAYS = 200
"""The plays of one part."""
ONCE_BROKEN = (
    ("admission.labels_of_the_node_decide", "ListPodSandbox#25 lost"),
    ("admission.node_without_memory_takes_who_asks_for_some", "RunPodSandbox#1 not-found"),
    ("admission.refused_pod_is_told_what_the_node_lacks", "RemoveImage#2 refused"),
    ("admission.refused_pod_is_told_what_the_node_lacks", "RemoveImage#3 lost"),
    ("backoff.new_image_ends_the_wait", "CreateContainer#2 late"),
    ("backoff.new_image_ends_the_wait", "StartContainer#4 late"),
    ("bugs.every_instance_has_to_start", "ListPodSandbox#14 kubelet-killed"),
    ("config.bad_answers_of_the_url_change_nothing", "create pods#1 failed"),
    ("config.bad_pod_in_a_list_has_the_list_refused", "patch pods/status#1 kubelet-killed"),
    ("config.changes_wake_a_worker_that_waits", "ListPodSandbox#3 lost"),
    ("ephemeral.ended_and_lost_debuggers_are_left_alone", "StartContainer#3 lost"),
    ("eviction.container_above_its_limit_costs_the_pod", "StopContainer#4 kubelet-killed"),
    ("eviction.ends_are_told_before_records_go", "StartContainer#1 runtime-killed"),
    ("eviction.ends_are_told_before_records_go", "StartContainer#4 kubelet-killed"),
    ("eviction.ends_are_told_before_records_go", "StartContainer#4 late"),
    ("eviction.node_helps_itself_first", "RemoveContainer#1 unavailable"),
    ("eviction.one_pod_at_a_time", "StopPodSandbox#2 kubelet-killed"),
    ("garbage.files_of_a_deleted_pod_go", "patch pods/status#3 unavailable"),
    ("garbage.hook_of_an_unknown_record_finds_its_port", "patch pods/status#6 not-found"),
    ("garbage.nothing_is_kept_of_an_evicted_pod", "StopContainer#1 late"),
    ("garbage.only_so_many_dead_containers_stay", "StartContainer#7 not-found"),
    ("garbage.record_stays_with_its_log", "StartContainer#3 not-found"),
    ("garbage.replaced_sandbox_is_removed", "ContainerStatus#7 refused"),
    ("hooks.http_hook_of_a_manifest", "httpGet /begun#1 lost"),
    ("hooks.sleep_hook_is_part_of_the_grace", "patch pods/status#2 kubelet-killed"),
    ("image_volumes.part_of_an_image_is_mounted", "PullImage#1 failed"),
    ("images.pull_too_many_fails", "ImageStatus#11 kubelet-killed"),
    ("init.init_beside_a_sidecar_fails_or_is_lost", "patch pods/status#10 unavailable"),
    ("init.init_out_of_memory_failed", "StopPodSandbox#1 lost"),
    ("kubelet_restart.deletions_while_down_are_made_up_for", "patch pods/status#4 kubelet-killed"),
    ("kubelet_restart.older_pod_gets_the_port_of_a_running_one", "patch pods/status#3 refused"),
    ("loop.loop_that_stands_still_is_ill", "patch pods/status#2 kubelet-killed"),
    ("phase.ended_pod_stays_ended", "patch pods/status#3 kubelet-killed"),
    ("phase.init_that_cannot_run_again_counts_as_done", "RemoveContainer#1 refused"),
    ("pleg.exit_and_removal_are_noticed", "StartContainer#1 late"),
    ("pleg.newest_record_counts", "CreateContainer#1 late"),
    ("pleg.record_that_goes_while_it_is_inspected", "CreateContainer#1 late"),
    ("resize.container_is_resized_while_it_runs", "UpdateContainerResources#2 lost"),
    ("resize.runtime_is_late", "UpdateContainerResources#8 lost"),
    ("restart.failed_liveness_probe_replaces_a_container", "CreateContainer#3 late"),
    ("restart.foreign_files_among_the_logs", "StartContainer#1 refused"),
    ("restart.new_image_replaces_a_running_container", "ImageStatus#5 not-found"),
    ("restart.unknown_container_is_stopped_and_replaced", "CreateContainer#3 refused"),
    ("restart_rules.exit_code_restarts_the_whole_pod", "StartContainer#1 refused"),
    ("runtime.exec_keeps_its_time", "CreateContainer#4 kubelet-killed"),
    ("runtime_bugs.late_sandbox_is_made_all_the_same", "RunPodSandbox#1 unavailable"),
    ("runtime_bugs.late_sandboxes_keep_no_addresses", "RunPodSandbox#7 refused"),
    ("runtime_bugs.unknown_container_is_stopped_for_good", "StopContainer#1 not-found"),
    ("sandbox.other_network_takes_another_sandbox", "RunPodSandbox#1 lost"),
    ("sandbox.sandbox_without_address_is_replaced", "RunPodSandbox#3 lost"),
    ("sandbox.two_ready_sandboxes_are_one_too_many", "StopPodSandbox#1 not-found"),
    ("sandbox.two_ready_sandboxes_are_one_too_many", "StopPodSandbox#2 late"),
    ("sandbox.two_ready_sandboxes_are_one_too_many", "StopPodSandbox#3 unavailable"),
    ("shutdown.next_group_begins_when_one_is_gone", "StopContainer#3 late"),
    ("shutdown.next_group_waits_for_volumes", "ListPodSandbox#9 kubelet-killed"),
    ("shutdown.shutdown_goes_on_when_all_is_told", "ListPodSandbox#11 kubelet-killed"),
    ("shutdown.shutdown_goes_on_when_all_is_told", "StopPodSandbox#1 kubelet-killed"),
    ("shutdown.shutdown_in_older_versions", "StopPodSandbox#1 lost"),
    ("shutdown.success_stays_what_it_is", "StopPodSandbox#2 kubelet-killed"),
    ("sidecar.reboot_initializes_pods_with_sidecars_anew", "StartContainer#6 runtime-killed"),
    ("sidecar.sidecar_that_cannot_be_made_holds_up_no_other", "patch pods/status#10 lost"),
    ("sidecar.vanished_sidecar_is_made_again", "StartContainer#2 unavailable"),
    ("sidecar_end.sidecars_go_last_and_in_reverse", "ListPodSandbox#26 kubelet-killed"),
    ("start.container_that_could_not_be_started_is_not_used", "patch pods/status#2 unavailable"),
    ("static_pods.edited_manifest_is_another_pod", "delete pods#1 not-found"),
    ("static_pods.edited_manifest_of_an_ended_pod_begins_anew", "create pods#1 not-found"),
    ("status.static_pod_that_comes_back_begins_anew", "StopPodSandbox#2 late"),
    ("sync.each_start_has_its_own_outcome", "ImageStatus#15 not-found"),
    ("sync.pod_without_cgroup_is_killed_once", "StopContainer#2 kubelet-killed"),
    ("sync.pod_without_cgroup_is_killed_once", "StopPodSandbox#3 late"),
    ("termination.failed_kill_is_told_and_tried_again", "StopPodSandbox#1 not-found"),
    ("termination_ways.long_grace_is_waited_for", "StartContainer#1 late"),
    ("termination_ways.new_kubelet_gives_the_whole_grace_again", "ExecSync#2 runtime-killed"),
    ("termination_ways.stranger_to_the_spec_cannot_be_stopped_by_it", "StopPodSandbox#1 refused"),
    ("upgrade.ended_and_failing_pods_are_found_again", "CreateContainer#2 late"),
    ("worker_ends.ended_static_pod_does_not_come_again", "StopPodSandbox#1 kubelet-killed"),
    ("worker_ends.static_pods_come_back_after_their_end", "ListPodSandbox#19 lost"),
    ("worker_ends.version_that_came_and_went_unnoticed_is_never_begun", "ExecSync#11 kubelet-killed"),
    ("worker_updates.crash_loop_goes_on_when_its_back_off_ends", "CreateContainer#3 late"),
    ("workers.leftovers_of_an_ended_pod_are_stopped", "StopContainer#1 late"),
    ("workers.runtime_that_lies_about_a_stop_is_not_believed", "StopContainer#1 kubelet-killed"),
    ("workers.slow_pod_holds_no_other_up", "PodSandboxStatus#1 kubelet-killed"),
)
"""Plays beyond the sample that broke a judge or the reference."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "parts", "plays"),
    [
        (0, 4 * PARTS, PLAYS // 4),
        *(pytest.param(each, PARTS, PLAYS, marks=pytest.mark.campaign) for each in range(PARTS)),
    ],
)
def test_sample_breaks_nothing_new(tmp_path: Path, part: int, parts: int, plays: int) -> None:
    """Each play of the sample applies its fault, and breaks nothing."""
    scenarios = dict(islice(every_scenario().items(), part, None, parts))
    contracts = tuple(every_contract().values())
    sweep = Sweep(Choice(), contracts, scenarios, Plan(sample=plays), Check(contracts), tmp_path)
    sweep.prepare(lambda _: None)
    sweep.run(lambda _: None)
    broken = {f"{each.scenario} {each.blow} {one.what}" for each in sweep.found for one in each.breaks}

    assert (sweep.failed, sweep.played) == ([], plays)
    assert sorted(broken) == []


@pytest.mark.slow
@pytest.mark.parametrize("play", sampled(ONCE_BROKEN, 4), ids=" ".join)
def test_what_broke_once_is_kept(play: tuple[str, str], tmp_path: Path) -> None:
    """A play that broke a judge or the reference before breaks nothing."""
    scenario, fault = play
    scenarios = {scenario: every_scenario()[scenario]}
    plan = Plan((FaultPattern.parse(fault),))
    contracts = tuple(every_contract().values())
    sweep = Sweep(Choice(), contracts, scenarios, plan, Check(contracts), tmp_path)
    sweep.prepare(lambda _: None)
    sweep.run(lambda _: None)

    assert (sweep.played, sweep.found) == (1, [])
