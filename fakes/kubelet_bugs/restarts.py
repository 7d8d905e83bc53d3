"""Bugs of the restart of containers: whether, when, and with which number."""

from __future__ import annotations

from typing import Any

from lightkube.models.core_v1 import Container, Pod
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.crash_backoff import CrashBackoff
from kubelet_reference.pod_actions import ActionRules, Actions, Situation, Verdict
from kubelet_reference.pod_files import PodFiles
from kubelet_reference.pods import AnyContainer
from kubelet_reference.records import ContainerRecord, PodRecords
from kubelet_reference.runtime_manager import RuntimeManager
from kubelet_reference.start_container import ContainerStarter, PodToStart


@bug("K8S-73802", breaks="RESTART-04", aliases=("K18", "K8S-69060"))
class UnknownIsDead(ActionRules):
    """A container of unknown state is replaced without having been stopped."""

    def verdict(self, now: Situation, one: Container) -> Verdict:
        return (
            structs.replace(super().verdict(now, one), kill=None)
            if self._is_lost(now, one)
            else (super().verdict(now, one))
        )

    def _is_lost(self, now: Situation, one: Container) -> bool:
        record = now.records.newest(one.name)
        return record is not None and not record.is_running


@bug("K8S-13103", breaks="RESTART-13", aliases=("K16", "K8S-13320", "K8S-13542", "K8S-12485", "K8S-13517"))
class CountsTheDead(ContainerStarter):
    """The restart count falls when dead instances are cleaned up."""

    def restarts(self, into: PodToStart, container: AnyContainer) -> int:
        return sum(record.name == container.name and record.has_exited for record in into.records.containers)


@bug("K8S-99748", breaks="RESTART-14", aliases="K8S-105614")
class IgnoresLogs(PodFiles):
    """After the loss of all records instances are numbered from 0, and old logs are written over."""

    def restarts_in_logs(self, pod: Pod, container: str) -> int:
        return 0


@bug("K8S-21008", breaks="BACKOFF-04", aliases="K8S-57291")
class GoodEndsAreFree(CrashBackoff):
    """A container that keeps ending well is restarted without any delay."""

    def newest_exited(self, container: AnyContainer, records: PodRecords) -> ContainerRecord | None:
        found = super().newest_exited(container, records)
        return found if found is not None and found.exit_code != 0 else None


@bug("K8S-22240", breaks=("BACKOFF-01", "BACKOFF-03"))
class OldestCounts(CrashBackoff):
    """The delay of a restart counts from an older instance than the last."""

    def newest_exited(self, container: AnyContainer, records: PodRecords) -> ContainerRecord | None:
        return super().newest_exited(
            container, structs.replace(records, containers=tuple(reversed(records.containers)))
        )


@bug(
    "K8S-84443",
    breaks="RESTARTKUBELET-01",
    aliases=("K45", "K8S-53644", "K8S-124220", "K8S-129385", "K8S-72296", "K8S-23104", "K8S-122760"),
)
class HashesAnew(RuntimeManager):
    """A new kubelet takes every container for changed and restarts it."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self._seen: dict[str, None] = {}

    def decide(self, pod: Pod, records: PodRecords) -> Actions:
        if pods.uid(pod) not in self._seen:
            self._seen[pods.uid(pod)] = None
            found = tuple(structs.replace(record, hash=f"old-{record.hash}") for record in records.containers)
            records = structs.replace(records, containers=found)
        return super().decide(pod, records)
