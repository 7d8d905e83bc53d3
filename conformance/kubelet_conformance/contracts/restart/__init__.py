"""restart."""
