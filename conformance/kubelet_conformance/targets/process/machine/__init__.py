"""What kubelets that are processes take of the machine: ports, file watches, and processors."""
