"""Desired pods and their statuses as a kubelet serves them at /pods."""

import ssl
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any

import msgspec

from kubelet_conformance.recording.pod_sources import (
    DesiredPod,
    Look,
    PodKey,
    PodsReadError,
    is_pod,
    kept_status,
)
from kubelet_conformance.trace.format.json_values import Json, is_list, is_object, object_of, text_of
from kubelet_conformance.trace.format.labels import STATIC_SOURCES, Annotation

TIMEOUT_SECONDS = 2.0
"""How long one answer may take."""
_BYTES_MAX = 64 * 1024 * 1024
_NOT_SENT = frozenset({"status"})


class KubeletPods:
    """Asks a kubelet, never through a proxy.

    Args:
        url: Such as http://127.0.0.1:10255/pods.
        node: The node's name, which every static pod's name ends with.
        insecure: Take any certificate.
    """

    gives_status = True

    def __init__(self, url: str, node: str, *, insecure: bool = False) -> None:
        self._url = url
        self._suffix = f"-{node.lower()}"
        context = ssl.create_default_context()
        if insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        self._latest: tuple[bytes, Look] | None = None

    def look(self) -> Look:
        """Ask once."""
        raw = self._asked()
        if self._latest is None or self._latest[0] != raw:
            self._latest = raw, self._found(raw)
        return self._latest[1]

    def _asked(self) -> bytes:
        try:
            with self._opener.open(self._url, timeout=TIMEOUT_SECONDS) as answer:
                raw: bytes = answer.read(_BYTES_MAX + 1)
        except urllib.error.HTTPError as error:
            hopeless = error.code in {401, 403, 404}
            error.close()
            raise PodsReadError(
                f"{self._url}: answers {error.code} {error.reason}", hopeless=hopeless
            ) from None
        except urllib.error.URLError as error:
            certificate = isinstance(error.reason, ssl.SSLCertVerificationError)
            hint = " (--insecure takes any certificate)" if certificate else ""
            raise PodsReadError(f"{self._url}: {error.reason}{hint}", hopeless=certificate) from None
        except (OSError, HTTPException) as error:
            raise PodsReadError(f"{self._url}: {error or type(error).__name__}") from None
        if len(raw) > _BYTES_MAX:
            raise PodsReadError(f"{self._url}: answers with more than {_BYTES_MAX >> 20} MiB", hopeless=True)
        return raw

    def _found(self, raw: bytes) -> Look:
        try:
            value: Any = msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError, ValueError):
            raise PodsReadError(
                f"{self._url}: answers with something that is no JSON", hopeless=True
            ) from None
        items = value.get("items") if is_object(value) and value.get("kind") == "PodList" else ()
        if items is None:
            items = []
        if not is_list(items):
            raise PodsReadError(f"{self._url}: answers with something that is no list of pods", hopeless=True)
        pods = tuple(self._desired(each) for each in items if is_pod(each))
        strange = len(items) - len(pods)
        return Look(pods, (f"{self._url}: {strange} items are no pods",) if strange else ())

    def _desired(self, item: Json) -> DesiredPod:
        meta = object_of(item, "metadata")
        namespace, name = text_of(meta, "namespace") or "default", text_of(meta, "name")
        source = text_of(object_of(meta, "annotations"), Annotation.SOURCE) or "api"
        metadata = {key: value for key, value in meta.items() if key != "managedFields"}
        if source in STATIC_SOURCES:
            # A trace has the manifest's name, to which the kubelet adds that of the node (config/common.go).
            metadata["name"] = name.removesuffix(self._suffix)
        pod = {key: value for key, value in item.items() if key not in _NOT_SENT} | {"metadata": metadata}
        status = kept_status(item)
        if status is not None:
            pod["status"] = status
        key = PodKey(source, namespace, name, text_of(meta, "uid"))
        return DesiredPod(key, pod, object_of(item, "status") or None)
