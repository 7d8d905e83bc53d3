"""Brings what the runtime has of a pod to what its spec asks for (upstream: `pkg/kubelet/kuberuntime`)."""
