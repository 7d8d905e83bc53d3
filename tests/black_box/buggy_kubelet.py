"""`kubelet-reference` with the parts of a seeded bug: the bug's id, then the flags of a kubelet."""

import sys
from functools import partial

from kubelet_bugs import find_bug
from kubelet_reference.kubelet.kubelet import Kubelet
from kubelet_reference.server import command, run

if __name__ == "__main__":
    _, bug, *flags = sys.argv
    setattr(run, "Kubelet", partial(Kubelet, parts=find_bug(bug).parts()))  # noqa: B010 - only here
    sys.exit(command.run(flags))
