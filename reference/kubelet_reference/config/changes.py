"""What kind of change a source's new version of a pod is, compared with its last one.

`CHANGES` is tried from the top, and the first row that fits decides.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import msgspec
from lightkube.models.core_v1 import Pod

from kubelet_reference.api import names, pods

LOCAL = (names.CONFIG_SOURCE, names.CONFIG_SEEN, names.CONFIG_MIRROR)
"""Annotations that are this kubelet's own: no change of the pod, and kept across updates (CONFIG-06)."""


class Op(StrEnum):
    """What happened to the pods of an update."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    REMOVE = "REMOVE"
    RECONCILE = "RECONCILE"
    DELETE = "DELETE"


Classify: TypeAlias = Callable[[Pod | None, Pod | None], Op | None]


class Change(msgspec.Struct, frozen=True):
    """How the new version differs from the last one.

    `known` and `named` say whether the last and the new one name the pod at all, `differs` whether they ask
    for different things (CONFIG-05), and `deleting` whether the new one asks it to go.
    """

    known: bool = True
    named: bool = True
    differs: bool = False
    deleting: bool = False
    other_status: bool = False


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A row of the table: where `when` holds, `op` is what happened, None being nothing."""

    name: str
    when: Callable[[Change], bool]
    op: Op | None


CHANGES = (
    ChangeRow("never there", lambda c: not c.known and not c.named, None),
    ChangeRow("dropped", lambda c: not c.named, Op.REMOVE),
    ChangeRow("new", lambda c: not c.known, Op.ADD),
    ChangeRow("deleted", lambda c: c.differs and c.deleting, Op.DELETE),
    ChangeRow("changed", lambda c: c.differs, Op.UPDATE),
    ChangeRow("other status", lambda c: c.other_status, Op.RECONCILE),
    ChangeRow("the same", lambda _: True, None),
)


def classify_change(old: Pod | None, new: Pod | None) -> Op | None:
    """What kind of change the new version is; None is a pod that the source does not name."""
    change = _change(old, new)
    return next(row.op for row in CHANGES if row.when(change))


def _change(old: Pod | None, new: Pod | None) -> Change:
    if old is None or new is None:
        return Change(known=old is not None, named=new is not None)
    return Change(
        differs=_differ_in_meaning(old, new),
        deleting=pods.deletion_asked(new),
        other_status=old.status != new.status,
    )


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
