"""Brings what the runtime has of a pod to what is wanted of it, in seven steps (SYNC-03).

One pass over a pod goes through these steps in order:

1. **Decide** what is to be done, from the records as they were before the pass. Nothing that happens in the
   pass changes the decision.
2. **Kill the pod** if its sandbox is of no more use, or if nothing of it is left to run: all containers, then
   all sandboxes. If it is to come back, its init containers are forgotten, so that they run again.
3. Otherwise **kill the containers** that are not wanted as they are. Dead init containers are thinned out.
4. **Create the sandbox** if there is none to use, and read its status: containers get its IPs.
5. Start **ephemeral** containers, each at most once in its life.
6. Start the **next init** container, a single one: the rest waits for its end.
7. Start **app** containers, in the order of the spec.

A failed kill (2, 3), a failed sandbox (4) or a failed init container (6) ends the pass (SYNC-05, SYNC-06). A
failed ephemeral or app container keeps no other from being tried (SYNC-04). Every action has its result, and
the pass has failed if one of them has (SYNC-23).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc

from kubelet_reference import pods
from kubelet_reference.backoff import BASE_SECONDS, Backoff
from kubelet_reference.container_hash import container_hash
from kubelet_reference.cri_errors import NoStatus, error_text, wrapped_text
from kubelet_reference.events import Reason
from kubelet_reference.go_text import duration_text, pod_text, quoted
from kubelet_reference.labels import sandbox_record
from kubelet_reference.pod_actions import Situation, compute_actions, sandbox_changed
from kubelet_reference.records import ContainerState
from kubelet_reference.restored import runtime_pod
from kubelet_reference.sandbox_config import sandbox_config
from kubelet_reference.sandbox_ips import ips_of
from kubelet_reference.start_container import PodToStart
from kubelet_reference.sync_result import Action, ActionResult, Failure, StartError, SyncResult
from kubelet_reference.termination import ContainerKill

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cri_api.v1 import api_pb2 as cri
    from lightkube.models.core_v1 import Pod, Secret

    from kubelet_reference.pod_actions import Actions, Kill, SandboxChange
    from kubelet_reference.pods import AnyContainer
    from kubelet_reference.records import ContainerRecord, ListedPod, PodRecords
    from kubelet_reference.results import ProbeOutcome
    from kubelet_reference.runtime_tools import RuntimeTools
    from kubelet_reference.start_container import ContainerStarter
    from kubelet_reference.termination import Terminator
