"""The fake runtime served: on a unix socket, and as a servicer for tests without an event loop."""
