"""pod_workers."""
