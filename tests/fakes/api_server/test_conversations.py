"""What kubelets of 1.26 and 1.32 said to a real API server is answered by the fake one as it was there."""

import json
from pathlib import Path
from typing import Any

import pytest
from on_loop import on_loop
from served_api import ServedApi, served_api

Json = dict[str, Any]
SAID = [
    json.loads(line)
    for line in Path(__file__).with_name("recorded_conversations.jsonl").read_text("utf-8").splitlines()
]
"""One line per request of the kubelet, with the status of its answer; and what a user did in between."""


@pytest.mark.parametrize("kubernetes", ["1.26", "1.32"])
@on_loop
async def test_answers_as_a_real_server(kubernetes: str) -> None:
    """From registration to static pods, tokens and deletions: each request has the status that it had."""
    uids: dict[str, str] = {}
    async with served_api() as api:
        for said in (each for each in SAID if each["kubernetes"] == kubernetes):
            if "user" in said:
                act(api, said, uids)
                continue
            text = json.dumps(said.get("body"))
            for old, new in uids.items():
                text = text.replace(old, new)
            path = said["path"] + query(said)
            kind = "strategic-merge-patch+json" if said["method"] == "PATCH" else "json"
            code, answer = await api.ask(
                said["method"], path, json.loads(text), kind=f"application/{kind}", User_Agent="kubelet"
            )
            assert code == said["status"], (said, answer)
            if "uid" in said:
                uids[said["uid"]] = answer["metadata"]["uid"]


def act(api: ServedApi, said: Json, uids: dict[str, str]) -> None:
    """Create or delete a pod as the user did."""
    if said["user"] == "create":
        made = api.core.create("pods", said["body"])
        uids[said["body"]["metadata"]["uid"]] = made["metadata"]["uid"]
    else:
        api.core.delete("pods", said["name"], grace_seconds=said["grace"])


def query(said: Json) -> str:
    """The query of a request."""
    words = [f"{name}={value}" for name, value in said.get("query", {}).items()]
    return f"?{'&'.join(words)}" if words else ""
