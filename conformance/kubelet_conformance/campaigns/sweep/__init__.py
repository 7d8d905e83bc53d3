"""The fault sweep: every scenario again and again, with one fault at one call each time."""
