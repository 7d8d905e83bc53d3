"""An action on a node as data: a method and its arguments, to be done, compared and written as code."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, cast

from kubelet_conformance.node.manifests import pod_code


@dataclass(frozen=True, slots=True)
class Name:
    """What stands under a dotted name such as `node.runtime`."""

    path: str

    def value(self, names: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever it names
        """What that is, where the first part of it is one of `names`."""
        first, _, rest = self.path.partition(".")
        return attrgetter(rest)(names[first]) if rest else names[first]


@dataclass(frozen=True, slots=True)
class Action:
    """A call of a method. An argument that is an action or a name is evaluated when this one is done.

    Attributes:
        method: its dotted name, such as `node.runtime.restart`.
        arguments: by position.
        options: by keyword.
        awaited: the method is a coroutine.
        part: the attribute of the result to keep, if not all of it.
        to: the name that the result gets, if any.
    """

    method: str
    arguments: tuple[object, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    awaited: bool = False
    part: str = ""
    to: str = ""

    async def do(self, names: dict[str, Any]) -> None:
        """Do it, where these names stand for these objects."""
        result = self.result(names)
        if self.awaited:
            result = await result
        if self.to:
            names[self.to] = result

    def result(self, names: Mapping[str, Any]) -> Any:  # noqa: ANN401 - whatever the method returns
        """Call the method; returns its result, or the part of it that was chosen."""
        arguments = [_value(each, names) for each in self.arguments]
        options = {name: _value(each, names) for name, each in self.options.items()}
        result = Name(self.method).value(names)(*arguments, **options)
        return getattr(result, self.part) if self.part else result

    @property
    def code(self) -> str:
        """The line of a scenario that does it."""
        begin = f"{self.to} = " * bool(self.to) + "await " * self.awaited
        options = [f"{name}={_code(each)}" for name, each in self.options.items()]
        arguments = ", ".join([*map(_code, self.arguments), *options])
        return f"{begin}{self.method}({arguments})" + f".{self.part}" * bool(self.part)


def act(method: str, *arguments: object, **options: object) -> Action:
    """An action."""
    return Action(method, arguments, options)


def awaited(method: str, *arguments: object) -> Action:
    """An action that takes time."""
    return Action(method, arguments, awaited=True)


def _value(argument: object, names: Mapping[str, Any]) -> object:
    match argument:
        case Name():
            return argument.value(names)
        case Action():
            return argument.result(names)
        case _:
            return argument


def _code(argument: object) -> str:
    match argument:
        case Name(path):
            return path
        case Action():
            return argument.code
        case str():
            return f'"{argument}"'
        case float():
            return f"{argument:g}"
        case dict():
            return pod_code(cast("dict[str, Any]", argument))
        case _:
            return repr(argument)
