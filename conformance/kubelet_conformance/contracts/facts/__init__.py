"""What contracts know of a node besides what the trace's views hold, by what it is about."""
