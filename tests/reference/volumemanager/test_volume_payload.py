"""Which files a volume shows: keys, items and modes, fields of the pod, and paths that lead out of it."""

from typing import Any

import msgspec
import pytest
from config_doubles import a_pod
from lightkube.models.core_v1 import DownwardAPIVolumeFile, KeyToPath

from kubelet_reference.util.settings import Settings
from kubelet_reference.volumemanager.paths import SetUpError
from kubelet_reference.volumemanager.payload import ProjectedFile, checked_path, downward_files, files_of_keys

DATA = {"a": b"1", "b": b"2"}
POD = a_pod(
    "web",
    uid="u1",
    labels={"tier": "front", "app": "web"},
    annotations={"note": 'say "hi"\nand go'},
    spec={
        "containers": [
            {
                "name": "c1",
                "image": "img:1",
                "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "250m"}},
            }
        ]
    },
)


def items(*found: dict[str, Any]) -> list[KeyToPath]:
    """Keys and where they are shown."""
    return msgspec.convert(list(found), list[KeyToPath])


def reported(**item: Any) -> bytes:
    """What a file of the downward API says."""
    found = msgspec.convert([{"path": "f", **item}], list[DownwardAPIVolumeFile])
    return downward_files(POD, found, 0o644, Settings(cpu_millicores=2000))["f"].content


def test_every_key_is_a_file() -> None:
    """Without items every key is a file with the mode of the volume, and 0 is one."""
    assert files_of_keys(DATA, None, 0o644, "x") == {
        "a": ProjectedFile(b"1", 0o644),
        "b": ProjectedFile(b"2", 0o644),
    }
    assert files_of_keys(DATA, [], 0, "x")["a"].mode == 0


def test_items_choose_and_rename() -> None:
    """Items show some keys, elsewhere and with modes of their own."""
    chosen = items({"key": "a", "path": "deep/er/x", "mode": 0o400}, {"key": "a", "path": "y"})

    assert files_of_keys(DATA, chosen, 0o600, "x") == {
        "deep/er/x": ProjectedFile(b"1", 0o400),
        "y": ProjectedFile(b"1", 0o600),
    }


def test_missing_key() -> None:
    """A key that is not there is an error that names it, or is left out of an optional source."""
    chosen = items({"key": "a", "path": "a"}, {"key": "c", "path": "c"})
    with pytest.raises(SetUpError, match="no such key: c"):
        files_of_keys(DATA, chosen, 0o644, "no such key")

    assert set(files_of_keys(DATA, chosen, 0o644, None)) == {"a"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "u1"),
        ("metadata.labels", 'app="web"\ntier="front"'),
        ("metadata.labels['tier']", "front"),
        ("metadata.labels['x']", ""),
        ("metadata.annotations", 'note="say \\"hi\\"\\nand go"'),
        ("metadata.annotations['note']", 'say "hi"\nand go'),
    ],
)
def test_fields_of_the_pod(path: str, text: str) -> None:
    """Fields are shown as they are, labels and annotations a line each, sorted and quoted."""
    assert reported(fieldRef={"fieldPath": path}) == text.encode()


def test_resources() -> None:
    """Limits and requests are in units of the divisor, rounded up; a limit that is not set is the node's."""

    def of(resource: str, divisor: str) -> bytes:
        return reported(resourceFieldRef={"containerName": "c1", "resource": resource, "divisor": divisor})

    assert of("limits.memory", "1Mi") == b"64"
    assert of("requests.cpu", "1") == b"1"
    assert of("requests.cpu", "1m") == b"250"
    assert of("limits.cpu", "1") == b"2"
    assert reported() == b""


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"fieldRef": {"fieldPath": "spec.nodeName"}}, "unsupported fieldPath: spec.nodeName"),
        (
            {"resourceFieldRef": {"containerName": "x", "resource": "limits.cpu"}},
            "unsupported container resource: limits.cpu",
        ),
    ],
    ids=["field", "container"],
)
def test_what_cannot_be_reported(item: dict[str, Any], reason: str) -> None:
    """A field that no file can show, or a container that is not there, is an error."""
    with pytest.raises(SetUpError, match=reason):
        reported(**item)


@pytest.mark.parametrize(
    ("path", "plain"), [("a", "a"), ("a/b", "a/b"), ("./a//b", "a/b"), ("a/..b", "a/..b"), (".a", ".a")]
)
def test_fit_paths(path: str, plain: str) -> None:
    """A path within the volume is taken in its plain form."""
    assert checked_path(path) == plain


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "must not start with"),
        (".", "must not start with"),
        ("/etc/passwd", "must be relative path: /etc/passwd"),
        ("..", "must not contain '..'"),
        ("../x", "must not contain '..'"),
        ("a/../../x", "must not contain '..'"),
        ("a/..", "must not contain '..'"),
        ("..data", "must not start with '..'"),
        ("./..data/x", "must not start with '..'"),
        ("a" * 256, "filenames must be less than or equal to 255"),
        ("a/" * 2049, "must be less than or equal to 4096"),
        ("a\0b", "filenames must be"),
    ],
)
def test_paths_that_could_lead_out(path: str, reason: str) -> None:
    """A path that could leave the volume, or reach what the kubelet keeps in it, is refused."""
    with pytest.raises(SetUpError, match=reason):
        checked_path(path)
