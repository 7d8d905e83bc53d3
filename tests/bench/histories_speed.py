"""How many generated histories are drawn, played and judged in a second of processor time.

python tests/bench/histories_speed.py [--histories N] [--seed S]
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from kubelet_conformance.contracts import every_contract
from kubelet_conformance.histories.playing import play
from kubelet_conformance.histories.seeking import chunks, seek
from kubelet_conformance.targets.stage import Choice

if TYPE_CHECKING:
    from kubelet_conformance.histories.history import History
    from kubelet_conformance.histories.playing import PlayedHistory

PER_SECOND_TARGET = 10
PER_SECOND_AIM = 50


def main() -> int:
    """Measure, print, and return the exit status: 1 where the target is missed."""
    parser = argparse.ArgumentParser(description="How fast are generated histories?")
    parser.add_argument("--histories", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    options = parser.parse_args()

    contracts, choice = list(every_contract().values()), Choice(kubernetes="1.32")
    steps: list[int] = []
    records: list[int] = []
    playing, repeats = 0.0, 0

    def drawn(ended: PlayedHistory | None) -> None:
        nonlocal repeats
        repeats += ended is None

    def played(history: History) -> PlayedHistory:
        nonlocal playing
        began = time.process_time()
        ended = play(history, choice, contracts)
        playing += time.process_time() - began
        steps.append(len(history.steps))
        records.append(ended.judged.trace.records)
        return ended

    began = time.process_time()
    for chunk in chunks(options.histories, options.seed):
        seek(chunk, played, lambda _: (), drawn=drawn)
    took = time.process_time() - began
    count = len(steps)
    rate = (count + repeats) / took
    met = "met" if rate >= PER_SECOND_TARGET else "missed"
    print(f"{count} histories of {sum(steps) / count:.1f} steps and {sum(records) / count:.0f} records each")
    print(f"  were played, and {repeats} drawn again: {count / took:.1f} played, {rate:.1f} drawn")
    print(f"  a second of CPU (target {PER_SECOND_TARGET} drawn: {met}; aim {PER_SECOND_AIM});")
    drawing = (took - playing) / (count + repeats)
    print(f"  {playing / count * 1000:.0f} ms to play and judge one, {drawing * 1000:.1f} to draw it")
    return 0 if rate >= PER_SECOND_TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
