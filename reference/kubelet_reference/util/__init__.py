"""What no room owns: the ports to the world, the settings, versions, clocks and queues.

Upstream: `pkg/kubelet/util` and `pkg/features`.
"""
