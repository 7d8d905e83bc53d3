"""Sandboxes, and how containers are made and started in them."""
