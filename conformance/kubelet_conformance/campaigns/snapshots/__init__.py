"""What a kubelet does in each scenario, as a text to review: a change of behaviour shows as a difference."""
