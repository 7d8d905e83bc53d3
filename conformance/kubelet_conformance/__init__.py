"""Contracts that hold a kubelet, and the container runtime under it, to what Kubernetes promises."""
