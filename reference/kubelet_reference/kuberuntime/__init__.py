"""Brings what the runtime has of a pod to what is wanted of it (upstream: `pkg/kubelet/kuberuntime`)."""
