"""The sync loop, pod workers, and restarts of the kubelet."""
