"""`serve-api`: serve the fake API server on loopback, for a kubelet or kubectl."""

from pathlib import Path

import click

from kubelet_conformance.cli.options import DEBUG, ending
from kubelet_conformance.reports.output import deliver
from kubelet_conformance.system_clock import system_time_ns
from kubelet_conformance.targets import fake_server


@click.command(
    "serve-api",
    epilog=ending(
        "serve-api --listen 127.0.0.1:6443 --kubeconfig node.conf", code_0="stopped by SIGINT or SIGTERM"
    ),
)
@click.option(
    "--listen",
    "address",
    metavar="ADDRESS",
    required=True,
    help="Where to listen, such as 127.0.0.1:6443; port 0 is any that is free.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    required=True,
    help="The file to write for clients, with the address and a new token; it is removed in the end.",
)
@DEBUG
def serve_api(*, address: str, kubeconfig: Path) -> None:
    """Serve the fake API server over HTTP until SIGINT or SIGTERM.

    It keeps what clients give it in memory. There is no scheduler and no controller: pods name their node, or
    are bound to one. Bodies are JSON: a kubelet needs `contentType: application/json` in its configuration.
    """
    fake_server.serve_api(address, kubeconfig, system_time_ns(), lambda line: deliver(f"{line}\n", None))
