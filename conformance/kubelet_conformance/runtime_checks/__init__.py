"""Contracts of a container runtime, put to the test by calling it: short stories told at its socket.

A story calls the runtime through a recorder, and the record is judged by the very contracts that judge what a
kubelet and a runtime said to each other. So a rule has one judge.
"""

from __future__ import annotations

from kubelet_conformance.runtime_checks.scenario import Story, story

__all__ = ("Story", "story")
