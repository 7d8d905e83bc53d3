"""A kubelet's process: started, awaited, stopped, killed, and started again."""

import asyncio
import atexit
import shutil
import signal
from collections.abc import Callable, Sequence
from typing import BinaryIO

import aiohttp

from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.controls import KubeletControl, KubeletEndedError, NotPossibleError
from kubelet_conformance.targets.in_process.kubelet import in_turn, record_start
from kubelet_conformance.targets.kubelet_target.target import KubeletTarget
from kubelet_conformance.targets.patience import reached_despite_stalls
from kubelet_conformance.targets.process.child import Child
from kubelet_conformance.targets.process.kubelet_log import KubeletLog
from kubelet_conformance.targets.process.kubelet_paths import Places
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_reference.server.host.clock import LoopClock

_POLL_SECONDS = 0.05
_ANSWER_SECONDS = 2.0
_OK = 200
_KUBECONFIG = "{kubeconfig}"
"""Arguments with it are left out for a kubelet without an API server."""


class EndedAtStartError(TargetError, KubeletEndedError):
    """It ended by itself before it was ready."""


class ProcessKubelet(KubeletControl):
    """Runs a target's command, one process after another, in the same places.

    Several targets take turns, start by start. `configs` are the texts of their configurations, `kubeconfig`
    of how they find their API server, "" without one.
    It is ready when it is healthy and `missing` says nothing. Listeners in `on_line` receive each line of its
    log. It is killed, with all it started, when this process ends in whatever way.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - a kubelet, its places, and what it is given
        self,
        targets: Sequence[KubeletTarget],
        places: Places,
        configs: Sequence[str],
        recorder: Recorder,
        kubeconfig: str = "",
        missing: Callable[[], str] = str,
    ) -> None:
        self._targets, self._configs = targets, configs
        self._target = targets[0]
        """That of the latest process."""
        self._versions = in_turn([each.kubernetes for each in targets])
        self._places = places
        self._kubeconfig = kubeconfig
        self._missing = missing
        self._recorder = recorder
        self._child: Child | None = None
        self._stopping = False
        self._log: BinaryIO | None = None
        self.log = KubeletLog(recorder)
        self._starts = 0
        self._ended_child: Child | None = None
        self._ending: KubeletEndedError | None = None
        self._watching: asyncio.Task[None] | None = None
        self.died = asyncio.Event()
        """It ended by itself."""
        self.on_line: list[Callable[[bytes], None]] = [self.log.read_line]
        self.prefix: tuple[str, ...] = ()
        """Put before its command."""

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._child is not None and self._child.code is None

    @property
    def pid(self) -> int:
        """The process id of the latest one, 0 before the first."""
        return 0 if self._child is None else self._child.pid

    async def start(self) -> None:
        """Start it, unless it runs, and wait until it is ready.

        One that is started again may be kept from that by a fault: it is waited for as long, and goes on.

        Raises:
            TargetError: It cannot be started, ended, or was not ready in time; the text has its last lines.
        """
        if self.running:
            return
        if self._starts and "restart" not in self._target.capabilities:
            raise NotPossibleError("a kubelet that may be restarted")
        turn = self._starts % len(self._targets)
        self._target = self._targets[turn]
        self._starts += 1
        self._write_config(self._configs[turn])
        self._child = self._spawned()
        self._watching = asyncio.create_task(self._watch(self._child), name="watching the kubelet")
        record_start(self._recorder, self._versions)
        seconds = self._target.start_seconds
        try:
            is_ready, _ = await reached_despite_stalls(self._recorder, self._is_ready_within, seconds)
        except BaseException:
            self._end("killed")
            raise
        if not is_ready and self._starts == 1:
            why = await self._unready()
            self._end("killed")
            raise TargetError(self._with_output(f"was not ready in {seconds:g} s: {why}"))

    def _write_config(self, config: str) -> None:
        places = self._places
        for folder in (places.root, places.logs):
            folder.mkdir(parents=True, exist_ok=True)
        if config:
            places.config.write_text(config, encoding="utf-8")
        if self._kubeconfig:
            places.kubeconfig.write_text(self._kubeconfig, encoding="utf-8")

    def _spawned(self) -> Child:
        given = (each for each in self._target.command if self._kubeconfig or _KUBECONFIG not in each)
        command = [self._places.filled(each) for each in given]
        environment = {key: self._places.filled(each) for key, each in self._target.environment.items()}
        if shutil.which(command[0]) is None:
            raise TargetError(
                f"{self._target.name}: {command[0]}: there is no such program: see to kubelet.command"
            )
        self._log = self._places.log.open("ab")
        self._stopping = False
        try:
            child = Child([*self.prefix, *command], environment, self._hear)
        except OSError as error:
            self._log.close()
            why = error.strerror or str(error)
            raise TargetError(f"{self._target.name}: {command[0]}: cannot be started: {why}") from None
        atexit.register(child.kill)
        return child

    async def _watch(self, child: Child) -> None:
        """Notice its end, if it ends by itself."""
        await child.ended()
        if child is self._child:
            self._note_end(child)

    def _note_end(self, child: Child) -> bool:
        """Whether it has ended by itself, which is recorded once."""
        code = child.code
        if code is None or self._stopping:
            return False
        if self._ended_child is not child:
            self._ended_child = child
            self._ending = KubeletEndedError(self._with_output(f"ended by itself with {_ending(code)}"))
            if code < 0:
                self._recorder.record("kubelet", op="ended", signal=signal.Signals(-code).name)
            else:
                self._recorder.record("kubelet", op="ended", code=code)
            self.died.set()
        return True

    def _hear(self, line: bytes) -> None:
        if self._log is not None and not self._log.closed:
            self._log.write(line + b"\n")
            self._log.flush()
        for listener in self.on_line:
            listener(line)

    async def _is_ready_within(self, seconds: float) -> bool:
        """Whether it is ready before so many seconds are over; EndedAtStartError if it ends."""
        clock, child = LoopClock(0), self._child
        try:
            async with asyncio.timeout(seconds):
                # Whether it answers is asked last, for that takes a connection.
                while self._missing() or not await self.healthy():
                    if child is not None and child.code is not None:
                        how = f"ended with {_ending(child.code)} before it was ready"
                        raise EndedAtStartError(self._with_output(how))
                    await clock.sleep(_POLL_SECONDS)
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """Ask it to end; containers go on. `TargetError` if it does not, and it is killed then."""
        if self._child is None:
            return
        self._note_end(self._child)
        self._stopping = True
        self._child.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._target.stop_seconds):
                await self._child.ended()
        except TimeoutError:
            self._end("killed")
            raise TargetError(
                self._with_output(f"did not end in {self._target.stop_seconds:g} s after SIGTERM")
            ) from None
        except BaseException:
            self._end("killed")
            raise
        self._end("stopped")

    async def kill(self) -> None:
        """End it at once."""
        self._end("killed")

    def _end(self, how: str) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        has_ended = self._note_end(child)
        child.kill()
        atexit.unregister(child.kill)
        if self._log is not None:
            self._log.close()
        if not has_ended:
            self._recorder.record("kubelet", op=how)

    def raise_if_failed(self) -> None:
        """Raise `KubeletEndedError` if it ended by itself."""
        if self._child is not None:
            self._note_end(self._child)
        if self._ending is not None:
            raise self._ending

    async def metrics(self) -> str:
        """What its /metrics says; "" if it does not answer."""
        if "metrics" not in self._target.capabilities:
            raise NotPossibleError("a kubelet that serves metrics")
        return (await self._get(self._target.metrics))[1]

    async def healthy(self) -> bool:
        """What its /healthz says."""
        return self.running and (await self._get(self._target.healthz))[0] == _OK

    async def _unready(self) -> str:
        """What keeps it from being ready, "" if nothing does."""
        if not await self.healthy():
            url = self._places.filled(self._target.healthz)
            return f"{url} did not say ok; let it serve /healthz there, or name its URL in `healthz`"
        missing = self._missing()
        return missing and f"it does not {missing}"

    async def _get(self, template: str) -> tuple[int, str]:
        """The status and the body; status 0 if there is no answer."""
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(self._places.filled(template)) as answer,
            ):
                return answer.status, await answer.text(errors="replace")
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return 0, ""

    def _with_output(self, what: str) -> str:
        """What happened, and what it wrote last."""
        wrote = "\n  ".join(self.log.last_lines()) or "nothing"
        return f"{self._target.name} {what}; it wrote:\n  {wrote}"


def _ending(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
