"""Facts that several contracts derive from a trace, by the entity they are about."""
