"""The registry on loopback: one image with two tags, for nobody but this machine, and away on demand."""

import asyncio
import hashlib
import json

import pytest
from on_loop import on_loop

from kubelet_conformance.targets.containerd.registry import TwoTags

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


async def ask(registry: TwoTags, request: str) -> tuple[int, dict[str, str], bytes]:
    """One HTTP exchange: status, headers and body."""
    host, _, port = registry.host.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{request} HTTP/1.1\r\nHost: {registry.host}\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body


@on_loop
async def test_both_tags_are_one_image_with_all_its_parts() -> None:
    """A pull finds a manifest by either tag and by digest, and every blob that it names by its digest."""
    with TwoTags("run-1") as registry:
        names = await registry.names()
        tags = [name.rpartition(":")[2] for name in names]
        answers = [await ask(registry, f"GET /v2/kubelet-conformance/two/manifests/{tag}") for tag in tags]
        status, headers, manifest = answers[0]
        digest = headers["Docker-Content-Digest"]
        by_digest = await ask(registry, f"GET /v2/kubelet-conformance/two/manifests/{digest}?ns=x")
        parts = json.loads(manifest)
        for part in (parts["config"], *parts["layers"]):
            found = await ask(registry, f"GET /v2/kubelet-conformance/two/blobs/{part['digest']}")
            assert f"sha256:{hashlib.sha256(found[2]).hexdigest()}" == part["digest"]
            assert len(found[2]) == part["size"]

    assert all(name.startswith("127.0.0.1:") for name in names)
    assert (status, headers["Content-Type"], by_digest[2]) == (200, MANIFEST, manifest)
    assert answers[1][2] == manifest


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /v2/", 200),
        ("GET /v2/kubelet-conformance/two/manifests/c", 404),
        ("GET /v2/kubelet-conformance/absent/manifests/1", 404),
        ("GET /v2/kubelet-conformance/two/blobs/sha256:00", 404),
        ("GET /etc/passwd", 404),
        ("HEAD /v2/kubelet-conformance/two/manifests/a", 200),
    ],
)
@on_loop
async def test_other_requests(request_line: str, status: int) -> None:
    """What is not the image is not found; HEAD has headers and no body."""
    with TwoTags("run-1") as registry:
        answer = await ask(registry, request_line)

    assert answer[0] == status
    assert bool(answer[2]) is not request_line.startswith("HEAD")


def test_away_is_503_for_everything_until_it_is_back() -> None:
    """While it is away each request is answered by 503."""

    async def scenario() -> list[int]:
        with TwoTags("run-1") as registry:
            statuses: list[int] = []
            for away in (True, False):
                registry.set_away(away=away)
                statuses.append((await ask(registry, "GET /v2/kubelet-conformance/two/manifests/a"))[0])
            return statuses

    assert asyncio.run(scenario()) == [503, 200]


def test_nonsense_harms_nobody() -> None:
    """A client that speaks something else is injected; the next one is served."""

    async def scenario() -> int:
        with TwoTags("run-1") as registry:
            host, _, port = registry.host.partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"\x00\x01\r\n")
            assert b"Bad request" in await reader.read()
            writer.close()
            return (await ask(registry, "GET /v2/"))[0]

    assert asyncio.run(scenario()) == 200


def test_an_image_is_of_its_run() -> None:
    """Two runs serve images of different ids, so that neither removes the other's."""

    async def scenario() -> set[str]:
        digests: set[str] = set()
        for run in ("run-1", "run-2"):
            with TwoTags(run) as registry:
                _, headers, _ = await ask(registry, "GET /v2/kubelet-conformance/two/manifests/a")
                digests.add(headers["Docker-Content-Digest"])
        return digests

    assert len(asyncio.run(scenario())) == 2
