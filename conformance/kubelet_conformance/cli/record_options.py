"""The options of `record` that are its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound="Callable[..., Any]")

_OPTIONS = (
    click.option(
        "--listen",
        metavar="ADDRESS",
        required=True,
        help="The unix socket to make, such as unix:///run/tap/tap.sock.",
    ),
    click.option(
        "--to",
        "upstream",
        metavar="ADDRESS",
        required=True,
        help="The runtime's socket, such as unix:///run/containerd/containerd.sock.",
    ),
    click.option("-o", "output_file", metavar="FILE", required=True, help="The trace, such as trace.jsonl."),
    click.option("--pods", metavar="FOLDER|URL", help="Manifests, or a kubelet's /pods: what is wanted."),
    click.option("--insecure", is_flag=True, help="Take any certificate where --pods is https."),
    click.option("--judge", "judges", is_flag=True, help="Judge while recording, and report at the end."),
    click.option(
        "--max-size",
        "max_mib",
        metavar="MIB",
        type=click.IntRange(min=1),
        default=100,
        show_default=True,
        help="How large a file becomes before the next one begins.",
    ),
    click.option(
        "--keep",
        metavar="N",
        type=click.IntRange(min=1),
        default=10,
        show_default=True,
        help="How many files are kept; the oldest goes.",
    ),
    click.option(
        "--redact/--no-redact",
        "redacts",
        default=True,
        show_default=True,
        help="Put digests in the place of environment values, credentials and outputs.",
    ),
    click.option("--node", metavar="NAME", help="The node's name; the host's where none is given."),
)


def recording_options(command: F) -> F:
    """Give a command these options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
