"""How long things may take: periods of the kubelet, and the slack that a loaded machine gets."""

import re

RETRY = 16.0
"""A failed sync comes again after 10 s times [1.0, 1.5), at the next 1 s tick (pod_workers.go)."""
RETRY_SLACK = 4.0
"""What a loaded machine may add to a retry."""
RESYNC = 95.0
"""A healthy pod is synced again after 60 s times [1.0, 1.5), at the next tick, with slack (WORK-15)."""
RELIST = 1.0
"""Generic PLEG period, counted from the end of a relist (kubelet.go)."""
REACTION = 5.0
"""One relist, one inspection and one sync of a loaded machine: how late a reaction to a change may be."""
HOUSEKEEPING = 2.0
"""Housekeeping period (kubelet.go)."""
ROUNDING = 1.0
"""Times that the API cuts to whole seconds."""
SAME_MOMENT = 0.05
"""Which of two records this close caused the other cannot be decided."""
TOGETHER = 1.0
"""What a kubelet does at one time for several containers begins within this."""
KUBELET_START = 12.0
"""From the kubelet's start to what its first relist and its first housekeeping lead to (1.23: 7.3 s)."""
STATUS_BATCH = 10.0
"""How often the status manager looks for statuses that are still to be written (status_manager.go)."""
RETRY_LEAST = 10.0
"""A failed sync is not repeated earlier of itself (kubelet.go backOffPeriod)."""
GC_PERIOD = 60.0
"""Container garbage collection (kubelet.go)."""
API_POLL = 0.2
"""How late a sampled record of the API may be."""
POSTED = 0.2
"""How late an event may be that a process posts beside what it does (measured: 3 ms)."""
POLLED = 1.0
"""How much later than it was so something may be recorded that is read from time to time."""
STOP_SLACK = 2.0
"""How long a runtime may take to kill and to answer once a stop's timeout is over."""
EXEC_SLACK = 2.0
"""How long a runtime may take to kill and to answer once an ExecSync's timeout is over."""
FILE_POLL = 20.0
"""How often a manifest folder is read where no notification of changes arrives (fileCheckFrequency)."""
CALL_TIMEOUT = 120.0
"""How long the kubelet waits for an answer (runtimeRequestTimeout); some calls get longer."""
LEFT_WORK = 120.0
"""How much longer than its caller waited a runtime may work on what the caller has given up on (CRI-32)."""
_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|µs|ns)")
"""Of a duration as Go writes it."""
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


def seconds_of(text: object) -> float:
    """A duration such as 1m30s or 250ms; a plain number is seconds."""
    found = _PART.findall(str(text))
    return sum(float(number) * _SECONDS[unit] for number, unit in found) if found else float(str(text) or 0)
