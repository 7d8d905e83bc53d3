"""Reports of what was judged: to read in a terminal, or as JSON for programs."""
