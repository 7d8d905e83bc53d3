"""Let the steps of a history happen, one by one, and tell each in words and as a line of a scenario."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from kubelet_conformance.histories.history import (
    AddAgain,
    BreakRecords,
    Delete,
    DeleteMirror,
    DisturbEvents,
    End,
    Flip,
    ForgetHistory,
    Heal,
    LateWatch,
    Outage,
    Publish,
    Reboot,
    RestartKubelet,
    RestartRuntime,
    Step,
    Strike,
    Update,
    Wait,
    Want,
)
from kubelet_conformance.histories.manifests import in_words, pod_code, with_image
from kubelet_conformance.histories.words import disturbed, ended, struck
from kubelet_conformance.node import Node, PodHandle
from kubelet_conformance.targets.protocols import RuntimeContainer


@dataclass(frozen=True, slots=True)
class Deed:
    """What a step came to: when (s), in words, and as lines of a scenario."""

    at: float
    words: str
    code: tuple[str, ...]


@dataclass(slots=True)
class Wanted:
    """A name under which pods are wanted, one after another.

    Attributes:
        name: the pod's, and the variable's in a scenario, with an underscore.
        manifest: as it was last wanted.
        static: it comes from a file.
        handle: of the latest pod of this name.
        there: the pod is wanted: nobody has asked for its deletion since.
        former: the handles of earlier pods of this name.
    """

    name: str
    manifest: dict[str, Any]
    static: bool
    handle: PodHandle
    there: bool = True
    former: list[PodHandle] = field(default_factory=list["PodHandle"])

    @property
    def variable(self) -> str:
        """What it is called in a scenario."""
        return self.name.replace("-", "_")


class Performance:
    """One history on a node.

    Attributes:
        wanted: every name under which pods were wanted, in order.
        deeds: what has happened.
        missed: container events may have been lost.
    """

    def __init__(self, node: Node, *, evented: bool = False) -> None:
        self._node = node
        self._evented = evented
        self.missed = False
        self.wanted: list[Wanted] = []
        self.deeds: list[Deed] = []
        self._faults = ExitStack()
        self._flipped: dict[str, int] = {}
        self._unpublished: set[str] = set()

    def _did(self, words: str, *code: str) -> None:
        self.deeds.append(Deed(self._node.now, words, code))

    async def perform(self, step: Step) -> None:  # noqa: C901, PLR0912 - one line for each kind of step
        """Let one step happen; nothing, if what it is about is not there."""
        match step:
            case Want():
                self._want(step)
            case AddAgain():
                self._add_again(step)
            case Update():
                self._update(step)
            case Delete():
                self._delete(step)
            case DeleteMirror():
                self._delete_mirror(step)
            case End():
                self._end(step)
            case BreakRecords():
                self._kill_sandbox(step.number)
            case Flip():
                self._flip(step.path, step.status)
            case Publish():
                self._publish(step.image, there=step.there)
            case Strike():
                self._strike(step)
            case Outage():
                self._did("the API server goes away", "faults.enter_context(node.outage())")
                self._faults.enter_context(self._node.outage())
            case LateWatch():
                self._late_watch(step.seconds)
            case ForgetHistory():
                self._did("the watch ends with 410 Gone", "node.forget_history()")
                self._node.forget_history()
            case DisturbEvents():
                self._disturb_events(step)
            case Heal():
                self._heal()
            case Wait():
                self._did(f"{step.seconds:g} s pass", f"await node.wait({step.seconds:g})")
                await self._node.wait(step.seconds)
            case RestartKubelet():
                await self._restart_kubelet(step)
            case RestartRuntime():
                self._did("the runtime restarts", "node.runtime.restart()")
                self._node.runtime.restart()
            case Reboot():
                await self._reboot()

    # Pods.

    def _want(self, step: Want) -> None:
        name = f"pod-{len(self.wanted) + 1}"
        metadata = {**step.manifest["metadata"], "name": name}
        manifest = {**step.manifest, "metadata": metadata}
        self._tell_want(name, manifest, static=step.static, again=False)
        made = self._made(manifest, static=step.static)
        self.wanted.append(Wanted(name, manifest, step.static, made))

    def _made(self, manifest: dict[str, Any], *, static: bool) -> PodHandle:
        return self._node.want_static(manifest) if static else self._node.want(manifest)

    def _tell_want(self, name: str, manifest: dict[str, Any], *, static: bool, again: bool) -> None:
        verb = "want_static" if static else "want"
        source = "static pod" if static else "pod"
        repeated = " again" if again else ""
        self._did(
            f"{source} {name} is wanted{repeated}: {in_words(manifest)}",
            f"{name.replace('-', '_')} = node.{verb}({pod_code(manifest)})",
        )

    def _add_again(self, step: AddAgain) -> None:
        gone = [each for each in self.wanted if not each.there and (each.static or not self._is_stored(each))]
        if not gone:
            return
        one = gone[step.pod % len(gone)]
        self._tell_want(one.name, one.manifest, static=one.static, again=True)
        one.former.append(one.handle)
        one.handle, one.there = self._made(one.manifest, static=one.static), True

    def _is_stored(self, wanted: Wanted) -> bool:
        return self._node.api.get(wanted.handle.namespace, wanted.handle.name) is not None

    def _update(self, step: Update) -> None:
        there = [each for each in self.wanted if each.there and (each.static or self._is_stored(each))]
        if not there:
            return
        one = there[step.pod % len(there)]
        containers = one.manifest["spec"]["containers"]
        container = containers[step.container % len(containers)]["name"]
        one.manifest = with_image(one.manifest, container, step.image)
        if one.static:
            self._tell_want(one.name, one.manifest, static=True, again=True)
            one.handle = self._made(one.manifest, static=True)
            return
        self._did(
            f"the image of {container} of {one.name} becomes {step.image}",
            f'{one.variable}.set_image("{container}", "{step.image}")',
        )
        one.handle.set_image(container, step.image)

    def _delete(self, step: Delete) -> None:
        stored = [each for each in self.wanted if each.there or (not each.static and self._is_stored(each))]
        if not stored:
            return
        one = stored[step.pod % len(stored)]
        one.there = False
        if one.static:
            self._did(f"the file of {one.name} is removed", f'node.manifests.remove("{one.name}.yaml")')
            self._node.manifests.remove(f"{one.name}.yaml")
            return
        told = "" if step.grace is None else f" with a grace of {step.grace} s"
        given = "" if step.grace is None else str(step.grace)
        self._did(f"the deletion of {one.name} is asked for{told}", f"{one.variable}.delete({given})")
        if self._is_stored(one):
            one.handle.delete(step.grace)

    def _delete_mirror(self, step: DeleteMirror) -> None:
        shown = [each for each in self.wanted if each.static and self._is_stored(each)]
        if not shown:
            return
        one = shown[step.pod % len(shown)]
        told = "" if step.grace is None else f" with a grace of {step.grace} s"
        given = "" if step.grace is None else str(step.grace)
        self._did(f"somebody deletes the mirror of {one.name}{told}", f"{one.variable}.delete({given})")
        one.handle.delete(step.grace)

    # What happens in the runtime.

    def _named(self, pod_uid: str) -> Wanted | None:
        """Whose pod that is now, if a scenario can name it."""
        return next((each for each in self.wanted if each.handle.uid == pod_uid), None)

    def _end(self, step: End) -> None:
        running = [each for each in self._newest() if each[1].state == "RUNNING"]
        if not running:
            return
        one, container = running[step.container % len(running)]
        self._did(
            f"{container.name} of {one.name} {ended(step.code, oom=step.oom)}",
            f'node.runtime.oom({one.variable}.container("{container.name}").id)'
            if step.oom
            else f'{one.variable}.exit("{container.name}", {step.code})',
        )
        if step.oom:
            self._node.runtime.oom(container.id)
        else:
            one.handle.exit(container.name, step.code)

    def _newest(self) -> list[tuple[Wanted, RuntimeContainer]]:
        """The newest instance of each container of each pod that a scenario can name."""
        by_name: dict[tuple[str, str], tuple[Wanted, RuntimeContainer]] = {}
        for container in self._node.runtime.containers():
            one = self._named(container.sandbox.pod_uid)
            if one is not None:
                by_name[one.name, container.name] = one, container
        return list(by_name.values())

    def _kill_sandbox(self, number: int) -> None:
        found = [(each, sandboxes) for each in self.wanted if (sandboxes := each.handle.sandboxes())]
        if not found:
            return
        one, sandboxes = found[number % len(found)]
        self._did(
            f"sandbox {sandboxes[-1].attempt} of {one.name} dies",
            f"node.runtime.kill_sandbox({one.variable}.sandbox().id)",
        )
        self._node.runtime.kill_sandbox(sandboxes[-1].id)

    def _flip(self, path: str, status: int) -> None:
        self._did(f"servers answer {status} at {path}", f'node.runtime.answer_http("{path}", {status})')
        self._flipped[path] = status
        self._node.runtime.answer_http(path, status)

    def _publish(self, image: str, *, there: bool) -> None:
        words = f"the registry {'has' if there else 'no longer has'} {image}"
        self._did(words, f'node.runtime.publish_image("{image}", there={there})')
        (self._unpublished.discard if there else self._unpublished.add)(image)
        self._node.runtime.publish_image(image, there=there)

    # Faults.

    def _strike(self, step: Strike) -> None:
        words, arguments = struck(step)
        self._did(words, f"faults.enter_context(node.fault({arguments}))")
        fault = self._node.fault(
            step.rpc, effect=step.effect, code=step.code, times=step.times, delay=step.delay
        )
        self._faults.enter_context(fault)

    def _late_watch(self, seconds: float) -> None:
        self._did(
            f"the API server tells of each change {seconds:g} s later",
            f"faults.enter_context(node.late_watch({seconds:g}))",
        )
        self._faults.enter_context(self._node.late_watch(seconds))

    def _disturb_events(self, step: DisturbEvents) -> None:
        """Nothing, where nobody hears them; the count of an earlier step gives way to the new one."""
        if not self._evented:
            return
        runtime = self._node.runtime
        if step.how == "cut":
            self._did("the stream of container events breaks", "node.runtime.cut_events()")
            runtime.cut_events()
            return
        words, arguments = disturbed(step)
        word, none = f"{step.how}_events", (0, 0) if step.how == "delay" else (0,)
        self._did(
            words,
            f"node.runtime.{word}({arguments})",
            f"faults.callback(node.runtime.{word}, {', '.join(map(str, none))})",
        )
        self.missed = True
        disturb = getattr(runtime, word)
        disturb(step.count, step.seconds) if step.how == "delay" else disturb(step.count)
        self._faults.callback(disturb, *none)

    def _heal(self) -> None:
        self._did("all faults are healed", "faults.close()")
        self._faults.close()

    # The node.

    async def _restart_kubelet(self, step: RestartKubelet) -> None:
        verb, how = ("kill", "is killed") if step.kill else ("stop", "is stopped")
        self._did(
            f"the kubelet {how} and started {step.down:g} s later",
            f"await node.kubelet.{verb}()",
            f"await node.wait({step.down:g})",
            "await node.kubelet.start()",
        )
        await (self._node.kubelet.kill() if step.kill else self._node.kubelet.stop())
        await self._node.wait(step.down)
        await self._node.kubelet.start()

    async def _reboot(self) -> None:
        self._did(
            "the node reboots",
            "await node.kubelet.kill()",
            "node.runtime.reboot()",
            "await node.wait(5)",
            "await node.kubelet.start()",
        )
        await self._node.kubelet.kill()
        self._node.runtime.reboot()
        await self._node.wait(5)
        await self._node.kubelet.start()

    def heal_all(self) -> None:
        """End whatever is wrong with the node: faults, servers that fail, images that are missing."""
        self._heal()
        for path, status in list(self._flipped.items()):
            if status != _OK:
                self._flip(path, _OK)
        for image in sorted(self._unpublished):
            self._publish(image, there=True)


_OK = 200
