"""Probes: liveness, readiness and startup."""
