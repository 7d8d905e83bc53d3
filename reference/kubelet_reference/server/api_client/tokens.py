"""Tokens of service accounts for volumes, each bound to its pod and renewed before it expires."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.server.api_client.client import ApiClient
from kubelet_reference.server.api_client.json_fields import Json, part, text
from kubelet_reference.util.ports import ApiError, Clock, Random

_DEFAULT_SECONDS = 3600
_RENEWED_AFTER = 0.8
"""The share of a token's life after which another one is asked for."""
_OLDEST_SECONDS = 24 * 3600.0
_JITTER_SECONDS = 10.0

_Key: TypeAlias = tuple[str, str, int]
"""The UID of the pod, the audience and the seconds that were asked for."""


@dataclass(frozen=True, slots=True)
class _Token:
    """A token, and the seconds since the epoch at which it is renewed and expires."""

    text: str
    renew_at: float
    expires_at: float


def service_account(pod: Pod) -> str:
    """The service account of a pod, by name."""
    return pods.spec(pod).serviceAccountName or "default"


def token_request(pod: Pod, audience: str, seconds: int | None) -> Json:
    """The request for a token of a pod's account, bound to the pod; for an hour where nothing is asked."""
    bound = {"kind": "Pod", "apiVersion": "v1", "name": pods.name(pod), "uid": pods.uid(pod)}
    spec = {
        "audiences": [audience] if audience else [],
        "expirationSeconds": seconds or _DEFAULT_SECONDS,
        "boundObjectRef": bound,
    }
    return {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec}


class TokenRequests:
    """Fits the port `ServiceAccountTokens`: asks the API server, and keeps what it gave."""

    def __init__(self, client: ApiClient, clock: Clock, random: Random) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._tokens: dict[_Key, _Token] = {}

    async def get(self, pod: Pod, audience: str, seconds: int | None) -> str:
        """A token that is valid; an older one where no other can be had. Raises `ApiError`."""
        asked_seconds = seconds or _DEFAULT_SECONDS
        key = pods.uid(pod), audience, asked_seconds
        now = self._clock.wall_ns() / 1e9
        kept = self._tokens.get(key)
        if kept is not None and now < kept.renew_at:
            return kept.text
        try:
            found = self._tokens[key] = await self._request(pod, audience, asked_seconds, now)
        except ApiError:
            if kept is not None and now < kept.expires_at:
                return kept.text
            raise
        self._tokens = {key: token for key, token in self._tokens.items() if now < token.expires_at}
        return found.text

    async def _request(self, pod: Pod, audience: str, seconds: int, now: float) -> _Token:
        account = service_account(pod)
        path = f"/api/v1/namespaces/{pods.namespace(pod)}/serviceaccounts/{account}/token"
        status = part(await self._client.create(path, token_request(pod, audience, seconds)), "status")
        token = text(status, "token")
        if not token:
            raise ApiError(0, "BadReply", f"the token request of service account {account} gave no token")
        try:
            expires_at = datetime.fromisoformat(text(status, "expirationTimestamp")).timestamp()
        except ValueError:
            expires_at = now + seconds
        lasts = min(_RENEWED_AFTER * (expires_at - now), _OLDEST_SECONDS)
        # Many pods that came together do not ask together again.
        return _Token(token, now + lasts - self._random.jitter(_JITTER_SECONDS, 1.0) / 2, expires_at)
