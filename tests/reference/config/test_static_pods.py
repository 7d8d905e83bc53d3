"""Static pods: names, UIDs and marks that the kubelet gives to pods from manifests."""

import pytest
from config_doubles import a_pod
from lightkube.models.core_v1 import Pod

from kubelet_reference.api import names, pods
from kubelet_reference.config import Source, static_pod

PATH = "/manifests/web.yaml"


def test_pod_is_named_after_the_node() -> None:
    """The name ends in the node's in lower case, in namespace default (STATIC-01)."""
    pod = static_pod(a_pod(namespace=None), Source.FILE, PATH, "N1", 32)

    assert pods.key(pod) == "default/web-n1"
    assert pods.spec(pod).nodeName == "N1"


@pytest.mark.parametrize(
    ("pod", "path", "node", "same"),
    [
        (a_pod(), PATH, "n1", True),
        (a_pod(spec={"containers": [{"name": "c1", "image": "img:2"}]}), PATH, "n1", False),
        (a_pod(), "/manifests/copy.yaml", "n1", False),
        (a_pod(), PATH, "n2", False),
    ],
    ids=["same", "other content", "other file", "other node"],
)
def test_uid_follows_content_place_and_node(pod: Pod, path: str, node: str, *, same: bool) -> None:
    """The UID is the same on every reading, and another for another pod, file or node (STATIC-02)."""
    before = pods.uid(static_pod(a_pod(), Source.FILE, PATH, "n1", 32))

    assert (pods.uid(static_pod(pod, Source.FILE, path, node, 32)) == before) is same


def test_uid_of_the_manifest_is_kept() -> None:
    """A UID in the manifest is the pod's; either way it is published as the hash (STATIC-03)."""
    given = static_pod(a_pod(uid="fixed"), Source.FILE, PATH, "n1", 32)
    made = static_pod(a_pod(), Source.FILE, PATH, "n1", 32)

    assert (pods.uid(given), pods.annotations(given)[names.CONFIG_HASH]) == ("fixed", "fixed")
    assert pods.annotations(made)[names.CONFIG_HASH] == pods.uid(made)


def test_only_pods_from_files_tolerate_everything() -> None:
    """A pod from a file stays on a tainted node, one from a URL does not (STATIC-04)."""
    keys = [{"key": "a", "operator": "Exists"}]
    file = static_pod(a_pod(spec={"tolerations": keys}), Source.FILE, PATH, "n1", 32)
    url = static_pod(a_pod(), Source.HTTP, "http://x/pod", "n1", 32)

    found = [(one.key, one.operator, one.effect) for one in pods.spec(file).tolerations or ()]
    assert found == [("a", "Exists", None), (None, "Exists", "NoExecute")]
    assert not pods.spec(url).tolerations
