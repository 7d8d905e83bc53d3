"""`serve-api` and `serve-fake`: serve the fake API server or the fake runtime, for what people start."""

from pathlib import Path

import click

from kubelet_conformance.cli.options import DEBUG, ending
from kubelet_conformance.reports.output import deliver
from kubelet_conformance.run_record.system_clock import system_time_ns
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
    fake_server.serve(address, root, system_time_ns(), lambda line: deliver(f"{line}\n", None))
