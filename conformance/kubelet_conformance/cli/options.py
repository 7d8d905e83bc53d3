"""The options that several commands take, and the types of their values."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from kubelet_conformance.contract.applicability import Version, parse_known_version, parse_version
from kubelet_conformance.reports.safe import nearest, safe

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")


@dataclass(slots=True)
class Settings:
    """What holds for the whole process."""

    debug: bool = False
    verbose: bool = False
    command: tuple[str, ...] = ()
    """The command as it was given, word by word."""


class _VersionType(click.ParamType[Version]):
    """A Kubernetes version such as 1.32."""

    name = "version"

    def convert(
        self, value: str | Version, param: click.Parameter | None, ctx: click.Context | None
    ) -> Version:
        if not isinstance(value, str):
            return value
        try:
            parse_version(value)
        except ValueError:
            self.fail(f"{safe(value, 80)!r} is no Kubernetes version; write it like 1.32", param, ctx)
        try:
            return parse_known_version(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Part(click.ParamType[tuple[int, int]]):
    """A part of a run, such as 2/5."""

    name = "I/N"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """The number of the part, from 1, and that of all."""
        # Late: the plugin imports pytest, which no other command needs.
        from kubelet_conformance.plugin.arguments import part_of  # noqa: PLC0415

        try:
            return part_of(str(value))
        except ArgumentTypeError as error:
            self.fail(str(error), param, ctx)


class OneOf(click.Choice[T]):
    """One of some words; what resembles one of them is met with it."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """The choice of that name."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = nearest(str(value).lower(), (str(each).lower() for each in self.choices))
            self.fail(f"{error.message.rstrip('.')}{near}", param, ctx)


VERSION = _VersionType()
PART = _Part()


def _remember(ctx: click.Context, option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's call
    """Remember an option that holds for the whole process."""
    if value:
        setattr(ctx.ensure_object(Settings), option.name or "", True)


DEBUG = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Show where an internal error happened.",
)
"""The option that every command with work of its own has."""
VERBOSE = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Name in the terminal what is else only counted, and show more breaks.",
)
_ALWAYS = {
    2: "wrong usage or bad input",
    4: "internal error",
    130: "interrupted",
}
JUDGED = {
    0: "everything that was exercised was kept",
    1: "something is broken, or an entry of the baseline is stale",
    3: "inconclusive: nothing was exercised, or a wait timed out that no broken contract explains",
}
"""The exit codes of commands that judge, beside those that every command may return."""


def ending(example: str, **codes: str) -> str:
    """What stands at the end of a command's help: an example, and its exit codes.

    Args:
        example: the arguments of one command line.
        codes: the meaning of exit codes of this command alone, such as `code_0="the file was written"`.
    """
    meant = {**_ALWAYS, **{int(name.removeprefix("code_")): meaning for name, meaning in codes.items()}}
    lines = [f"  {code:3}  {meant[code]}" for code in sorted(meant)]
    shown = ["\b", "Example:", f"  kubelet-conformance {example}", "", "\b", "Exit codes:", *lines]
    return "\n".join(shown)


def judging(example: str) -> str:
    """What stands at the end of the help of a command that judges."""
    return ending(example, **{f"code_{code}": meaning for code, meaning in JUDGED.items()})


PLAYED_AS = click.option(
    "--kubernetes",
    type=VERSION,
    metavar="V",
    help="Run as this Kubernetes version, and only the scenarios that it has.  [default: 1.32, and scenarios "
    "for other versions as those]",
)
SEED = click.option("--seed", type=int, default=0, show_default=True, help="The seed of all random numbers.")
KUBELET = click.option(
    "--kubelet",
    default="reference",
    show_default=True,
    metavar="NAME",
    help="The kubelet: reference, or bug:ID of `zoo --list`, in this process; reference-process, "
    "the PATH of a kubelet, or FILE.toml, in its own.",
)
RECORD = click.option(
    "--record",
    metavar="DIR|NAME.tar.gz",
    help="Keep a record: verdicts, traces and logs, in this folder or packed into this file.",
)
OUTPUT = click.option("--output", metavar="FILE", help="Write the report to FILE instead of printing it.")
REDACTS = click.option(
    "--redact/--no-redact",
    "redacts",
    default=True,
    show_default=True,
    help="Replace environment values, credentials and outputs by digests.",
)
BASELINE = click.option(
    "--baseline",
    metavar="NAME|FILE",
    help="Accept the deviations that this TOML file lists, or the bundled ones, such as kubernetes-1.36.",
)


def scored(command: F) -> F:
    """Give a command --strict and --require-exercised."""
    for option in (
        click.option("--require-exercised", is_flag=True, help="Fail where a contract was not exercised."),
        click.option("--strict", is_flag=True, help="Fail on a broken SHOULD too."),
    ):
        command = option(command)
    return command


def reported(command: F) -> F:
    """Give a command --format, --output and --debug."""
    for option in (
        DEBUG,
        OUTPUT,
        click.option(
            "--format",
            "form",
            type=OneOf(["terminal", "json"]),
            default="terminal",
            show_default=True,
            help="How the report is written: terminal to read, json for programs.",
        ),
    ):
        command = option(command)
    return command
