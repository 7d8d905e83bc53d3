"""Tokens of service accounts: they say for whom and until when, and nobody signs them."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from kubelet_fakes.api.objects import EMPTY, FrozenDict, at, frozen, rfc3339

_SECOND = 1_000_000_000
_HOUR_SECONDS = 3600
_ISSUER = "https://kubernetes.default.svc.cluster.local"


def issued(body: Mapping[str, Any], namespace: str, account: str, now_ns: int) -> FrozenDict:
    """The TokenRequest with its token, a JWT whose signature is none."""
    spec = body.get("spec") or EMPTY
    lifetime = spec.get("expirationSeconds") or _HOUR_SECONDS
    audiences = spec.get("audiences") or [_ISSUER]
    now = now_ns // _SECOND
    bound = {
        (at(spec, "boundObjectRef", "kind") or "").lower(): {
            key: at(spec, "boundObjectRef", key) for key in ("name", "uid")
        }
    }
    claims = {
        "aud": list(audiences),
        "exp": now + lifetime,
        "iat": now,
        "iss": _ISSUER,
        "kubernetes.io": {
            "namespace": namespace,
            "serviceaccount": {"name": account},
            **{kind: what for kind, what in bound.items() if kind},
        },
        "sub": f"system:serviceaccount:{namespace}:{account}",
    }
    token = ".".join(_part(each) for each in ({"alg": "none", "typ": "JWT"}, claims, {}))
    expires = rfc3339(now_ns + lifetime * _SECOND)
    metadata = {"name": account, "namespace": namespace, "creationTimestamp": rfc3339(now_ns)}
    made: FrozenDict = frozen(
        {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": metadata,
            "spec": {**spec, "audiences": audiences, "expirationSeconds": lifetime},
            "status": {"token": token, "expirationTimestamp": expires},
        }
    )
    return made


def _part(claims: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
