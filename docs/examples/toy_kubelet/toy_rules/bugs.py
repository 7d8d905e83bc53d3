"""Kubelets and runtimes that break the rules of the house."""

from kubelet_bugs.bug import bug
from kubelet_fakes.runtime.store import Store
from kubelet_reference.kuberuntime.sandbox_config import sandbox_config


@bug("TOY-BUG-1", breaks="TOY-1", part="sandbox_config")
def logs_by_name(pod, attempt, settings):
    """Pods of one name share a folder for their logs."""
    config = sandbox_config(pod, attempt, settings)
    config.log_directory = config.log_directory.rpartition("_")[0]
    return config


@bug("TOY-BUG-2", breaks="TOY-2")
class IdsWithPaths(Store):
    """An id has a part that looks like a folder."""

    def new_id(self):
        return f"k8s.io/{super().new_id()}"
