"""The commands, one module each; `record_writer` is the process that `record` starts."""
