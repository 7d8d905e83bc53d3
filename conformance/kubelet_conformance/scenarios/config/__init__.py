"""Pod sources: files, a URL and the API server."""
