"""All scenarios of one pytest run: what came of each, and the report at the end."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kubelet_conformance.contract.baseline import Baseline, BaselineError
from kubelet_conformance.contract.checking import Check
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.plugin.options import OptionsError
from kubelet_conformance.plugin.play import play
from kubelet_conformance.reports.played import Played, PlayedRun
from kubelet_conformance.targets.stage import UnknownTargetError, open_stage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kubelet_conformance.plugin.options import Options

__all__ = ("Session",)


class Session:
    """Plays scenarios and gathers their verdicts; raises OptionsError for what cannot be chosen.

    `folder` is where the traces go, if another process has made it.
    """

    def __init__(self, options: Options, folder: str | None = None) -> None:
        self.options = options
        self.contracts = options.contracts()
        try:
            self._stage = open_stage(options.choice)
        except UnknownTargetError as error:
            raise OptionsError(str(error)) from None
        self.check = Check(self.contracts, self._baseline())
        self.played: list[Played] = []
        self._owns_folder = folder is None and options.record is None
        self.folder = self._traces() if folder is None else Path(folder)

    def _baseline(self) -> Baseline | None:
        if self.options.baseline is None:
            return None
        try:
            return Baseline.read(self.options.baseline, every_contract())
        except BaselineError as error:
            raise OptionsError(str(error)) from None

    def _traces(self) -> Path:
        if self.options.record is None:
            return Path(tempfile.mkdtemp(prefix="kubelet-conformance-"))
        folder = Path(self.options.record, "traces")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionsError(
                f"{self.options.record}: cannot be made: {error.strerror}; name a folder"
            ) from None
        return folder

    def play(self, story: Callable[..., Awaitable[None]], name: str) -> Played:
        """Play one scenario here; `add` is told of it where the report is made."""
        return play(story, name, self._stage, self.contracts, self.folder / f"{name}.jsonl")

    def add(self, played: Played) -> None:
        """Take in what came of a scenario, played here or in another process."""
        self.played.append(played)
        self.check.add(played.judged)

    def run(self) -> PlayedRun:
        """What the report tells of the whole."""
        options = self.options
        return PlayedRun(
            self.check,
            tuple(self.played),
            kubelet=options.choice.kubelet,
            runtime=options.choice.runtime,
            kubernetes=options.choice.kubernetes,
            seed=options.choice.seed,
            again=options.command,
            strict=options.strict,
            require_exercised=options.require_exercised,
            kept=options.record is not None,
        )

    def record(self, report: object) -> None:
        """Write run.json beside the traces, if a record is wanted."""
        if self.options.record is not None:
            text = json.dumps(report, indent=2) + "\n"
            Path(self.options.record, "run.json").write_text(text, encoding="utf-8")

    def close(self) -> None:
        """Remove the traces that nobody asked to keep."""
        if self._owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
