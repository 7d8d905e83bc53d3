"""The status of a pod: how it is made, and how it is written.

Upstream: `pkg/kubelet/status` and `kubelet_pods.go`.
"""
