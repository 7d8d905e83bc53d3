"""Container runtimes that are wrong in one named, historical way; `--runtime bug:ID` chooses one."""
