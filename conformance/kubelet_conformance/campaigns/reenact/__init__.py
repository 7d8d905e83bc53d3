"""Do to another kubelet what a recorded trace shows was done to one, and compare what both then did."""
