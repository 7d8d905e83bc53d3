"""The pod lifecycle event generators and their cache of records.

Upstream: `pkg/kubelet/pleg` and `pkg/kubelet/container/cache.go`.
"""
