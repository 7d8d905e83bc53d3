"""Containers that run before the others or beside them: init, sidecar and ephemeral containers."""
