"""Cleanup: dead containers, sandboxes, logs and images, and what housekeeping removes."""
