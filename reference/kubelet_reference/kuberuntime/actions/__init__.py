"""The pure decision of a sync: which containers to start and stop, and whether a new sandbox is needed.

Upstream: `computePodActions` in `pkg/kubelet/kuberuntime`.
"""
