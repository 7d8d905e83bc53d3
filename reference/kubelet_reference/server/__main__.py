"""`python -m kubelet_reference.server`, where the command is not on the path."""

from kubelet_reference.server import main

main()
