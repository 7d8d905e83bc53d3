"""Whether a container that does not run is to be started again.

Up to 1.33 the pod's policy decides for all of its containers. With the gate ContainerRestartRules a container
may have a policy of its own, and rules that look at its exit code first (KEP-5307, RESTART-19 to RESTART-21):

    the first rule that fits the exit code     Restart: it is started again
    no rule fits                               its own policy, or else the pod's

`RESTARTS` is the table. It is tried from the top, and the first row that fits
decides; why one that runs is stopped is in `running_containers.py`.
"""

import msgspec
from lightkube.models.core_v1 import ContainerRestartRule, Pod

from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerRecord, ContainerState
from kubelet_reference.util.decision_table import Row, Table
from kubelet_reference.util.versions import Behaviour

RESTART, RESTART_ALL = "Restart", "RestartAllContainers"
"""What a rule may ask for: this container again, or all of its pod."""


class Last(msgspec.Struct, frozen=True):
    """What is known of a container's newest instance; `state` is None where there is no record of any.

    `policy` is the one that holds for the container, `has_rule` says that a rule fits the exit code.
    """

    state: ContainerState | None
    deleting: bool = False
    policy: str = pods.ALWAYS
    exit_code: int = 0
    has_rule: bool = False


RESTARTS = Table[Last, Row[Last, bool]](
    Row("B2", lambda c: c.deleting, then=False),
    Row("B1", lambda c: c.state is None, then=True),
    Row("B3", lambda c: c.state is ContainerState.CREATED, then=True),
    Row("B4", lambda c: c.state is ContainerState.UNKNOWN, then=True),
    Row("B9 to B15", lambda c: c.state is ContainerState.RUNNING, then=False),
    Row("B16", lambda c: c.has_rule, then=True),
    Row("B5", lambda c: c.policy == pods.ALWAYS, then=True),
    Row("B6", lambda c: c.policy == pods.ON_FAILURE and c.exit_code != 0, then=True),
    Row("B7, B8", lambda _: True, then=False),
)


def restarts_on_failure(pod: Pod) -> bool:
    """Whether a container that failed is started again: every policy but Never."""
    return pods.restart_policy(pod) != pods.NEVER


def has_own_rules(pod: Pod, container: AnyContainer, behaviour: Behaviour) -> bool:
    """Whether the container says itself when it is started again; what makes a sidecar does not count."""
    if not behaviour.has_restart_rules or container.restartPolicy is None:
        return False
    is_app = any(one.name == container.name for one in pods.containers(pod))
    return is_app or container.restartPolicy != pods.ALWAYS


def policy_of(pod: Pod, container: AnyContainer, behaviour: Behaviour) -> str:
    """The policy that holds for a container: its own, or else the pod's (RESTART-19)."""
    own = container.restartPolicy if has_own_rules(pod, container, behaviour) else None
    return own or pods.restart_policy(pod)


def rule_for(pod: Pod, container: AnyContainer, exit_code: int, behaviour: Behaviour) -> str | None:
    """What the first rule that fits the exit code asks for, None where none does (RESTART-20)."""
    if not has_own_rules(pod, container, behaviour):
        return None
    return next((rule.action for rule in container.restartPolicyRules or () if _fits(rule, exit_code)), None)


def _fits(rule: ContainerRestartRule, exit_code: int) -> bool:
    codes = rule.exitCodes
    return codes is not None and (exit_code in (codes.values or ())) is (codes.operator == "In")


def restarts_after(pod: Pod, container: AnyContainer, exit_code: int, behaviour: Behaviour) -> bool:
    """Whether a container that ended with this code is started again."""
    last = Last(
        ContainerState.EXITED,
        policy=policy_of(pod, container, behaviour),
        exit_code=exit_code,
        has_rule=rule_for(pod, container, exit_code, behaviour) is not None,
    )
    return RESTARTS.row(last).then


def fails_for_good(pod: Pod, container: AnyContainer, exit_code: int, behaviour: Behaviour) -> bool:
    """Whether a failed container never restarts, and with an init container its pod fails (RESTART-21)."""
    is_last = policy_of(pod, container, behaviour) == pods.NEVER
    return is_last and rule_for(pod, container, exit_code, behaviour) is None


def should_restart(
    pod: Pod, container: AnyContainer, record: ContainerRecord | None, behaviour: Behaviour
) -> bool:
    """Whether the container, whose newest record this is, has to be started (RESTART-01..06).

    A pod under deletion starts nothing. A container without a record, or one that never came to run
    (CREATED, UNKNOWN), is started under every policy; one that exited is started as its policy says.
    """
    deleting = pods.deletion_asked(pod)
    if record is not None and record.has_exited and not deleting:
        return restarts_after(pod, container, record.exit_code, behaviour)
    return RESTARTS.row(Last(record.state if record is not None else None, deleting)).then
