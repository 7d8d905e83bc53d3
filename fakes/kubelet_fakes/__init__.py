"""Stand-ins for the world around a kubelet: virtual time, a container runtime, an API server, a disk."""
