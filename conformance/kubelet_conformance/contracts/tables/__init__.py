"""The decision tables by which the suite judges; none is shared with the reference kubelet."""
