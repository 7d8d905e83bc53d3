"""Values: pods, records and results, questions about them, and what is reported of them.

Upstream: `pkg/kubelet/types`, `pkg/kubelet/container` and `pkg/kubelet/metrics`.
"""
