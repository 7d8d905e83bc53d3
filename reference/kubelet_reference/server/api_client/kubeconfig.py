"""Reads a kubeconfig: where the API server is, whom to trust there, and who this kubelet is.

What it names in files is relative to its own folder. Only what a kubelet needs is understood; credentials
that a program has to fetch are refused.
"""

import base64
import binascii
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from kubelet_reference.config.field_errors import ManifestError
from kubelet_reference.server.errors import BadInputError
from kubelet_reference.server.readers import parse

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_CREDENTIALS = "token, tokenFile, or client-certificate with client-key"


class _Fields(msgspec.Struct, frozen=True, rename="kebab"):
    """An object of a kubeconfig; fields that are not listed are not read."""


class _Cluster(_Fields, frozen=True):
    server: str
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _User(_Fields, frozen=True):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""


class _Context(_Fields, frozen=True):
    cluster: str
    user: str = ""


class _NamedCluster(_Fields, frozen=True):
    name: str
    cluster: _Cluster


class _NamedUser(_Fields, frozen=True):
    name: str
    user: _User


class _NamedContext(_Fields, frozen=True):
    name: str
    context: _Context


_Named = TypeVar("_Named", _NamedCluster, _NamedUser, _NamedContext)


class _Kubeconfig(_Fields, frozen=True):
    current_context: str = ""
    clusters: list[_NamedCluster] | None = None
    contexts: list[_NamedContext] | None = None
    users: list[_NamedUser] | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """The way to an API server.

    Attributes:
        path: of the kubeconfig, for messages.
        server: its URL, without a slash at the end; not for logs, as its path may be secret.
        tls: whom to trust and the certificate to show; None without TLS.
        server_name: the name in the server's certificate, "" for the host of the URL.
        token: who this kubelet is, "" where it shows a certificate or the token is in a file; it is sent over
            TLS, and over plain HTTP on this machine only.
        token_file: a file that holds the token, and may be replaced at any time.
    """

    path: str
    server: str
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    token: str = ""
    token_file: Path | None = None

    @property
    def origin(self) -> str:
        """The server's scheme, host and port."""
        parts = urlsplit(self.server)
        return f"{parts.scheme}://{parts.netloc}"

    def bearer(self) -> str:
        """The token as it is now, "" if none is to be sent; raises `OSError` if its file cannot be read."""
        if self.tls is None and urlsplit(self.server).hostname not in _LOOPBACK:
            return ""
        return self.token_file.read_text(encoding="utf-8").strip() if self.token_file else self.token


def read_kubeconfig(path: str) -> Access:
    """The access that the current context of a kubeconfig gives; raises `BadInputError`."""
    try:
        return _access(path, msgspec.convert(parse(Path(path).read_bytes()), _Kubeconfig))
    except OSError as error:
        raise BadInputError(
            f"--kubeconfig: cannot read {error.filename or path}: {error.strerror}: name a file that is there"
        ) from None
    except msgspec.ValidationError as error:
        raise BadInputError(f"--kubeconfig {path}: {error}: name a file as kubectl has it") from None
    except (ManifestError, ValueError) as error:
        raise BadInputError(f"--kubeconfig {path}: {error}") from None


def _access(path: str, given: _Kubeconfig) -> Access:
    """What the file says, checked; raises `ValueError`, and `OSError` for a file that it names."""
    name = given.current_context
    if not name:
        raise ValueError("current-context: not set: name one of the contexts")
    context = _chosen(given.contexts, name, "current-context").context
    cluster = _chosen(given.clusters, context.cluster, f"context {name}: cluster").cluster
    user = _chosen(given.users, context.user, f"context {name}: user").user if context.user else _User()
    folder = Path(path).absolute().parent
    server = _server(cluster)
    has_certificate = bool(user.client_certificate or user.client_certificate_data)
    if not (user.token or user.token_file or has_certificate):
        raise ValueError(f"user {context.user!r} has no credentials: give it {_CREDENTIALS}")
    token_file = folder / user.token_file if user.token_file else None
    access = Access(
        path,
        server,
        _tls(cluster, user, folder) if server.startswith("https:") else None,
        cluster.tls_server_name,
        user.token,
        token_file,
    )
    access.bearer()
    return access


def _chosen(every: Sequence[_Named] | None, name: str, what: str) -> _Named:
    """The entry of this name."""
    for each in every or ():
        if each.name == name:
            return each
    known = ", ".join(each.name for each in every or ()) or "none"
    raise ValueError(f"{what}: there is no {name!r}: there is {known}")


def _server(cluster: _Cluster) -> str:
    parts = urlsplit(cluster.server)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"server: expected a URL such as https://10.0.0.1:6443, got {cluster.server!r}")
    if cluster.proxy_url:
        raise ValueError("proxy-url: proxies are not supported: leave it out")
    return cluster.server.rstrip("/")


def _tls(cluster: _Cluster, user: _User, folder: Path) -> ssl.SSLContext:
    """Trusts the CA that is given, or those of the machine, and shows the client's certificate."""
    context = ssl.create_default_context()
    if cluster.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif cluster.certificate_authority_data or cluster.certificate_authority:
        what = "certificate-authority"
        authority = _content(cluster.certificate_authority_data, cluster.certificate_authority, folder, what)
        context = _trusting(authority)
    certificate = _content(
        user.client_certificate_data, user.client_certificate, folder, "client-certificate"
    )
    if certificate:
        # A kubelet's own file holds the certificate and its key.
        key = _content(user.client_key_data, user.client_key, folder, "client-key") or certificate
        _show(context, certificate, key)
    return context


def _trusting(authority: bytes) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=authority.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ValueError(f"certificate-authority: expected certificates in PEM: {error}") from None


def _content(data: str, path: str, folder: Path, what: str) -> bytes:
    """What is given as data or as a file; data wins."""
    if not data:
        return (folder / path).read_bytes() if path else b""
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{what}-data: expected base64: {error}") from None


def _show(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Show the certificate to the server; the library reads it from files only."""
    with NamedTemporaryFile() as first, NamedTemporaryFile() as second:
        first.write(certificate)
        first.flush()
        second.write(key)
        second.flush()
        try:
            context.load_cert_chain(first.name, second.name)
        except ssl.SSLError as error:
            text = f"expected a certificate in PEM, and its key: {error}"
            raise ValueError(f"client-certificate: {text}") from None
