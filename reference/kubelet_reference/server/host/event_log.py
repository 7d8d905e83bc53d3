"""Events without an API server: lines of the log, worded as the kubelet words them."""

import json
import logging

from kubelet_reference.api import pods
from kubelet_reference.api.events import WARNING
from kubelet_reference.util.ports import PodEvent

_LOG = logging.getLogger("kubelet_reference.events")


class LoggedEvents:
    """Writes events to the log: warnings always, normal ones from verbosity 2 on."""

    def emit(self, event: PodEvent) -> None:
        """Take the event."""
        fields = {
            "object": pods.key(event.pod),
            "uid": pods.uid(event.pod),
            "fieldPath": event.field_path,
            "kind": "Pod",
            "apiVersion": "v1",
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
        }
        text = " ".join(f"{name}={json.dumps(str(value))}" for name, value in fields.items())
        _LOG.log(logging.WARNING if event.type == WARNING else logging.INFO, '"Event occurred" %s', text)
