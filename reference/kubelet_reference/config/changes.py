"""What kind of change a source's new version of a pod is, compared with its last one.

`CHANGES` is tried from the top, and the first row that fits decides.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import TypeAlias

import msgspec
from lightkube.models.core_v1 import Pod

from kubelet_reference.api import names, pods
from kubelet_reference.util.decision_table import Row, Table

LOCAL = (names.CONFIG_SOURCE, names.CONFIG_SEEN, names.CONFIG_MIRROR)
"""Annotations that are this kubelet's own: no change of the pod, and kept across updates (CONFIG-06)."""


class Op(Enum):
    """What happened to the pods of an update."""

    ADD = auto()
    UPDATE = auto()
    REMOVE = auto()
    RECONCILE = auto()
    DELETE = auto()


Classify: TypeAlias = Callable[[Pod | None, Pod], Op | None]


class Change(msgspec.Struct, frozen=True):
    """How the new version differs from the last one.

    `differs` says whether they ask for different things (CONFIG-05), `deleting` whether the new one asks the
    pod to go.
    """

    differs: bool
    deleting: bool
    other_status: bool


CHANGES = Table[Change, Row[Change, Op | None]](
    Row("deleted", lambda c: c.differs and c.deleting, Op.DELETE),
    Row("changed", lambda c: c.differs, Op.UPDATE),
    Row("other status", lambda c: c.other_status, Op.RECONCILE),
    Row("the same", lambda _: True, None),
)


def classify_change(old: Pod | None, new: Pod) -> Op | None:
    """What kind of change the new version is; the source did not name the pod before where `old` is None."""
    if old is None:
        return Op.ADD
    change = Change(
        differs=_differ_in_meaning(old, new),
        deleting=pods.deletion_asked(new),
        other_status=old.status != new.status,
    )
    return CHANGES.row(change).then


def _differ_in_meaning(old: Pod, new: Pod) -> bool:
    """Whether the pods ask for different things: status and resourceVersion do not count (CONFIG-05)."""
    before, after = pods.metadata(old), pods.metadata(new)
    return (
        before.deletionTimestamp != after.deletionTimestamp
        or before.deletionGracePeriodSeconds != after.deletionGracePeriodSeconds
        or pods.labels(old) != pods.labels(new)
        or _foreign(pods.annotations(old)) != _foreign(pods.annotations(new))
        or old.spec != new.spec
    )


def _foreign(annotations: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in annotations.items() if name not in LOCAL}
