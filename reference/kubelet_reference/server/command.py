"""The command line of `kubelet-reference`: the kubelet's own flags, as far as they have a meaning here."""

import asyncio
import os
import re
from collections.abc import Sequence
from importlib.metadata import version as version_of

import click

from kubelet_reference.server.api_client.kubeconfig import read_kubeconfig
from kubelet_reference.server.configuration import FLAGS
from kubelet_reference.server.errors import BadInputError
from kubelet_reference.server.loading import load
from kubelet_reference.server.log import LOG, set_up_log
from kubelet_reference.server.run import Wanted, live
from kubelet_reference.server.unsupported_fields import FLAGS_OF_FIELDS, FOREIGN_FLAGS
from kubelet_reference.util.versions import USUAL, Behaviour

OK, BAD_INPUT, INTERNAL_ERROR, INTERRUPTED = 0, 2, 4, 130
OLDEST = 24
"""The first minor version that it can behave as."""
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NODE_NAME_MAX = 253


class _Command(click.Command):
    """Distinguishes flags that no kubelet has from those that only this one does not support."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.lstrip("-")
            if name not in FLAGS_OF_FIELDS | FOREIGN_FLAGS:
                raise
            instead = "set its field in the file of --config" if name in FLAGS_OF_FIELDS else "leave it out"
            raise click.UsageError(
                f"{error.option_name}: a kubelet has this flag, kubelet-reference does not: {instead}", ctx
            ) from None


@click.command(
    "kubelet-reference",
    cls=_Command,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option("--config", metavar="FILE", help="A KubeletConfiguration; flags win over it.")
@click.option("--kubeconfig", metavar="FILE", help="How to reach an API server.  [default: there is none]")
@click.option(
    "--root-dir", metavar="FOLDER", default="/var/lib/kubelet", show_default=True, help="For files of pods."
)
@click.option(
    "--hostname-override", metavar="NAME", default="", help="The node's name.  [default: the machine's]"
)
@click.option(
    "-v", "--v", "verbosity", metavar="LEVEL", type=click.IntRange(0), default=0, help="Of the log."
)
@click.option(
    "--kubernetes",
    metavar="VERSION",
    default=USUAL,
    show_default=True,
    help="The version to behave as; no flag of a kubelet.",
)
@click.version_option(version_of("kubelet-conformance"), prog_name="kubelet-reference")
def command(  # noqa: PLR0913, PLR0917 - one for each option
    config: str | None,
    kubeconfig: str | None,
    root_dir: str,
    hostname_override: str,
    verbosity: int,
    kubernetes: str,
    **flags: str | int | None,
) -> None:
    """Run the pods of an API server, a manifest folder or URL on a container runtime, as a kubelet does.

    It ends with 0 after SIGTERM or SIGINT, and with 2 where it cannot start.
    """
    behaviour = _behaviour_of(kubernetes)
    given = {name.replace("_", "-"): value for name, value in flags.items() if value is not None}
    wanted = Wanted(
        configuration=load(config, given, behaviour),
        behaviour=behaviour,
        node_name=_node_name(hostname_override),
        root_dir=os.path.abspath(root_dir),  # noqa: PTH100 - a text is wanted, and no link resolved
        access=read_kubeconfig(kubeconfig) if kubeconfig else None,
    )
    set_up_log(verbosity)
    asyncio.run(live(wanted))


command.params.extend(
    click.Option([f"--{name}"], type=flag.kind, metavar="VALUE", help=flag.help)
    for name, flag in FLAGS.items()
)


def _behaviour_of(version: str) -> Behaviour:
    """The behaviour of a version such as "1.32"; raises `BadInputError`."""
    major, _, minor = version.removeprefix("v").partition(".")
    if major != "1" or not minor.split(".")[0].isdecimal():
        raise BadInputError(f"--kubernetes: expected a Kubernetes version such as {USUAL}, got {version!r}")
    behaviour = Behaviour.of(version)
    if behaviour.minor < OLDEST:
        raise BadInputError(f"--kubernetes: expected Kubernetes 1.{OLDEST} or newer, got {version}")
    return behaviour


def _node_name(override: str) -> str:
    """The node's name: a host name in small letters; raises `BadInputError`."""
    name = (override or os.uname().nodename).strip().lower()
    if len(name) > _NODE_NAME_MAX or not _NODE_NAME.fullmatch(name):
        raise BadInputError(
            f"--hostname-override: expected a name of small letters, digits, '-' and '.', got {name[:80]!r}"
        )
    return name


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code: 0, 2 for bad input, 4 for a mistake of ours, 130 if interrupted."""
    try:
        command.main(arguments, "kubelet-reference", standalone_mode=False)
    except click.UsageError as error:
        error.show()
        return BAD_INPUT
    except (click.ClickException, BadInputError) as error:
        click.echo(
            f"error: {error.format_message() if isinstance(error, click.ClickException) else error}", err=True
        )
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - the last resort
        LOG.exception("internal error, a mistake in kubelet-reference: please report it with these lines")
        return INTERNAL_ERROR
    return OK
