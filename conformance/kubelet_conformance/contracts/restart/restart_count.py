"""RESTART: the attempt number of an instance, and the hash that shows whether its definition changed."""

from msgspec import field

from kubelet_conformance.contract import Container, Moment, Note, Pod, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract, kept_if, observer
from kubelet_conformance.contract.patterns import call, failed
from kubelet_conformance.contracts.facts.container import (
    HASHED,
    REMAKING,
    asked,
    has_records,
    is_hidden,
    put_off,
    recorded,
)
from kubelet_conformance.contracts.facts.disk import is_log, log_names
from kubelet_conformance.trace.format.labels import Annotation
from kubelet_conformance.trace.world.views import Latest


def _attempt_is(m: Moment, expected: int, because: str, earlier: Container | None = None) -> Findings:
    """KEPT if the requested attempt is the expected one, else broken."""
    meta = asked(m).metadata
    if meta.attempt == expected:
        return KEPT
    seq = earlier.create.seq if earlier and earlier.create else None
    return broken(f"{meta.name} is attempt {meta.attempt}, expected {expected}: {because}", seq)


@contract("RESTART-13", on=REMAKING)
def next_number(m: Moment) -> Findings:
    """A new instance has the number of the newest one plus 1."""
    every = m.pod.containers.get(asked(m).metadata.name, ()) if m.pod else ()
    present = [one for one in every if one.state != "removed" and one.sandbox is m.sandbox]
    if not present:
        return None
    # One whose making failed for the kubelet is known from a listing only, which says nothing of its order:
    # made late, it may be the newest.
    if any(asked(m).metadata.attempt == one.attempt + 1 for one in present if one.created_t is None):
        return None
    newest = max(present, key=lambda one: one.attempt)
    if asked(m).metadata.attempt == present[-1].attempt + 1:
        newest = present[-1]  # An earlier number that came to be later.
    return _attempt_is(m, newest.attempt + 1, f"the newest instance is {newest.attempt}", newest)


@next_number.clause("numbered-alike", on=call("CreateContainer"))
def _(m: Moment) -> Findings:
    """The attempt, the annotation restartCount and the name of the log have the same number."""
    config = asked(m)
    name, attempt = config.metadata.name, config.metadata.attempt
    annotated = config.annotations.get(Annotation.RESTART_COUNT, str(attempt))
    if annotated != str(attempt):
        return broken(f"{name} is attempt {attempt} and has annotation restartCount {annotated}")
    if config.log_path != f"{name}/{attempt}.log":
        return broken(f"{name} is attempt {attempt} and logs to {config.log_path}")
    return KEPT


class _Removed(Note):
    """Whether the kubelet has tried to remove it: its log goes before its record, whatever comes of that."""

    was_tried: bool = False


@contract("RESTART-14", on=call("CreateContainer"), needs=(CRI, PODS))
def number_from_the_logs(m: Moment, pod: Pod) -> Findings:
    """Without a record the number is that of the last log file plus 1, and 0 if there is none."""
    name = asked(m).metadata.name
    if not pod.born or pod.set_t is None or pod.finished_before or has_records(pod, name):
        return None
    newest = pod.newest(name)
    if newest is not None and (not newest.vanished or not newest.born or not newest.started_seq):
        return None
    if not all(map(is_log, log_names(m, pod, name))):
        return None  # The effect of foreign files is a rule of its own (RESTART-15).
    if newest is None:
        return _attempt_is(m, 0, "it never had an instance")
    if newest.note(_Removed).was_tried:
        return None
    return _attempt_is(m, newest.attempt + 1, f"instance {newest.attempt} left its log", newest)


@observer(on=call("RemoveContainer"))
def _(_: Moment, container: Container) -> None:
    container.note(_Removed).was_tried = True


def _later_inits(pod: Pod) -> list[str]:
    return [spec.name for spec in (pod.spec.init_containers or ())[1:]] if pod.spec else []


@contract("RESTART-16", on=REMAKING)
def new_sandbox_goes_on_counting(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """In a new sandbox each container goes on counting from its newest instance.

    An init container whose start comes in a later sync than the replacement begins anew: its records and logs
    went with the old sandbox. That is every one but the first, and the first that had to wait for its image
    or its back-off.
    """
    name = asked(m).metadata.name
    newest = pod.newest(name)
    if newest is None or newest.vanished or newest.sandbox is sandbox or is_hidden(m, newest):
        return None
    if newest.state == "removed" and not pod.born:
        return None  # A static pod that came back under its UID: its past was removed with it.
    if newest.state == "removed" and (name in _later_inits(pod) or put_off(m)):
        return None
    if not sandbox.attempt or (newest.sandbox is not None and newest.sandbox.attempt >= sandbox.attempt):
        return None
    return _attempt_is(m, newest.attempt + 1, f"the old sandbox had instance {newest.attempt}", newest)


def _past_is_gone(m: Moment, pod: Pod, name: str) -> bool:
    """The container is an init container, whose records and logs went with the old sandbox."""
    old = pod.newest(name)
    if old is None or old.kind not in {"init", "sidecar"} or old.state != "removed" or old.vanished:
        return False
    return old.sandbox is not m.sandbox and not log_names(m, pod, name)


class _Failed(Note):
    """The attempts that left no record, by container name, and the sandbox they were for."""

    attempts: dict[str, tuple[int, str]] = {}


@contract("RESTART-24", on=call("CreateContainer"))
def tries_do_not_count(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A CreateContainer that left no record is repeated with the same number.

    After a StartContainer that failed the number is 1 more, in the same sandbox. An init container that could
    not be made by the sync which replaced its sandbox begins anew (RESTART-16).
    """
    name = asked(m).metadata.name
    last = pod.note(_Failed).attempts.get(name)
    if last is not None and last[1] == sandbox.id:
        if _past_is_gone(m, pod, name):
            return _attempt_is(m, 0, "its records and logs went with the old sandbox")
        return _attempt_is(m, last[0], "the one before left no record")
    newest = recorded(pod, name)
    if newest is not None and newest.start_failed and newest.sandbox is not None and not is_hidden(m, newest):
        if newest.sandbox is not sandbox and newest.sandbox.state == "ready":
            return broken(f"{name} is made in another sandbox after its start failed")
        return _attempt_is(m, newest.attempt + 1, "the one before could not be started", newest)
    return None


@observer(on=call("CreateContainer"), last=True)
def _(m: Moment, pod: Pod) -> None:
    # Whatever becomes of this one: it may leave a record without an answer.
    pod.note(_Failed).attempts.pop(asked(m).metadata.name, None)


@observer(on=failed("CreateContainer"))
def _(m: Moment, pod: Pod, sandbox: Sandbox) -> None:
    if m.reply.error and not m.reply.effect:
        meta = asked(m).metadata
        pod.note(_Failed).attempts[meta.name] = meta.attempt, sandbox.id


class _Hashes(Note):
    """Of each container of a pod the image and the hash of its newest instance."""

    known: dict[str, tuple[str, str]] = {}


class _HashesOfNode(Note):
    """What containers of any pod have shown of the hash."""

    of_image: Latest[tuple[str, str], str] = field(default_factory=Latest[tuple[str, str], str])
    """The hash of each name and image."""
    of_name: Latest[str, tuple[str, list[str]]] = field(default_factory=Latest[str, tuple[str, list[str]]])
    """By name the hash of the newest container, and its command."""


@contract("RESTART-08", on=call("CreateContainer"), versions=HASHED)
def hash_is_of_name_and_image(m: Moment, pod: Pod) -> Findings:
    """The hash of a container's definition is that of its name and image, and changes with these alone; up to
    1.30 it is that of the whole definition.
    """
    if HASHED.get(m.kubernetes) != "name and image":
        return None
    config = asked(m)
    name, image = config.metadata.name, config.image.user_specified_image
    annotated = config.annotations.get(Annotation.HASH, "")
    known, of_image = pod.note(_Hashes).known, m.node.note(_HashesOfNode).of_image
    last, alike = known.get(name), of_image.get((name, image))
    known[name] = image, annotated
    of_image[name, image] = annotated
    if not image:
        return None
    if alike is not None and alike != annotated:
        return broken(f"{name} has hash {annotated} with image {image}, another one had {alike}")
    if last is None:
        return None if alike is None else KEPT
    if (last[0] == image) != (last[1] == annotated):
        same = "the same" if last[1] == annotated else "another"
        return broken(f"{name} has {same} hash with image {image}, before it was {last[0]}")
    return KEPT


@hash_is_of_name_and_image.clause("definition", on=call("CreateContainer"))
def hash_is_of_the_definition(m: Moment, pod: Pod) -> Findings:
    """Up to 1.30 containers of one name that run other commands have other hashes, whatever their image."""
    if HASHED.get(m.kubernetes) != "definition":
        return None
    config = asked(m)
    name = config.metadata.name
    spec = pod.container_spec(name)
    if spec is None:
        return None
    annotated, runs = config.annotations.get(Annotation.HASH, ""), spec.command or []
    of_name = m.node.note(_HashesOfNode).of_name
    last = of_name.get(name)
    of_name[name] = annotated, runs
    if last is None or last[1] == runs:
        return None
    return kept_if(last[0] != annotated, f"{name} has hash {annotated} as before, and runs another command")
