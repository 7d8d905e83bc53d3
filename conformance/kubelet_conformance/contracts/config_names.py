"""CONFIG: two manifests of one name in the folder."""

from __future__ import annotations

from collections.abc import Iterator

from kubelet_conformance.contract import Moment
from kubelet_conformance.contract.frame import Answered, Finding, answered, contract, observer
from kubelet_conformance.contract.needs import CRI, EVERY_EVENT, PODS
from kubelet_conformance.contract.words import call, event, kubelet, pod_set
from kubelet_conformance.contracts.situations import DISK, FAULT, MANIFEST
from kubelet_conformance.contracts.static_names import FullName, sent_static
from kubelet_conformance.contracts.timing import KUBELET_START
from kubelet_conformance.trace.bodies import CreateContainerRequest
from kubelet_conformance.trace.records import Disk

Images = dict[str, str]
"""The image of each container, by name."""


class _Files:
    """Which file of the folder wants what: a file that was written is told of just before its pods."""

    def __init__(self) -> None:
        self.wanted: dict[str, tuple[FullName, Images]] = {}
        self.written = ""
        self.t = 0.0


@contract("CONFIG-09", on=kubelet("started"), needs=(CRI, PODS, EVERY_EVENT))
def second_pod_of_a_name_is_dropped(m: Moment) -> Iterator[Finding]:
    """Of two manifests with one name that a kubelet finds in its folder the one of the first file is run, and
    the other is refused with an event.
    """
    first: dict[FullName, Images] = {}
    files = m.node.note(_Files).wanted
    for path in sorted(files):
        name, images = files[path]
        if name in first and first[name] != images:
            yield _is_refused(name, first[name])
        first.setdefault(name, images)


def _is_refused(name: FullName, expected: Images) -> Answered:
    def is_another(n: Moment) -> bool:
        asked = n.request(CreateContainerRequest)
        meta, container = asked.sandbox_config.metadata, asked.config.metadata.name
        if (meta.namespace, meta.name) != name:
            return False
        image = asked.config.image.user_specified_image
        return container not in expected or bool(image and image != expected[container])

    return answered(
        by=event("FailedValidation"),
        within=KUBELET_START,
        not_before=call("CreateContainer").where(is_another),
        unless=FAULT.either(MANIFEST),
        whole_node=True,
        text=f"the second pod {name[1]} is refused",
    )


@observer(on=DISK.either(pod_set()))
def _file_is_written(m: Moment) -> None:
    """Take in what each file wants."""
    files = m.node.note(_Files)
    if isinstance(m.record, Disk):
        files.wanted.pop(m.record.path, None)
        files.written = m.record.path if m.record.op == "written" else ""
        files.t = m.t
        return
    name = sent_static(m)
    if name is None or m.manifest is None or m.t != files.t or not files.written:
        return
    images = {one.name: one.image for one in m.manifest.spec.containers}
    files.wanted[files.written] = name, images
