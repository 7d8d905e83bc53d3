"""Commands executed in containers."""

from __future__ import annotations

from collections.abc import Container as Holds

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.records import Container
from kubelet_fakes.runtime.script import Execution

#: So many bytes of output are kept, the rest is dropped (CRI-26).
OUTPUT_LIMIT = 16 * 1024 * 1024

_KILLED = 137


class BegunExec:
    """A command that was begun at `begun_ns`; it ends at `ends_at_ns` unless its container ends first.

    `is_cut_short` says whether that is its time limit and not its own end.
    """

    def __init__(
        self,
        container: Container,
        execution: Execution,
        begun_ns: int,
        limit_ns: int | None,
        files: Holds[str],
    ) -> None:
        self.container = container
        self._execution = execution
        self.is_cut_short = limit_ns is not None and execution.takes_ns > limit_ns
        self.ends_at_ns = begun_ns + (
            limit_ns if self.is_cut_short and limit_ns is not None else execution.takes_ns
        )
        self._files = files

    def result(self) -> cri.ExecSyncResponse:
        """The answer; the exit code is part of it, never an error (CRI-26).

        A command that outlasts its timeout is killed: DEADLINE_EXCEEDED. One whose container ended is killed
        with it.
        """
        if not self.container.is_running:
            return cri.ExecSyncResponse(exit_code=_KILLED)
        if self.is_cut_short:
            details = "the command was killed: it outlasted its timeout"
            raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, details)
        code = self._execution.exit_code(self._files)
        return cri.ExecSyncResponse(stdout=self._execution.output[:OUTPUT_LIMIT], exit_code=code)
