"""Runs the seeded bugs of the zoo, and reports which contracts catch which bug."""
