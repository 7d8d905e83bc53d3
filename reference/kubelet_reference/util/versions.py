"""Where Kubernetes versions differ: feature gates, and one named switch for each difference.

The switches are those of section 28 of the catalogue.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

_TURNED_ON: Mapping[int | None, tuple[str, ...]] = {
    29: (
        "PodReadyToStartContainersCondition",
        "SidecarContainers",
    ),
    33: ("InPlacePodVerticalScaling",),
    34: (
        "DynamicResourceAllocation",
        "PodObservedGenerationTracking",
        "PreventStaticPodAPIReferences",
    ),
    35: (
        "ContainerRestartRules",
        "ImageVolume",
        "KubeletCrashLoopBackOffMax",
        "KubeletEnsureSecretPulledImages",
    ),
    36: ("RestartAllContainersOnContainerExits",),
    None: (
        "ContainerStopSignals",
        "EventedPLEG",
        "ReduceDefaultCrashLoopBackOffDecay",
    ),
}
"""The feature gates that are on by default, by the minor version that first had them on; None has none on."""
ON_SINCE: Mapping[str, int | None] = {gate: minor for minor, gates in _TURNED_ON.items() for gate in gates}
"""The minor version that first had a feature gate on by default; None where none has.

KEP and release numbers are those of section 28 of the catalogue.
"""


USUAL = "1.32"
"""What a kubelet is unless it is said."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the kubelet does that another version does otherwise."""

    minor: int
    terminal_first_seen_gets_terminated_sync: bool
    """WORK-29: a pod first seen with a terminal phase is finished by one terminated sync (>= 1.27)."""
    terminal_phase_before_deletion: bool
    """TERM-16, TERM-18: a deleted pod reaches Failed or Succeeded before its final DELETE (>= 1.27)."""
    grace_override_is_final: bool
    """TERM-06, TERM-11: pod deletion sends its grace verbatim, preStop not taken off, no floor (<= 1.27)."""
    explicit_zero_grace_counts: bool
    """WORK-08: grace 0 asked for explicitly is honoured as 1 s instead of the pod's own grace (>= 1.27)."""
    hash_is_name_and_image: bool
    """RESTART-08: the container hash covers name and image only (>= 1.31)."""
    succeeded_means_exited: bool
    """SANDBOX-07: only an EXITED record with code 0 has succeeded; before 1.27 any that does not run."""
    startup_success_holds_probe: bool
    """PROBE-08: the startup probe's worker rests after success, not only after failure (>= 1.28)."""
    trigger_restarts_probe_period: bool
    """PROBE-23: a readiness run that a status triggered begins the probe's period anew (>= 1.32)."""
    reports_started_inits: bool
    """Statuses of init containers say whether they are started, as recorded traces of 1.32 do (>= 1.28)."""
    asks_image_status_before_always_pull: bool
    """IMAGE-03: ImageStatus is asked even for policy Always (<= 1.31)."""
    sends_user_specified_image: bool
    """IMAGE-16: CreateContainer carries the user's image string too."""
    keeps_previous_pull_error: bool
    """IMAGE-09: the ImagePullBackOff message includes the pull's error (1.32)."""
    reports_ready_to_start_containers: bool
    """COND-06: the condition PodReadyToStartContainers is written (>= 1.29)."""
    app_proves_initialized: bool
    """COND-02: an app container that has run makes Initialized True (>= 1.28)."""
    reports_host_ips: bool
    """STATUS-16: the status has hostIPs beside hostIP (>= 1.29)."""
    log_names_are_anchored: bool
    """RESTART-15: only `<number>.log` is a container's log, not any name that holds such a text (> 1.26)."""
    reads_pull_errors: bool
    """IMAGE-10, START-03: pull errors lose their wrapper, and two well-known ones their prefix (> 1.26)."""
    tells_image_size: bool
    """IMAGE-18: after a pull ImageStatus is asked for the size, which the Pulled event reports (>= 1.29)."""
    asks_runtime_config: bool
    """CRI-42: RuntimeConfig is asked once when the kubelet starts (>= 1.28)."""
    cancels_volume_waits: bool
    """WORK-06: a deletion ends a sync's wait for volumes, which used to end by its limit only (>= 1.27)."""
    adopts_known_pods: bool
    """WORK-27: housekeeping informs workers of pods that config dropped (>= 1.27)."""
    retries_when_backoff_ends: bool
    """WORK-16: the next sync after a crash comes as the back-off ends, but for a jitter (>= 1.35)."""
    keeps_readiness: bool
    """PROBE-25: a restarted kubelet keeps the readiness it finds in the API (>= 1.35)."""
    stops_sidecars_in_order: bool
    """SIDECAR-12: sidecars are stopped after the app containers, the last one first (>= 1.29)."""
    restarts_changed_sidecars: bool
    """SIDECAR-20: a sidecar whose image changed is restarted (>= 1.29)."""
    network_ready_at_once: bool
    """COND-07: PodReadyToStartContainers is set as soon as the sandbox runs, before any pull (>= 1.36)."""
    marks_disruptions: bool
    """COND-08: the end of a pod that the kubelet disrupts has the condition DisruptionTarget (>= 1.26)."""
    evicts_at_once: bool
    """EVICT-03: a hard eviction gives 1 s, a soft one no more than the pod's own grace (>= 1.31)."""
    shutdown_awaits_volumes: bool
    """SHUT-03: the next group of a node's shutdown waits for the volumes of the one before (>= 1.32)."""

    # What feature gates open.
    runs_sidecars: bool
    """SIDECAR-01, gate SidecarContainers."""
    resizes_in_place: bool
    """RESIZE-01, gate InPlacePodVerticalScaling."""
    watches_resizes: bool
    """PLEG-17: after a resize the pod is inspected each second until the change shows (>= 1.32)."""
    tells_resize_by_condition: bool
    """COND-09: conditions report the state of a resize, before 1.33 the field `resize` (>= 1.33)."""
    streams_container_events: bool
    """PLEG-14, gate EventedPLEG."""
    has_restart_rules: bool
    """RESTART-19, gate ContainerRestartRules."""
    restarts_all_containers: bool
    """RESTART-22, gate RestartAllContainersOnContainerExits."""
    refuses_api_references: bool
    """STATIC-22, gate PreventStaticPodAPIReferences."""
    sends_stop_signals: bool
    """TERM-28, gate ContainerStopSignals."""
    prepares_resources: bool
    """SYNC-18, gate DynamicResourceAllocation."""
    mounts_images: bool
    """IMAGE-20, gate ImageVolume."""
    checks_pull_credentials: bool
    """IMAGE-21, gate KubeletEnsureSecretPulledImages."""
    takes_restart_period: bool
    """BACKOFF-11, gate KubeletCrashLoopBackOffMax."""
    restarts_sooner: bool
    """BACKOFF-11, gate ReduceDefaultCrashLoopBackOffDecay: from 1 s up to 60 s."""
    reports_observed_generation: bool
    """STATUS-18, gate PodObservedGenerationTracking."""

    @classmethod
    def of(cls, version: str = USUAL, gates: Mapping[str, bool] | None = None) -> Self:
        """The behaviour of a version such as "1.26", 1.24 or newer, with these feature gates set."""
        minor = int(version.split(".")[1])
        since_26, since_27, since_28, since_29, since_31, since_32, since_33, since_35, since_36 = (
            minor >= each for each in (26, 27, 28, 29, 31, 32, 33, 35, 36)
        )

        def on(gate: str) -> bool:
            usual = ON_SINCE[gate]
            return (gates or {}).get(gate, usual is not None and minor >= usual)

        return cls(
            minor=minor,
            terminal_first_seen_gets_terminated_sync=since_27,
            terminal_phase_before_deletion=since_27,
            grace_override_is_final=not since_28,
            explicit_zero_grace_counts=since_27,
            hash_is_name_and_image=since_31,
            succeeded_means_exited=since_27,
            startup_success_holds_probe=since_28,
            trigger_restarts_probe_period=since_32,
            reports_started_inits=since_28,
            asks_image_status_before_always_pull=not since_32,
            sends_user_specified_image=since_28,
            keeps_previous_pull_error=since_32,
            reports_ready_to_start_containers=on("PodReadyToStartContainersCondition"),
            app_proves_initialized=since_28,
            reports_host_ips=since_29,
            log_names_are_anchored=since_27,
            reads_pull_errors=since_27,
            tells_image_size=since_29,
            asks_runtime_config=since_28,
            cancels_volume_waits=since_27,
            adopts_known_pods=since_27,
            retries_when_backoff_ends=since_35,
            keeps_readiness=since_35,
            stops_sidecars_in_order=since_29,
            restarts_changed_sidecars=since_29,
            network_ready_at_once=since_36,
            marks_disruptions=since_26,
            evicts_at_once=since_31,
            shutdown_awaits_volumes=since_32,
            runs_sidecars=on("SidecarContainers"),
            resizes_in_place=on("InPlacePodVerticalScaling"),
            watches_resizes=since_32,
            tells_resize_by_condition=since_33,
            streams_container_events=on("EventedPLEG"),
            has_restart_rules=on("ContainerRestartRules"),
            restarts_all_containers=on("RestartAllContainersOnContainerExits"),
            refuses_api_references=on("PreventStaticPodAPIReferences"),
            sends_stop_signals=on("ContainerStopSignals"),
            prepares_resources=on("DynamicResourceAllocation"),
            mounts_images=on("ImageVolume"),
            checks_pull_credentials=on("KubeletEnsureSecretPulledImages"),
            takes_restart_period=on("KubeletCrashLoopBackOffMax"),
            restarts_sooner=on("ReduceDefaultCrashLoopBackOffDecay"),
            reports_observed_generation=on("PodObservedGenerationTracking"),
        )
