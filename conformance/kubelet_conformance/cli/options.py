"""What several commands take: versions, formats, a file for the report, and --debug."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from kubelet_conformance.contract.catalogue import areas
from kubelet_conformance.contract.versions import Version, parse_version
from kubelet_conformance.reports.safe import safe

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(slots=True)
class Settings:
    """What holds for the whole process."""

    debug: bool = False


class _VersionType(click.ParamType[Version]):
    """A Kubernetes version such as 1.32."""

    name = "version"

    def convert(
        self, value: str | Version, param: click.Parameter | None, ctx: click.Context | None
    ) -> Version:
        if not isinstance(value, str):
            return value
        try:
            return parse_version(value)
        except ValueError:
            self.fail(f"{safe(value, 80)!r} is no Kubernetes version; write it like 1.32", param, ctx)


VERSION = _VersionType()
AREA = click.Choice(areas(), case_sensitive=False)


def remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's call
    """Remember that tracebacks are wanted."""
    if value:
        ctx.ensure_object(Settings).debug = True


DEBUG = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=remember_debug,
    help="Show where an internal error happened.",
)
"""The option that every command with work of its own has."""


def reported(command: F) -> F:
    """Give a command --format, --output and --debug."""
    for option in (
        DEBUG,
        click.option("--output", metavar="FILE", help="Write the report to FILE instead of printing it."),
        click.option(
            "--format",
            "form",
            type=click.Choice(["terminal", "json"]),
            default="terminal",
            show_default=True,
            help="A report to read, or one for programs.",
        ),
    ):
        command = option(command)
    return command
