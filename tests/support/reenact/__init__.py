"""Replays the actions of a recorded trace on another kubelet, and compares what both did."""
