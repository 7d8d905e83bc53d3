"""Redaction: takes secrets out of traces: values of environment variables, credentials, process output.

Where secrets are is known from the types of the CRI messages (`cri_secrets`) and from the shape of
manifests and statuses (`api_secrets`). A secret becomes a keyed digest, so that equal secrets are equal
within one trace and judges that compare them still work; a reader who has the trace alone cannot test
guesses, for the key is thrown away with the process that wrote it.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections import OrderedDict
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

from kubelet_conformance.trace.format.json_values import is_list, is_object

REMEMBERED_SECRETS = 2_000
"""How many of the latest secrets are looked for in texts such as error messages."""
SECRET_CHARS_MIN = 6
"""A shorter secret is not looked for in texts: it may be part of any word."""

_DIGEST_BYTES = 8
_WHOLE_TOKEN = re.compile(r"redacted:[0-9a-f]{16}")
_NAME = r"(?:password|passwd|passphrase|secret|token|credential|api[-_]?key|access[-_]?key|private[-_]?key)s?"
_IN_TEXT = (
    re.compile(r"(?P<before>://[^/\s:@\"']*:)(?P<secret>[^/\s@\"']+)(?=@)"),
    re.compile(r"(?i)(?P<before>\b(?:bearer|basic)\s+)(?P<secret>(?!redacted:)[a-z0-9+/=._~-]{8,})"),
    re.compile(rf"(?i)(?P<before>{_NAME}[\w.-]*=[\"']?)(?P<secret>(?!\$)[^\s\"'&,;]+)"),
    re.compile(rf"(?i)(?P<before>{_NAME}[\w.-]*[\"']\s*:\s*[\"'])(?P<secret>(?!\$)[^\"']+)"),
)
"""What is a secret by what stands before it: in a URL, in a header, behind a name such as `password`."""
_FLAG = re.compile(rf"(?i)--?[\w.-]*{_NAME}[\w.-]*")
"""An argument whose next one is a secret."""


class Redactor:
    """Puts a digest in the place of each secret.

    Args:
        key: At least 16 random bytes, one key for all that is to be compared with each other. Never kept.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._secrets: OrderedDict[str, None] = OrderedDict()
        self._longest_first: list[str] | None = []

    def digest(self, value: str) -> str:
        """What is written in the place of a secret; empty stays empty, and a digest stays itself."""
        if not value or _WHOLE_TOKEN.fullmatch(value):
            return value
        made = blake2b(value.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES, key=self._key)
        return f"redacted:{made.hexdigest()}"

    def output(self, encoded: Any) -> Any:  # noqa: ANN401 - what should be a text
        """What a process printed, in base64 as protobuf's JSON has bytes; texts may quote it later."""
        if not isinstance(encoded, str):
            return self.everything(encoded)
        try:
            text = b64decode(encoded, validate=True).decode("utf-8", "replace").strip()
        except (Base64Error, ValueError):
            text = encoded
        self.remember((text,))
        return b64encode(self.digest(text).encode()).decode()

    def remember(self, found: Iterable[str]) -> None:
        """Look for these secrets in texts from now on."""
        for secret in found:
            if len(secret) < SECRET_CHARS_MIN or _WHOLE_TOKEN.fullmatch(secret):
                continue
            if secret not in self._secrets:
                self._longest_first = None
            self._secrets[secret] = None
            self._secrets.move_to_end(secret)
        while len(self._secrets) > REMEMBERED_SECRETS:
            self._secrets.popitem(last=False)
            self._longest_first = None

    def text(self, text: str) -> str:
        """A text for people, or a word of a command, without the secrets in it."""
        if self._longest_first is None:
            self._longest_first = sorted(self._secrets, key=len, reverse=True)
        for secret in self._longest_first:
            if secret in text:
                text = text.replace(secret, self.digest(secret))
        for pattern in _IN_TEXT:
            text = pattern.sub(self._in_place, text)
        return text

    def _in_place(self, found: re.Match[str]) -> str:
        return f"{found['before']}{self.digest(found['secret'])}"

    def words(self, command: Any) -> Any:  # noqa: ANN401 - what should be a list of words
        """A command line without the secrets in it; the value of a flag such as `--password` is one."""
        if not is_list(command):
            return self.everything(command)
        made: list[Any] = []
        secret = False
        for word in command:
            if not isinstance(word, str):
                made.append(self.everything(word))
            elif secret and not word.startswith(("-", "$")):
                made.append(self.digest(word))
            else:
                made.append(self.text(word))
            secret = isinstance(word, str) and _FLAG.fullmatch(word) is not None
        return made

    def everything(self, value: Any) -> Any:  # noqa: ANN401 - a JSON value has any type
        """Every string in a value whose meaning is not known; names of fields stay."""
        return _in_strings(value, self.digest)

    def texts(self, value: Any) -> Any:  # noqa: ANN401 - a JSON value has any type
        """Every string in the value as a text."""
        return _in_strings(value, self.text)


def _in_strings(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - a JSON value has any type
    if isinstance(value, str):
        return change(value)
    if is_list(value):
        return [_in_strings(inner, change) for inner in value]
    if is_object(value):
        return {name: _in_strings(inner, change) for name, inner in value.items()}
    return value
