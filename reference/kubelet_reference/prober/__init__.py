"""Probes: when they are due, how they are sent, what their results mean (upstream: `pkg/kubelet/prober`)."""
