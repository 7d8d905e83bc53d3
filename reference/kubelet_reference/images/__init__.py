"""Images: pulled with credentials, and removed when the disk fills up (upstream: `pkg/kubelet/images`)."""
