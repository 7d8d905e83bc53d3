"""What the kubelet reports: statuses, phases, conditions, events and metrics."""
