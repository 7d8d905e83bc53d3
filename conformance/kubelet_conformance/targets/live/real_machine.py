"""The machine that a kubelet shares with this process."""

from pathlib import Path

from kubelet_conformance.targets.controls import MachineControl


class RealMachine(MachineControl):
    """Files can be left on its disk, of which `root` is the folder; its measurements cannot be set."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def leave_file(self, path: str) -> None:
        """Put an empty file on the node's disk, as another program might."""
        file = self._root / path.removeprefix("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
