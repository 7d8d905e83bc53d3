"""What the authors of the toy kubelet ask of kubelets beyond the catalogue."""
