"""`record`: forward the calls between a kubelet and its runtime, and record them."""

import asyncio
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click
import msgspec

from kubelet_conformance.cli.options import REDACTS, VERSION, Settings, ending, reported
from kubelet_conformance.contract.applicability import Version, version_text
from kubelet_conformance.recording.plan import Plan
from kubelet_conformance.recording.pod_sources import PodsReadError
from kubelet_conformance.recording.relay_process import tap
from kubelet_conformance.recording.writer_process import source_of
from kubelet_conformance.reports.output import check_writable, complain, deliver
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.run_record.system_clock import monotonic_ns, system_time_ns
from kubelet_conformance.tap.address import connection_error, socket_path
from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.cri_endpoint import check_speaks_cri
from kubelet_conformance.trace.format.header import rfc3339

_MIB = 1024 * 1024


@click.command(
    epilog=ending(
        "record --listen unix:///run/tap/tap.sock --to unix:///run/containerd/containerd.sock -o trace.jsonl",
        code_0="recorded; with --judge, and everything that was exercised was kept",
        code_1="with --judge: something is broken",
        code_3="with --judge: nothing was exercised",
    )
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    required=True,
    help="The unix socket to create, such as unix:///run/tap/tap.sock.",
)
@click.option(
    "--to",
    "upstream",
    metavar="ADDRESS",
    required=True,
    help="The runtime's socket, such as unix:///run/containerd/containerd.sock.",
)
@click.option(
    "-o", "output_file", metavar="FILE", required=True, help="The trace to write, such as trace.jsonl."
)
@click.option(
    "--pods",
    metavar="FOLDER|URL",
    help="Where the desired pods are read: a folder of manifests, or the /pods of a kubelet.",
)
@click.option("--insecure", is_flag=True, help="Accept any certificate where --pods is an https URL.")
@click.option("--judge", "judges", is_flag=True, help="Judge while recording, and report at the end.")
@click.option(
    "--max-size",
    "max_mib",
    metavar="MIB",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Begin another file when one reaches this size.",
)
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Keep at most N files; the oldest is removed.",
)
@REDACTS
@click.option("--node", metavar="NAME", help="The name of the node.  [default: the name of this host]")
@click.option(
    "--kubernetes", type=VERSION, metavar="V", help="The Kubernetes version of the kubelet, such as 1.32."
)
@reported
@click.pass_context
def record(  # noqa: PLR0913 - one parameter an option
    ctx: click.Context,
    *,
    listen: str,
    upstream: str,
    output_file: str,
    pods: str | None,
    insecure: bool,
    judges: bool,
    max_mib: int,
    keep: int,
    redacts: bool,
    node: str | None,
    kubernetes: Version | None,
    form: str,
    output: str | None,
) -> int:
    """Record the calls between a kubelet and its runtime, until SIGINT or SIGTERM.

    Configure the kubelet to use the socket of --listen. Every call is forwarded to the socket of --to,
    unchanged.
    """
    _check_output(output_file)
    check_writable(output, output_file)
    _check_pods(pods)
    plan = Plan(
        listen=str(socket_path(listen)),
        upstream=str(socket_path(upstream)),
        output=output_file,
        started=rfc3339(system_time_ns()),
        started_ns=monotonic_ns(),
        node=node or socket.gethostname().lower(),
        node_assumed=node is None,
        kubernetes=None if kubernetes is None else version_text(kubernetes),
        pods=pods,
        insecure=insecure,
        judges=judges,
        redacts=redacts,
        max_bytes=max_mib * _MIB,
        keep=keep,
        form=form,
        report=output,
        debug=ctx.ensure_object(Settings).debug,
    )
    _look_first(plan)
    if node is None and pods is not None:
        assumed = f"the node is taken to be called {plan.node}; give --node if its kubelet calls it otherwise"
        complain(assumed, note=True)
    if kubernetes is None:
        unknown = "the trace will not say its Kubernetes version, on which many contracts depend"
        complain(f"{unknown}; give --kubernetes", note=True)
    return _tapped(plan)


def _check_output(output: str) -> None:
    """Refuse a file that cannot be a trace, before a kubelet depends on this."""
    check_writable(output, what="the trace")
    if Path(output).exists() and not Path(output).is_file():
        raise click.ClickException(f"{output}: is no plain file; name one for the trace")


def _check_pods(pods: str | None) -> None:
    if pods is None:
        return
    if "://" not in pods:
        if not Path(pods).exists():
            complain(f"{pods}: is not there yet; its pods are recorded once it is", note=True)
        return
    try:
        parts = urlsplit(pods)
        host, scheme = parts.hostname, parts.scheme
    except ValueError:
        host, scheme = None, ""
    if scheme not in {"http", "https"} or not host:
        raise click.UsageError(
            f"--pods {safe(pods)} is no folder and no URL; write it like http://127.0.0.1:10255/pods"
        )


def _look_first(plan: Plan) -> None:
    """Say what is not there yet, for it may come; refuse what can never become good."""
    upstream = Path(plan.upstream)
    if upstream.exists() and not upstream.is_socket():
        raise click.ClickException(f"unix://{upstream}: this is no socket; name the runtime's")
    error = connection_error(upstream)
    if error is not None:
        why = error.strerror or error
        complain(
            f"unix://{plan.upstream}: {why}; clients are refused until a runtime answers there", note=True
        )
    else:
        try:
            asyncio.run(check_speaks_cri(upstream))
        except TargetError as problem:
            raise click.ClickException(f"unix://{problem}") from None
    source = source_of(plan) if plan.pods_url is not None else None
    if source is None:
        return
    try:
        source.look()
    except PodsReadError as error:
        if error.hopeless:
            raise click.ClickException(f"{error}; name the /pods of a kubelet that may be read") from None
        complain(f"{error}; it is asked again and again", note=True)


def _tapped(plan: Plan) -> int:
    settled = msgspec.json.encode(plan).decode()
    command = [sys.executable, "-m", "kubelet_conformance", "record-writer", settled]

    def say(address: str) -> None:
        text = f"listening at {address} for unix://{plan.upstream}; end it with Ctrl-C"
        if plan.form == "terminal":
            deliver(f"{text}\n", None)
        else:
            complain(text, note=True)

    try:
        status = asyncio.run(tap(plan, command, say))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise click.ClickException(f"the process that writes cannot be started: {reason}") from None
    if status < 0:
        complain(f"the process that writes was ended by signal {-status}: the last file has no `end`")
        return Exit.INTERNAL_ERROR
    return status
