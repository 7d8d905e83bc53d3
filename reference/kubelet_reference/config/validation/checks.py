"""Checks of single values, with which the tables of fields are written."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import ip_address

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"


@dataclass(frozen=True, slots=True)
class Check:
    """A rule for one value: what is expected, in words, and whether a value of the right type keeps it.

    For a field that is a list it is the rule of each item.
    """

    expected: str
    accepts: Callable[[object], bool]
    empty_is_absent: bool = False
    """Whether "" means that the field was not given, as where the API does not distinguish the two."""


def one_of(*choices: str) -> Check:
    """One of these words."""
    return Check(f"one of {', '.join(choices)}", frozenset(choices).__contains__)


def optional(check: Check) -> Check:
    """The same, where "" stands for a field that was not given."""
    return replace(check, empty_is_absent=True)


def between(least: int, most: int) -> Check:
    """A whole number in this range, both ends included."""
    return Check(
        f"a number from {least} to {most}", lambda value: isinstance(value, int) and least <= value <= most
    )


def at_least(least: int) -> Check:
    """A whole number, this one or more."""
    return Check(f"{least} or more", lambda value: isinstance(value, int) and value >= least)


def matching(expected: str, pattern: str, *, longest: int | None = None) -> Check:
    """A text of this form, with at most `longest` characters, or any number of them."""
    form = re.compile(pattern)

    def accepts(value: object) -> bool:
        return (
            isinstance(value, str)
            and form.fullmatch(value[:longest]) is not None
            and value[:longest] == value
        )

    return Check(f"{expected}, at most {longest} characters" if longest else expected, accepts)


def subdomain(longest: int = 253) -> Check:
    """A DNS name in lower case."""
    return matching("lower-case letters, digits, dashes and dots", _SUBDOMAIN, longest=longest)


def _goes_nowhere_up(value: object) -> bool:
    return isinstance(value, str) and bool(value) and ".." not in value.split("/")


def _is_path_below(value: object) -> bool:
    return _goes_nowhere_up(value) and not str(value).startswith("/")


def _is_file_below(value: object) -> bool:
    """Whether it is such a path that the kubelet may use for a file: "..data" and its like are its own."""
    return _is_path_below(value) and not str(value).startswith("..")


def _is_address(value: object) -> bool:
    try:
        ip_address(str(value))
    except ValueError:
        return False
    return True


DNS_LABEL = matching("lower-case letters, digits and dashes", _LABEL, longest=63)
DNS_SUBDOMAIN = subdomain()
NAME_BEGIN = matching("lower-case letters, digits, dashes and dots", f"{_SUBDOMAIN}-*", longest=253)
"""What the name of an object may begin with: it may end in dashes."""
NOT_EMPTY = matching("a text that is not empty", "(?s:.+)")
BELOW = Check('a relative path without ".."', _is_path_below)
FILE_BELOW = Check('a relative path without ".." that does not begin with ".."', _is_file_below)
NOT_UP = Check('a path without ".."', _goes_nowhere_up)
ADDRESS = Check("an IP address", _is_address)
KEY = matching("letters, digits, dashes, dots and underscores", r"(?!\.$|\.\.)[-._a-zA-Z0-9]+", longest=253)
FILE_MODE = between(0, 0o777)
NOT_NEGATIVE = at_least(0)
POSITIVE = at_least(1)
PULL_POLICY = optional(one_of("Always", "IfNotPresent", "Never"))
