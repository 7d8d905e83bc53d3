"""Reads the form that reports of runs had before there were records, schema 1 and 2."""

import shlex
from pathlib import Path
from typing import Any

from kubelet_conformance.run_record.model import SCHEMA, Kind
from kubelet_conformance.run_record.record import TRACES

_OF_TARGET = ("kubelet", "runtime", "kubernetes", "seed", "address")


def upgraded(document: dict[str, Any]) -> dict[str, Any]:
    """The document in today's form; one that has it already is left as it is."""
    if document["schema"] == SCHEMA:
        return document
    target: dict[str, Any] = document.get("target", {})
    kind = Kind.RUNTIME if "address" in target else Kind.RUN if "scenarios" in document else Kind.CHECK
    baseline = document.get("baseline")
    contracts = [
        {
            **each,
            "area": each["id"].rpartition("-")[0],
            "reasons": [each["reason"]] if each.get("reason") else [],
            "evidence": [{**proof, "trace": _within(proof["trace"])} for proof in each["evidence"]],
        }
        for each in document["contracts"]
    ]
    return {
        **document,
        "schema": SCHEMA,
        "kind": Kind.HISTORIES if "histories" in document else kind,
        "ended": "interrupted" if document.get("incomplete") else "complete",
        "command": shlex.split(document.get("command", "")),
        "target": {name: target[name] for name in _OF_TARGET if name in target},
        "traces": [{**each, "path": _within(each["path"])} for each in target.get("traces", [])],
        "contracts": contracts,
        "scenarios": [{**each, "trace": _within(each["trace"])} for each in document.get("scenarios", [])],
        "waits": [{**each, "trace": _within(each["trace"])} for each in document.get("waits", [])],
        "baseline": None if baseline is None else {**baseline, "matched": []},
    }


def _within(path: str) -> str:
    """A trace as a record names it: it named the folder in which it lay then, too."""
    return f"{TRACES}/{Path(path).name}" if path else ""
