"""The pod lifecycle event generator: relists and container events."""
