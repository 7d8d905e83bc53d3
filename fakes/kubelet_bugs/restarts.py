"""Bugs of the restart of containers: whether, when, and with which number."""

from __future__ import annotations

from typing import Any

from lightkube.models.core_v1 import Container, Pod
from msgspec import structs

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.crash_backoff import CrashBackoff
from kubelet_reference.parts import Parts
from kubelet_reference.pod_actions import ActionRules, Actions, Verdict
from kubelet_reference.pod_files import PodFiles
from kubelet_reference.pods import AnyContainer
from kubelet_reference.records import ContainerRecord, PodRecords
from kubelet_reference.runtime_manager import RuntimeManager
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.start_container import ContainerStarter, PodToStart
from kubelet_reference.sync_input import Situation


class _UnknownIsDead(ActionRules):
    """Starts another instance beside one of which nobody knows whether it runs."""

    def verdict(self, now: Situation, one: Container) -> Verdict:
        return (
            structs.replace(super().verdict(now, one), kill=None)
            if self._is_lost(now, one)
            else (super().verdict(now, one))
        )

    def _is_lost(self, now: Situation, one: Container) -> bool:
        record = now.records.newest(one.name)
        return record is not None and not record.is_running


class _CountsTheDead(ContainerStarter):
    """Numbers an instance by how many dead ones there are."""

    def restarts(self, into: PodToStart, container: AnyContainer) -> int:
        return sum(record.name == container.name and record.has_exited for record in into.records.containers)


class _IgnoresLogs(PodFiles):
    """Does not look into the logs for the number of the last instance."""

    def restarts_in_logs(self, pod: Pod, container: str) -> int:
        return 0


class _GoodEndsAreFree(CrashBackoff):
    """Holds back the restart of failed containers only."""

    def newest_exited(self, container: AnyContainer, records: PodRecords) -> ContainerRecord | None:
        found = super().newest_exited(container, records)
        return found if found is not None and found.exit_code != 0 else None


class _OldestCounts(CrashBackoff):
    """Measures the delay from the end of the oldest instance."""

    def newest_exited(self, container: AnyContainer, records: PodRecords) -> ContainerRecord | None:
        return super().newest_exited(
            container, structs.replace(records, containers=tuple(reversed(records.containers)))
        )


class _HashesAnew(RuntimeManager):
    """Finds another hash than the kubelet before it, for the same definition."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self._seen: dict[str, None] = {}

    def decide(self, pod: Pod, records: PodRecords) -> Actions:
        if pods.uid(pod) not in self._seen:
            self._seen[pods.uid(pod)] = None
            found = tuple(structs.replace(record, hash=f"old-{record.hash}") for record in records.containers)
            records = structs.replace(records, containers=found)
        return super().decide(pod, records)


def _deciding(rules: ActionRules) -> Parts:
    return Parts(runtime=RuntimeParts(compute_actions=rules.compute))


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-73802",
        "A container of unknown state is replaced without having been stopped.",
        lambda: _deciding(_UnknownIsDead()),
        ("RESTART-04",),
        ("K18", "K8S-69060"),
    ),
    Bug(
        "K8S-13103",
        "The restart count falls when dead instances are cleaned up.",
        lambda: Parts(runtime=RuntimeParts(starter=_CountsTheDead)),
        ("RESTART-13",),
        ("K16", "K8S-13320", "K8S-13542", "K8S-12485", "K8S-13517"),
    ),
    Bug(
        "K8S-99748",
        "After the loss of all records instances are numbered from 0, and old logs are written over.",
        lambda: Parts(pod_files=_IgnoresLogs),
        ("RESTART-14",),
        ("K8S-105614",),
    ),
    Bug(
        "K8S-21008",
        "A container that keeps ending well is restarted without any delay.",
        lambda: Parts(runtime=RuntimeParts(crash_backoff=_GoodEndsAreFree)),
        ("BACKOFF-04",),
        ("K8S-57291",),
    ),
    Bug(
        "K8S-22240",
        "The delay of a restart counts from an older instance than the last.",
        lambda: Parts(runtime=RuntimeParts(crash_backoff=_OldestCounts)),
        ("BACKOFF-01", "BACKOFF-03"),
    ),
    Bug(
        "K8S-84443",
        "A new kubelet takes every container for changed and restarts it.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_HashesAnew)),
        ("RESTARTKUBELET-01",),
        (
            "K45",
            "K8S-53644",
            "K8S-124220",
            "K8S-129385",
            "K8S-72296",
            "K8S-23104",
            "K8S-122760",
        ),
    ),
)
