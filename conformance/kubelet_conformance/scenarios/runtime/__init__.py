"""The runtime's own obligations."""
