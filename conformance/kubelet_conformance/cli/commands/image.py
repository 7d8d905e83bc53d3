"""`image`: write the images that scenarios use as an archive, to import into a runtime."""

from pathlib import Path

import click

from kubelet_conformance.cli.options import DEBUG, ending
from kubelet_conformance.targets.containerd.image_export import write_images
from kubelet_conformance.targets.containerd.private_containerd import IMAGES


@click.command(epilog=ending("image -o images.tar", code_0="the archive was written"))
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("-o", "--output", metavar="FILE", required=True, help="The archive to write.")
@DEBUG
def image(*, names: tuple[str, ...], output: str) -> None:
    """Write the images that scenarios use as an OCI archive: all, or those with these names.

    They hold busybox and a few scripts. Import them into a runtime with `ctr --namespace k8s.io images import
    FILE` or `podman load -i FILE`.
    """
    written = write_images(Path(output), names or IMAGES)
    click.echo(f"{', '.join(written)} written to {output}")
