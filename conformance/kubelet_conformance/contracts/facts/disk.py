"""Pods' files on the node's disk, as far as a trace shows them: folders, and the content of small files."""

from msgspec import field

from kubelet_conformance.contract import Container, Moment, Note, Pod
from kubelet_conformance.contract.definition import observer
from kubelet_conformance.contracts.facts.pod import DISK
from kubelet_conformance.trace.format.records import Disk
from kubelet_conformance.trace.world.views import Latest


class Files(Note):
    """The files and folders that exist on the node's disk now."""

    texts: Latest[str, str | None] = field(default_factory=Latest[str, "str | None"])
    """What each file holds, by path; None of a large one."""
    folders: Latest[str, None] = field(default_factory=Latest[str, None])

    def learn(self, record: Disk) -> None:
        """A file appeared, changed or was removed."""
        if record.op == "folder":
            self.folders[record.path] = None
        elif record.op == "written":
            self.texts[record.path] = record.text
        elif record.op == "removed":
            below = f"{record.path}/"
            for known in (self.folders, self.texts):
                for path in [one for one in known if one == record.path or one.startswith(below)]:
                    del known[path]

    def folder_of(self, uid: str) -> str:
        """The pod's data folder; "" where none is known."""
        return next((path for path in self.folders if path.endswith(f"/pods/{uid}")), "")


def log_names(m: Moment, pod: Pod, container: str) -> list[str]:
    """The names of the files among a container's logs."""
    texts = files(m).texts
    if not texts:
        return []
    folder = f"{pod.namespace}_{pod.name}_{pod.uid}/{container}/"
    return [path.rpartition("/")[2] for path in texts if folder in path]


def log_path(container: Container) -> str:
    """Where the container's log file has to be; empty for one that has none."""
    sandbox = container.sandbox.config if container.sandbox else None
    log = container.config.log_path if container.config else ""
    return f"{sandbox.log_directory}/{log}" if sandbox and sandbox.log_directory and log else ""


def is_log(name: str) -> bool:
    """Whether a file is one of its container's logs, by its name."""
    return name.partition(".log")[0].isdecimal()


def files(m: Moment) -> Files:
    """The files that the trace has shown on the node's disk."""
    return m.node.note(Files)


@observer(on=DISK)
def _disk_changes(m: Moment) -> None:
    if isinstance(m.record, Disk):
        files(m).learn(m.record)
