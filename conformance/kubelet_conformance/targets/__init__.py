"""Targets: the pairs of kubelet and runtime that scenarios can be played on."""
