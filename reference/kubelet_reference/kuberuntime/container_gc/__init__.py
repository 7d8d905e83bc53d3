"""Removes dead containers and sandboxes (upstream: `kuberuntime_gc.go`, `pod_container_deletor.go`)."""
