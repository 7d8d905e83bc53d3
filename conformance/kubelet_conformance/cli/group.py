"""The commands together, and how each of them may end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kubelet_conformance.cli.check import check
from kubelet_conformance.cli.explain import explain
from kubelet_conformance.cli.failing import tell_internal_error
from kubelet_conformance.cli.image import image
from kubelet_conformance.cli.list import list_contracts
from kubelet_conformance.cli.options import Settings
from kubelet_conformance.cli.record import record
from kubelet_conformance.cli.record_writer import record_writer
from kubelet_conformance.cli.run import run as run_command
from kubelet_conformance.cli.runtime import runtime
from kubelet_conformance.cli.serve_fake import serve_fake
from kubelet_conformance.cli.slice import slice_command
from kubelet_conformance.cli.snapshot import snapshot
from kubelet_conformance.cli.zoo import zoo
from kubelet_conformance.reports.output import complain
from kubelet_conformance.reports.run import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("group", "run")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="kubelet-conformance")
def group() -> None:
    """Judge what a kubelet and a container runtime said to each other, by a catalogue of contracts."""


group.add_command(run_command, "run")
group.add_command(check)
group.add_command(record)
group.add_command(record_writer)
group.add_command(slice_command)
group.add_command(snapshot)
group.add_command(zoo)
group.add_command(list_contracts)
group.add_command(explain)
group.add_command(runtime)
group.add_command(serve_fake)
group.add_command(image)


def run(arguments: Sequence[str] | None) -> int:
    """Run one command; whatever happens, the exit code says what and no traceback is shown unasked."""
    settings = Settings()
    try:
        code: object = group.main(arguments, "kubelet-conformance", standalone_mode=False, obj=settings)
    except click.UsageError as error:
        error.show()
        return Exit.BAD_INPUT
    except click.ClickException as error:
        complain(error.format_message())
        return Exit.BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort
        return tell_internal_error(error, debug=settings.debug)
    return code if isinstance(code, int) else Exit.OK
