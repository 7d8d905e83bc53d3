"""Draws the pictures of the user guide anew: `python docs/pictures/draw.py`, with Chromium on the machine.

The terminal is drawn from what the commands print, the page of a report by Chromium.
"""

import os
import re
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
WIDTH = 140
PAGE_SIZE = 1200, 1240
BREAK = ("run", "PROBE-10", "--scenario", "probes.failing_readiness_never_kills", "--kubelet", "bug:K8S-9649")
KEPT = ("run", "--scenario", "sandbox.killed_sandbox_is_replaced")
TRACE = "traces/sandbox.killed_sandbox_is_replaced.jsonl"


def main() -> None:
    """Draw all of them."""
    with tempfile.TemporaryDirectory() as folder:
        draw_terminal("run", *BREAK)
        printed(*KEPT, "--record", f"{folder}/kept")
        draw_terminal("show", "show", f"{folder}/kept/{TRACE}", "--changes")
        printed(*BREAK, "--record", f"{folder}/broken")
        printed("report", f"{folder}/broken", "--format", "html", "--output", f"{folder}/page.html")
        draw_page("page", Path(folder, "page.html"))


def printed(*arguments: str) -> str:
    """What a command prints into a terminal with colours."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "kubelet_conformance", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:
        raise SystemExit(done.stderr)
    return done.stdout


def draw_terminal(name: str, *arguments: str) -> None:
    """A terminal in which a command was given, as SVG."""
    words = [Path(each).name if each.startswith("/") else each for each in arguments]
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(Text(f"$ kubelet-conformance {' '.join(words)}", style="bold"))
    console.print(Text.from_ansi(printed(*arguments)), soft_wrap=False)
    drawing = console.export_svg(title="kubelet-conformance", unique_id=name)
    # No font from the network.
    drawing = re.sub(r"@font-face \{.*?\}\n", "", drawing, flags=re.DOTALL)
    (HERE / f"{name}.svg").write_text(drawing, encoding="utf-8")


def draw_page(name: str, page: Path) -> None:
    """A page in Chromium, as PNG."""
    width, height = PAGE_SIZE
    command = [
        *("chromium", "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"),
        *(f"--screenshot={HERE / name}.png", page.as_uri()),
    ]
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
