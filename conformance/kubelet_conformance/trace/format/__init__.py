"""The trace format, version 1: records, header, reader, writer and recorder."""
