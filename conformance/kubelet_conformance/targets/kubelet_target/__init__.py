"""Kubelets in processes of their own: binaries, and what target files describe."""
