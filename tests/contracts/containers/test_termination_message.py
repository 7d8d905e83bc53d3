"""START-11: the end of a container is reported with its own termination message."""

import pytest
from trace_builder import TraceBuilder
from twice import detects

FILE, LOG = "/var/lib/kubelet/pods/uid/containers/c1/1", "/var/log/pods/default_web_uid/c1/0.log"
POLICY = "io.kubernetes.container.terminationMessagePolicy"
WROTE = "2026-01-01T00:00:00Z stdout F sorry\n"


@pytest.mark.parametrize(
    ("policy", "code", "wrote", "reason", "right_text", "wrong_text"),
    [
        ("File", 1, "bye", "Error", "bye", "sorry\n"),
        ("File", 1, "", "Error", "", "sorry\n"),
        ("FallbackToLogsOnError", 1, "", "Error", "sorry\n", ""),
        ("FallbackToLogsOnError", 0, "", "Completed", "", "sorry\n"),
        ("FallbackToLogsOnError", 1, "bye", "Error", "bye", "sorry\n"),
        ("FallbackToLogsOnError", 127, "", "ContainerCannotRun", "", "sorry\n"),
    ],
)
@detects("START-11")
def test_last_words(
    s: TraceBuilder,
    *,
    policy: str,
    code: int,
    wrote: str,
    reason: str,
    right_text: str,
    wrong_text: str,
    right: bool,
) -> None:
    """START-11 breaks when another text is reported than the file's, or the log's where that stands in."""
    web = s.pod(uid="uid")
    sandbox = s.run_sandbox(web)
    config = s.container_config(web, "c1")
    config["annotations"][POLICY] = policy
    config["mounts"] = [{"container_path": "/dev/termination-log", "host_path": FILE}]
    s.record("disk", op="written", path=FILE, text="")
    c1 = s.create(web, sandbox, config=config)
    s.start(c1)
    s.record("disk", op="written", path=LOG, text=WROTE)
    s.record("disk", op="written", path=FILE, text=wrote)
    s.container_status(c1, state="CONTAINER_EXITED", exit_code=code, reason=reason)
    text = right_text if right else wrong_text
    ended = {"exitCode": code, "message": text, "containerID": f"fake://{c1.id}"}
    one = {"name": "c1", "containerID": f"fake://{c1.id}", "state": {"terminated": ended}}
    s.status(web, containerStatuses=[one])
