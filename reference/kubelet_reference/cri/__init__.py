"""The container runtime as the kubelet sees it: calls, checked replies, and records read from them.

Upstream: `cri-client`, and the readers and labels of `pkg/kubelet/kuberuntime`.
"""
