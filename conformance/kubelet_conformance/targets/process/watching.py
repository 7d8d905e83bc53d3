"""Watches a kubelet's pods by its PodList: what it shows of them goes onto the record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import aiohttp

from kubelet_conformance.trace.recorder import Recorder
from kubelet_reference.clocks import LoopClock

Json = dict[str, Any]
_LOOK_SECONDS = 0.1
_ANSWER_SECONDS = 5.0
_OK = 200


class PodWatch:
    """Reads the PodList at `url` ten times a second while `is_running()`; statuses are sampled that way."""

    def __init__(self, url: str, recorder: Recorder, is_running: Callable[[], bool]) -> None:
        self._url = url
        self._recorder = recorder
        self._is_running = is_running
        self._pods: dict[tuple[str, str], Json] = {}
        self._told: dict[str, Json] = {}

    def pod(self, namespace: str, name: str) -> Json | None:
        """The pod as it was last shown; None if it was not in the last list."""
        return self._pods.get((namespace, name))

    def uid(self, namespace: str, name: str) -> str:
        """The UID of a pod that was last shown, "" if it was not."""
        found = self.pod(namespace, name)
        return "" if found is None else str(found["metadata"].get("uid", ""))

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        clock = LoopClock(0)
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                if self._is_running():
                    await self._look(session)
                await clock.sleep(_LOOK_SECONDS)

    async def _look(self, session: aiohttp.ClientSession) -> None:
        """Look once; no answer, or one that is no list, leaves what was seen before."""
        try:
            async with session.get(self._url) as answer:
                found = json.loads(await answer.read()) if answer.status == _OK else None
        except (aiohttp.ClientError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            return
        if isinstance(found, dict):
            self.take(cast("Json", found).get("items") or [])

    def take(self, items: Any) -> None:  # noqa: ANN401 - what a server answered
        """Take a list of pods; a status that has changed goes onto the record."""
        found = cast("list[object]", items) if isinstance(items, list) else []
        pods = [cast("Json", each) for each in found if _is_pod(each)]
        self._pods = {
            (each["metadata"].get("namespace", "default"), each["metadata"]["name"]): each for each in pods
        }
        for (namespace, name), pod in self._pods.items():
            uid = str(pod["metadata"].get("uid", ""))
            status: Json = pod.get("status") or {}
            if self._told.get(uid) == status:
                continue
            self._told[uid] = status
            deletion = pod["metadata"].get("deletionTimestamp")
            self._recorder.record(
                "status", uid=uid, namespace=namespace, name=name, status=status, deletion=deletion
            )


def _is_pod(value: object) -> bool:
    metadata: Any = cast("Json", value).get("metadata") if isinstance(value, dict) else None
    return isinstance(metadata, dict) and isinstance(cast("Json", metadata).get("name"), str)
