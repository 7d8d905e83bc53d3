"""The kubelet as a whole: its assembly, the sync loop and what that hands pods to (`pkg/kubelet`)."""
