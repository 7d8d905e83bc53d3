"""`serve-fake`: the fake runtime on a socket, for a kubelet or crictl to play with."""

from __future__ import annotations

import click

from kubelet_conformance.cli.options import DEBUG
from kubelet_conformance.cli.system_clock import wall_now_ns
from kubelet_conformance.reports.output import deliver
from kubelet_conformance.targets.fake_server import CannotServeError, serve


@click.command("serve-fake")
@click.option(
    "--listen",
    "address",
    metavar="ADDRESS",
    required=True,
    help="The unix socket to make, such as unix:///run/fake/cri.sock.",
)
@DEBUG
def serve_fake(*, address: str) -> None:
    """Serve the fake container runtime on a unix socket until SIGINT or SIGTERM.

    A container's command is its script: `run [stopdelay=S] [stopcode=N]`, `exit CODE AFTER`,
    `seq CODE@AFTER ...`; what is executed in it is `x CODE SECONDS` or `xf FILE`.
    """
    try:
        serve(address, wall_now_ns(), lambda line: deliver(f"{line}\n", None))
    except CannotServeError as error:
        raise click.ClickException(str(error)) from None
