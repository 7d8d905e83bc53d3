"""Where pods come from: manifests in files and at a URL, the API server, and the mux that merges them."""

from kubelet_reference.config.api_source import ApiSource
from kubelet_reference.config.changes import Op, classify_change
from kubelet_reference.config.field_errors import FieldError, ManifestError
from kubelet_reference.config.file_source import FileSource
from kubelet_reference.config.http_source import HttpSource
from kubelet_reference.config.manifest import read_pod, read_pods
from kubelet_reference.config.mux import Mux, PodUpdate
from kubelet_reference.config.static_pods import Source, static_pod

__all__ = (
    "ApiSource",
    "FieldError",
    "FileSource",
    "HttpSource",
    "ManifestError",
    "Mux",
    "Op",
    "PodUpdate",
    "Source",
    "classify_change",
    "read_pod",
    "read_pods",
    "static_pod",
)
