"""The state of the node that a trace has shown so far, and each record in its context."""
