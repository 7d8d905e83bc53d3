"""Starts and stops sandboxes and containers until a pod is as its spec says (`pkg/kubelet/kuberuntime`)."""
