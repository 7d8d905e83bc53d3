"""A minimal but real kubelet core: the executable specification of a pod's life."""
