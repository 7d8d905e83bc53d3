"""Admission: which pods a node takes, evicts, resizes, and ends when it shuts down."""
