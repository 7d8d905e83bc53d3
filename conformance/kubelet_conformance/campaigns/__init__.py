"""What plays many scenarios for one answer: coverage, seeded bugs, replayed traces, texts of behaviour."""
