"""One worker for each pod UID: its states as a table, and what a sync does.

Upstream: `pkg/kubelet/pod_workers.go`.
"""
