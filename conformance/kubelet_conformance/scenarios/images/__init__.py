"""Images: pulls, their back-off, and images as volumes."""
