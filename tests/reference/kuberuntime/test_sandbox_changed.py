"""Whether a pod needs a new sandbox, its attempt number, and the id of the old one."""

import pytest
from decisions_bench import a_pod, a_sandbox, records

from kubelet_reference.api.records import SandboxRecord
from kubelet_reference.kuberuntime.actions.sandbox_changed import SandboxChange, sandbox_changed

KEPT = SandboxChange(changed=False, attempt=2, old_id="s2")
REPLACED = SandboxChange(changed=True, attempt=3, old_id="s2")
REPLACED_SILENTLY = SandboxChange(changed=True, attempt=3, old_id="")


@pytest.mark.parametrize(
    ("sandboxes", "host_network", "expected"),
    [
        pytest.param((), False, SandboxChange(changed=True, attempt=0, old_id=""), id="1"),
        pytest.param((a_sandbox(2), a_sandbox(1)), False, REPLACED, id="2"),
        pytest.param((a_sandbox(2, ready=False),), False, REPLACED, id="3"),
        pytest.param((a_sandbox(2, ready=False), a_sandbox(1)), False, REPLACED, id="3-older-ready"),
        pytest.param((a_sandbox(2, host_network=True),), False, REPLACED_SILENTLY, id="4"),
        pytest.param((a_sandbox(2),), True, REPLACED_SILENTLY, id="4-host"),
        pytest.param((a_sandbox(2, ips=()),), False, REPLACED, id="5"),
        pytest.param((a_sandbox(2),), False, KEPT, id="6-address"),
        pytest.param((a_sandbox(2, ips=None),), False, KEPT, id="6-no-network"),
        pytest.param((a_sandbox(2, host_network=True, ips=()),), True, KEPT, id="6-host"),
        pytest.param((a_sandbox(2), a_sandbox(1, ready=False)), False, KEPT, id="6-older-stopped"),
    ],
)
def test_row(sandboxes: tuple[SandboxRecord, ...], host_network: bool, expected: SandboxChange) -> None:  # noqa: FBT001 - a column of the table
    """Each row of the table decides as it stands (SANDBOX-02)."""
    pod = a_pod(spec={"hostNetwork": host_network})

    assert sandbox_changed(pod, records(sandboxes=sandboxes)) == expected
