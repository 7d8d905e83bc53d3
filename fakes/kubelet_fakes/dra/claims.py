"""ResourceClaims at an API server: made, allocated and reserved for the pods that name them (KEP-4381).

On a cluster users make them, or a controller from templates, and the scheduler finds them their devices.
"""

from collections.abc import Iterator
from typing import Any

from kubelet_fakes.api import ApiCore, ApiStatusError, Change
from kubelet_fakes.api.objects import at
from kubelet_fakes.dra.driver import NAME, REQUEST

_CLAIMS = "resourceclaims"


class Claims:
    """Keeps the claims of all pods of this API server, with a device of the driver for each.

    It has to see each change: `core.on_change.append(claims.take)`.
    """

    def __init__(self, core: ApiCore) -> None:
        self._core = core

    def take(self, change: Change) -> None:
        """A pod has come, names a claim that was made for it, or has gone."""
        if change.resource != "pods":
            return
        for name, is_its_own in _names(change.object):
            self._reserve(name, change.object, is_its_own=is_its_own, goes=change.type == "DELETED")

    def _reserve(self, name: str, pod: Any, *, is_its_own: bool, goes: bool) -> None:  # noqa: ANN401 - JSON
        """Let the pod use the claim, or no longer."""
        whom = pod["metadata"]
        claim = self._found(name, whom["namespace"]) or self._made(name, whom, is_its_own=is_its_own)
        before = at(claim, "status", "reservedFor") or ()
        others = [each for each in before if each["uid"] != whom["uid"]]
        uses_it = len(others) < len(before)
        if uses_it is goes:
            mine = {"resource": "pods", "name": whom["name"], "uid": whom["uid"]}
            status = {"allocation": _allocation(name), "reservedFor": others if goes else [*others, mine]}
            self._core.update(_CLAIMS, {**claim, "status": status}, "status")

    def _found(self, name: str, namespace: str) -> Any:  # noqa: ANN401 - JSON
        try:
            return self._core.get(_CLAIMS, name, namespace)
        except ApiStatusError:
            return None

    def _made(self, name: str, whom: Any, *, is_its_own: bool) -> Any:  # noqa: ANN401 - JSON
        """A new claim; what was made from a template for a pod is owned by that."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": whom["name"], "uid": whom["uid"]}
        metadata: dict[str, Any] = {"name": name, "namespace": whom["namespace"]}
        if is_its_own:
            metadata["ownerReferences"] = [{**owner, "controller": True}]
        return self._core.create(_CLAIMS, {"metadata": metadata, "spec": {}}, whom["namespace"])


def _names(pod: Any) -> Iterator[tuple[str, bool]]:  # noqa: ANN401 - JSON
    """The claims of a pod, and whether each was made for it; one that is still to be made has no name."""
    made = {each["name"]: each for each in at(pod, "status", "resourceClaimStatuses") or ()}
    for each in at(pod, "spec", "resourceClaims") or ():
        if each.get("resourceClaimName"):
            yield each["resourceClaimName"], False
        elif made.get(each["name"], {}).get("resourceClaimName"):
            yield made[each["name"]]["resourceClaimName"], True


def _allocation(claim: str) -> dict[str, Any]:
    device = {"request": REQUEST, "driver": NAME, "pool": NAME, "device": claim}
    return {"devices": {"results": [device]}}
