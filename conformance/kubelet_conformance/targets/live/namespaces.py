"""Namespaces of this suite: each scenario on a shared node has its own, which shows what is ours."""

import re

_PREFIX = "kcrun"
_OURS = re.compile(rf"({_PREFIX}-\d+)-.*")
_NAMED = re.compile(rf"{_PREFIX}-(\d+)-")
_NAME_CHARS_MAX = 63
_ROOM_FOR_OTHERS = 20


def scope_of(namespace: str) -> str:
    """What the namespaces of one scenario of any run have in common; "" for one that is not ours."""
    found = _OURS.fullmatch(namespace)
    return "" if found is None else found[1]


def is_of_another(text: str, number: int | None) -> bool:
    """Whether a text names namespaces, and none of the scenario with this number."""
    named = _NAMED.findall(text)
    return number is not None and bool(named) and str(number) not in named


class Scope:
    """The namespaces of one scenario: one stands for `default`, one for each other that it names.

    `number` distinguishes it from all others of the run, `name` makes it readable.
    """

    def __init__(self, number: int, name: str) -> None:
        self.id = f"{_PREFIX}-{number}"
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        room = _NAME_CHARS_MAX - _ROOM_FOR_OTHERS
        self.own = f"{self.id}-{slug}"[:room].rstrip("-")

    def holds(self, namespace: str) -> bool:
        """Whether it is one of this scenario's."""
        return scope_of(namespace) == self.id

    def file(self, name: str) -> str:
        """The file that stands for the one of this name, which scripts look for with `xf`."""
        return f"{self.id}.{name}"

    def namespace(self, name: str) -> str:
        """The namespace that stands for this one; one of this scope stands for itself."""
        if scope_of(name) == self.id:
            return name
        return self.own if name == "default" else f"{self.own}-{name}"[:_NAME_CHARS_MAX].rstrip("-")
