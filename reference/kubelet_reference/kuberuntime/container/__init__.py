"""One container: its config, its start, its hooks and its stop (upstream: `kuberuntime_container.go`)."""
