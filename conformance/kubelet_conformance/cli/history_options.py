"""What can be asked of generated histories on the command line."""

from __future__ import annotations

import click

FOLDER = ".kubelet-conformance/histories"
"""Where histories that broke something are kept, unless told otherwise."""


class Part(click.ParamType[tuple[int, int]]):
    """A part of a run, such as 2/5."""

    name = "I/N"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """The number of the part, from 1, and that of all."""
        part, _, parts = str(value).partition("/")
        if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
            self.fail(f"{value} is no part of a run: expected 1/4, 2/4 ...", param, ctx)
        return int(part), int(parts)
