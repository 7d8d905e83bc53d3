"""Injects one fault into a play, and lets happen what belongs to it."""

import asyncio

from kubelet_conformance.campaigns.sweep.kinds import After, Blow, seconds_of
from kubelet_conformance.node import Node
from kubelet_conformance.targets.controls import Effect, Fault
from kubelet_conformance.trace.format.recorder import RecordedCall

_DOWN_SECONDS = 1.0


class Injection:
    """One fault in force on a node, until `close`; it is on the record from the moment when it applies."""

    def __init__(self, node: Node, blow: Blow) -> None:
        self._node = node
        self._blow = blow
        self._fault = blow.kind.fault(blow.point)
        self._text = f"the API server: {self._fault}" if self._fault.is_of_api else str(self._fault)
        self._met = asyncio.Event()
        self._is_healed = False
        control = node.api if self._fault.is_of_api else node.runtime
        self._active = control.inject(self._fault)
        self._active.when_it_applies(self._note)
        self._task = asyncio.create_task(self._go_on(), name="sweep")

    @property
    def applied(self) -> bool:
        """Whether the call came to which it was meant to apply."""
        return self._met.is_set()

    def _note(self) -> None:
        """Put it on the record, before the call that it is about where that is there already."""
        recorder = self._node.target.recorder
        if recorder.records and type(recorder.records[-1]) is RecordedCall:
            recorder.insert(len(recorder.records) - 1, "fault", what=self._text)
        else:
            recorder.record("fault", what=self._text)
        self._met.set()

    async def _go_on(self) -> None:
        """Wait for the call, let happen what comes then, and heal the fault."""
        await self._met.wait()
        kind, seconds = self._blow.kind, seconds_of(self._blow.point)
        if kind.after is After.RECONNECT:
            self._reconnect()
        elif kind.after is After.NOTHING:
            if kind.is_late:
                await self._node.wait(seconds)
            elif self._fault.effect is Effect.LOST_REPLY:
                await self._active.until_holding()
                await self._node.wait(seconds)
        else:
            await self._active.until_holding()
            await (self._kill_kubelet() if kind.after is After.KILL_KUBELET else self._restart_runtime())
            return
        self._heal()

    def _reconnect(self) -> None:
        if self._fault.is_of_api:
            self._node.api.inject(Fault("*", code="0")).heal()
        else:
            self._node.runtime.cut_events()

    async def _kill_kubelet(self) -> None:
        await self._node.kubelet.kill()
        self._heal()
        await self._node.wait(_DOWN_SECONDS)
        await self._node.kubelet.start()

    async def _restart_runtime(self) -> None:
        self._node.runtime.restart()
        self._heal()

    def _heal(self) -> None:
        if not self._is_healed:
            self._is_healed = True
            self._active.heal()
            if self._met.is_set():
                self._node.target.recorder.record("fault", what=f"healed: {self._text}")

    async def close(self) -> None:
        """Let what was begun come to its end, and heal the fault."""
        if self._met.is_set():
            # A call that failed by itself is never held.
            await asyncio.wait([self._task], timeout=2 * seconds_of(self._blow.point))
        self._task.cancel()
        self._heal()
