"""Reports for other programs: CI, a pull request, a README, a viewer of traces."""
