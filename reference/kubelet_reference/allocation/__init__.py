"""What the node promises to a pod: admission, resize in place and claims.

Upstream: `pkg/kubelet/allocation`, `lifecycle` and `cm/dra`.
"""
