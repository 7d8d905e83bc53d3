"""A kubelet in a process of its own, any kubelet that reads a manifest folder, as a target."""
