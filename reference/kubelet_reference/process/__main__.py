"""`python -m kubelet_reference.process`, where the command is not on the path."""

from __future__ import annotations

from kubelet_reference.process import main

main()
