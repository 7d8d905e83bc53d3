"""Bugs of the kubelet as a whole: its loop, its restart, its events and metrics."""
