"""`serve-fake`: serve the fake runtime on a socket, for a kubelet or crictl."""

from pathlib import Path

import click

from kubelet_conformance.cli.options import DEBUG, ending
from kubelet_conformance.reports.output import deliver
from kubelet_conformance.system_clock import system_time_ns
from kubelet_conformance.targets.fake_server import serve


@click.command(
    "serve-fake",
    epilog=ending("serve-fake --listen unix:///run/fake/cri.sock", code_0="stopped by SIGINT or SIGTERM"),
)
@click.option(
    "--listen",
    "address",
    metavar="ADDRESS",
    required=True,
    help="The unix socket to create, such as unix:///run/fake/cri.sock.",
)
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The folder that stands for / where containers write logs and messages; / itself is fine.",
)
@DEBUG
def serve_fake(*, address: str, root: Path | None) -> None:
    """Serve the fake container runtime on a unix socket until SIGINT or SIGTERM.

    The command of a container says what the container does: `run [stopdelay=S] [stopcode=N]`, `exit CODE
    AFTER` or `seq CODE@AFTER ...`. A command executed in it is `x CODE SECONDS`, `xf FILE`, `echo
    TEXT`, or `sh`, which reads such commands.
    """
    serve(address, root, system_time_ns(), lambda line: deliver(f"{line}\n", None))
