"""Campaigns play many scenarios for one answer: coverage, seeded bugs, replayed traces, snapshots."""
