"""`python -m kubelet_reference.server`, where the command is not on the path."""

from __future__ import annotations

from kubelet_reference.server import main

main()
