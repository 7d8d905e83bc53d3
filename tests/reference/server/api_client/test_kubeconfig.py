"""Kubeconfigs: what is read of one, and the one line that says what is wrong with it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubelet_reference.server.api_client.kubeconfig import read_kubeconfig
from kubelet_reference.server.errors import BadInputError

HTTPS = "https://10.0.0.1:6443"


def config(folder: Path, user: Any = None, **cluster: Any) -> str:
    """The path of a kubeconfig with these fields."""
    path = folder / "kubeconfig"
    given = {
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": HTTPS, **cluster}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"} if user is None else user}],
    }
    path.write_bytes(msgspec.yaml.encode(given))
    return str(path)


def refusal(path: str) -> str:
    """What is said against the file, without its name."""
    with pytest.raises(BadInputError) as raised:
        read_kubeconfig(path)
    return str(raised.value).removeprefix(f"--kubeconfig {path}: ")


def test_token_goes_over_tls_or_stays_on_the_machine(tmp_path: Path) -> None:
    """A token in a file is read anew each time; no token goes over plain HTTP to another machine."""
    (tmp_path / "token").write_text("one\n", encoding="utf-8")
    access = read_kubeconfig(config(tmp_path, {"tokenFile": "token"}, **{"insecure-skip-tls-verify": True}))
    first = access.bearer()
    (tmp_path / "token").write_text("two", encoding="utf-8")
    near = read_kubeconfig(config(tmp_path, server="http://127.0.0.1:8080/secret/"))
    far = read_kubeconfig(config(tmp_path, server="http://10.0.0.1:8080"))

    assert (first, access.bearer(), near.bearer(), far.bearer()) == ("one", "two", "t", "")
    assert (near.server, near.origin) == ("http://127.0.0.1:8080/secret", "http://127.0.0.1:8080")


@pytest.mark.parametrize(
    ("user", "cluster", "said"),
    [
        (
            {},
            {},
            "user 'u' has no credentials: give it token, tokenFile, or client-certificate with client-key",
        ),
        ({"token": 1}, {}, "Expected `str`, got `int` - at `$.users[0].user.token`"),
        (
            None,
            {"server": "10.0.0.1"},
            "server: expected a URL such as https://10.0.0.1:6443, got '10.0.0.1'",
        ),
        (None, {"proxy-url": "http://p"}, "proxy-url: proxies are not supported: leave it out"),
        (None, {"certificate-authority-data": "?"}, "certificate-authority-data: expected base64"),
        (None, {"certificate-authority-data": "eA=="}, "certificate-authority: expected certificates in PEM"),
        ({"client-certificate-data": "eA=="}, {}, "client-certificate: expected a certificate in PEM"),
    ],
)
def test_wrong_fields(tmp_path: Path, user: Any, cluster: Any, said: str) -> None:
    """A field that cannot be used is named, with what is to be there."""
    assert refusal(config(tmp_path, user, **cluster)).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not YAML: line 1"),
        ("[]", "Expected `object`, got `array`: name a file as kubectl has it"),
        ("{}", "current-context: not set: name one of the contexts"),
        ("current-context: c\ncontexts: null", "current-context: there is no 'c': there is none"),
        (
            "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\nclusters: []",
            "context c: cluster: there is no 'k': there is none",
        ),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, said: str) -> None:
    """A file that names nothing to use is refused with what there is."""
    path = tmp_path / "kubeconfig"
    path.write_text(text, encoding="utf-8")

    assert refusal(str(path)).startswith(said)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    """The kubeconfig, or the file that it names, is named."""
    absent = config(tmp_path, {"tokenFile": "gone"})

    assert refusal(absent) == (
        f"--kubeconfig: cannot read {tmp_path}/gone: No such file or directory: name a file that is there"
    )
    assert refusal(f"{tmp_path}/none").startswith(f"--kubeconfig: cannot read {tmp_path}/none: ")
