"""START and WORK: what a container carries through a kubelet's restart, and the pace of a crash loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.contract.frame import KEPT, answered, broken, contract
from kubelet_conformance.contract.needs import CRI, PODS
from kubelet_conformance.contract.versions import ByVersion
from kubelet_conformance.contract.words import call, event, exited
from kubelet_conformance.contracts.backoffs import ATTEMPTS, most_delay, restart_at
from kubelet_conformance.contracts.instances import CALLED_OFF, HELD_UP, asked
from kubelet_conformance.contracts.timing import REACTION, RETRY, RETRY_SLACK
from kubelet_conformance.trace.bodies import Annotation, Label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubelet_conformance.contract.frame import Findings
    from kubelet_conformance.trace.bodies import ContainerConfig
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Pod
