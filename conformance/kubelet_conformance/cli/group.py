"""The group of commands: finds a command by its name, and turns errors into exit codes."""

import sys
from collections.abc import Sequence
from importlib import import_module

import click
from click.exceptions import NoArgsIsHelpError

from kubelet_conformance.cli.interrupts import terminable
from kubelet_conformance.cli.options import Settings
from kubelet_conformance.reports.output import complain, report_internal_error
from kubelet_conformance.reports.safe import nearest, safe
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.trace.format.errors import BadInputError

_COMMANDS = {
    "check": "Judge recorded traces.",
    "compare": "Show what records of runs differ in, and where two kubelets part.",
    "explain": "Show a contract, its judge, scenarios and bugs, and the code that keeps it.",
    "image": "Write the images that scenarios use, to import into a runtime.",
    "list": "List the contracts of the catalogue.",
    "merge": "Join the records of the parts of a run.",
    "record": "Record the calls between a kubelet and its runtime.",
    "record-writer": "",
    "report": "Report on the record of a run once more.",
    "run": "Run scenarios on a kubelet and a runtime, and judge them.",
    "runtime": "Call a container runtime directly and judge it.",
    "serve-api": "Serve the fake API server on loopback.",
    "serve-fake": "Serve the fake container runtime on a unix socket.",
    "show": "Show a trace as a timeline in characters.",
    "slice": "Cut pods or a span of time out of a trace, without secrets.",
    "snapshot": "Write what a kubelet does in each scenario as texts to review and compare.",
    "zoo": "Check that seeded bugs of kubelets and runtimes are caught.",
}
"""Each command's line in the help; empty for one that only the program itself starts."""
_NAMES = {"compare": "compare_command", "list": "list_contracts", "slice": "slice_command"}
"""What a command is called in its module, where that is not its name."""
_MODULES = {"serve-api": "serve", "serve-fake": "serve", "show": "slice"}
"""The module of a command, where that is not its name."""


class LazyGroup(click.Group):
    """Imports a command when it is called, so that no command loads what only others need."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        del ctx
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = import_module(f"kubelet_conformance.cli.commands.{_MODULES.get(cmd_name, name)}")
        command: click.Command = getattr(module, _NAMES.get(name, name))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with; an unknown name is answered by those like it."""
        if args and not args[0].startswith("-") and args[0] not in _COMMANDS:
            near = nearest(args[0], (name for name, line in _COMMANDS.items() if line))
            raise click.UsageError(f"there is no command {safe(args[0])}{near}; --help shows them all")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line for each command, and none of them imported."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, line in sorted(_COMMANDS.items()) if line])


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="kubelet-conformance")
def group() -> None:
    """Conformance tests for the kubelet and for the container runtime below it.

    A contract is one rule that a kubelet or a runtime must keep. A scenario is a short test that exercises
    contracts. Contracts judge the trace of a scenario, or one recorded on a node.

    `run` needs no cluster, root or container runtime. The help of each command shows an example.
    """


def _in_one_line(error: click.UsageError) -> str:
    """The usage error on one line; it names the help where the message does not say enough."""
    message = " ".join(error.format_message().split()).rstrip(".")
    if error.ctx is None or not isinstance(error, click.MissingParameter | click.NoSuchOption):
        return message
    return f"{message}{' See' if message.endswith('?') else '; see'} `{error.ctx.command_path} --help`"


def run(arguments: Sequence[str] | None) -> int:
    """Run one command and return its exit code; a traceback is shown only with --debug."""
    given = sys.argv[1:] if arguments is None else arguments
    settings = Settings(command=("kubelet-conformance", *given))
    try:
        with terminable():
            code: object = group.main(arguments, "kubelet-conformance", standalone_mode=False, obj=settings)
    except NoArgsIsHelpError as error:
        error.show()
        return Exit.BAD_INPUT
    except click.UsageError as error:
        complain(_in_one_line(error))
        return Exit.BAD_INPUT
    except (click.ClickException, BadInputError) as error:
        complain(str(error))
        return Exit.BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort
        return report_internal_error(error, debug=settings.debug)
    return code if isinstance(code, int) else Exit.OK
