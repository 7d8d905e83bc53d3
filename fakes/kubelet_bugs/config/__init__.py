"""Bugs in the sources of pods: files, HTTP and the API server, and the mux."""
