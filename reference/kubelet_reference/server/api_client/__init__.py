"""The API server over HTTP: what a kubelet with a kubeconfig reads there, and what it writes."""
