"""Probes that run a command: when they are executed, what their results lead to."""

import re
from typing import Any

from kubelet_conformance.node import Node, container, exec_probe, pod, witness

Json = dict[str, Any]


@witness("PROBE-01", "PROBE-03", "PROBE-05", "PROBE-27")
async def test_each_probe_has_its_own_cadence(node: Node) -> None:
    """Every probe of every container keeps its own period, however long the others take."""
    first = container(
        "c1",
        livenessProbe=exec_probe("x 0 0", periodSeconds=3),
        readinessProbe=exec_probe("x 0 1", periodSeconds=2, timeoutSeconds=2),
    )
    second = container(
        "c2",
        startupProbe=exec_probe("xf up", periodSeconds=2, failureThreshold=30),
        livenessProbe=exec_probe("x 0 0.5", periodSeconds=5),
        readinessProbe=exec_probe("x 0 0", periodSeconds=4),
    )
    web = await node.run(first, second)
    await node.wait(7)
    node.runtime.set_file("up", there=True)
    await web.until_condition("Ready")
    await node.wait(25)


@witness("PROBE-02", "PROBE-11", "PROBE-24", "PROBE-23")
async def test_new_instance_begins_unready(node: Node) -> None:
    """A container with a readiness probe is not ready before its first success, each instance anew."""
    await node.wait(25)
    probed = container("c1", readinessProbe=exec_probe("x 0 0", periodSeconds=20))
    web = await node.run(probed, container("c2"))
    await web.until_condition("Ready", within=8)
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)
    await web.until_condition("Ready", within=8)


@witness("PROBE-03", "PROBE-08", "CSTAT-09")
async def test_nothing_is_probed_before_startup(node: Node) -> None:
    """Until the startup probe has succeeded no other probe runs, and afterwards it runs no more."""
    slow = container(
        startupProbe=exec_probe("xf up", periodSeconds=2, failureThreshold=30),
        livenessProbe=exec_probe("x 1 0", periodSeconds=3, failureThreshold=9),
        readinessProbe=exec_probe("x 0 0", periodSeconds=3),
    )
    web = await node.run(slow)
    await node.wait(9)
    node.runtime.set_file("up", there=True)
    await web.until_condition("Ready")
    await node.wait(10)


@witness("PROBE-04")
async def test_initial_delay_counts_from_the_start(node: Node) -> None:
    """A probe waits for its initial delay since its container's start, in each instance."""
    probe = exec_probe("x 0 0", initialDelaySeconds=10, periodSeconds=2)
    web = await node.run(container(readinessProbe=probe))
    await web.until_condition("Ready")
    web.exit(code=1)
    await web.until_running("c1", attempt=1)
    await node.wait(15)


@witness("PROBE-06")
async def test_failures_must_come_in_a_row(node: Node) -> None:
    """Failures with a success among them do not add up, nor do successes with a failure among them."""
    node.runtime.set_file("alive", there=True)
    liveness = exec_probe("xf alive", periodSeconds=2, failureThreshold=3)
    readiness = exec_probe("xf alive", periodSeconds=3, failureThreshold=2, successThreshold=2)
    web = await node.run(
        container("c1", livenessProbe=liveness), container("c2", readinessProbe=readiness), grace=3
    )
    for _ in range(3):
        node.runtime.set_file("alive", there=False)
        await node.wait(4)
        node.runtime.set_file("alive", there=True)
        await node.wait(4)
    node.runtime.set_file("alive", there=False)
    await web.until_called("StopContainer", "c1")
    node.runtime.set_file("alive", there=True)
    await web.until_running("c1", attempt=1)
    await web.until_condition("Ready")


@witness("PROBE-08", kubernetes=(1, 28), cpu_millicores=1000)
async def test_startup_is_not_asked_twice(node: Node) -> None:
    """A startup probe stops as soon as it has succeeded, though the loop has had no time to report it."""
    node.api.needs_ordinary_pods()
    much = {"requests": {"cpu": "600m"}}
    await node.run(container(command="run stopdelay=8 stopcode=143", resources=much), name="goes", grace=9)
    probe = exec_probe("x 0 0", periodSeconds=1, initialDelaySeconds=4)
    web = await node.run(container(startupProbe=probe, readinessProbe=exec_probe("x 0 1")))
    await node.wait(2)
    urgent = node.want(pod(container(resources=much), name="urgent", priority=2_000_000_000))
    await web.until_started("c1")
    await urgent.until_running("c1", within=60)


@witness("PROBE-07", "PROBE-08", "RESTART-11")
async def test_failing_liveness_kills_once(node: Node) -> None:
    """A container whose liveness has failed is stopped at once, and is not probed while it stops."""
    probe = exec_probe("xf alive", periodSeconds=2, failureThreshold=2, terminationGracePeriodSeconds=9)
    node.runtime.set_file("alive", there=True)
    web = await node.run(container(command="run stopdelay=7", livenessProbe=probe))
    node.runtime.set_file("alive", there=False)
    await web.until_called("StopContainer", "c1")
    await web.until_called("StopContainer", "c1", count=2)
    node.runtime.set_file("alive", there=True)
    await node.wait(20)


@witness("PROBE-09")
async def test_failing_startup_kills(node: Node) -> None:
    """A container that does not come up in time is killed and started again."""
    probe = exec_probe("xf up", periodSeconds=2, failureThreshold=3)
    web = await node.run(container(startupProbe=probe), grace=3)
    await web.until_running("c1", attempt=1)
    node.runtime.set_file("up", there=True)
    await web.until_condition("Ready")


@witness("PROBE-10", "PROBE-22")
async def test_failing_readiness_never_kills(node: Node) -> None:
    """A container that is never ready runs on, and each failed probe is reported by an event."""
    web = await node.run(container(readinessProbe=exec_probe("x 1 0", periodSeconds=2, failureThreshold=1)))
    await web.until_event("Unhealthy", count=12)


@witness("PROBE-11", "PROBE-12")
async def test_ended_container_is_not_probed(node: Node) -> None:
    """A container that has ended for good is not ready and not probed, nor is anything of an ended pod."""
    probe = exec_probe("x 0 0", periodSeconds=1)
    web = await node.run(
        container("c1", readinessProbe=probe), container("c2", livenessProbe=probe), restart="Never"
    )
    await web.until_condition("Ready")
    web.exit("c1", 0)
    await web.until_condition("Ready", status="False")
    await node.wait(5)
    web.exit("c2", 0)
    await web.until_phase("Succeeded")
    await node.wait(5)


@witness("PROBE-13", "TERM-14")
async def test_liveness_ends_with_the_deletion(node: Node) -> None:
    """A pod that is deleted is not probed for liveness any more, and goes on being probed for readiness."""
    liveness = exec_probe("xf alive", periodSeconds=1, failureThreshold=3, terminationGracePeriodSeconds=2)
    readiness = exec_probe("xf ready", periodSeconds=1, failureThreshold=2)
    node.runtime.set_file("alive", there=True)
    node.runtime.set_file("ready", there=True)
    web = await node.run(
        container(command="run stopdelay=8", livenessProbe=liveness, readinessProbe=readiness), grace=20
    )
    await web.until_condition("Ready")
    await node.wait(3)  # A sync in progress would go on, and may act upon a probe.
    web.delete()
    node.runtime.set_file("alive", there=False)
    node.runtime.set_file("ready", there=False)
    await web.until_condition("Ready", status="False")
    await web.until_gone()


@witness("PROBE-13", undisturbed="its pod has a deadline, which a fault may use up")
async def test_liveness_ends_with_every_end_of_a_pod(node: Node) -> None:
    """A pod past its deadline is not probed for liveness any more, though it was not deleted."""
    liveness = exec_probe("xf alive", periodSeconds=1, failureThreshold=30)
    node.runtime.set_file("alive", there=True)
    slow = container(command="run stopdelay=12", livenessProbe=liveness)
    web = await node.run(slow, grace=20, activeDeadlineSeconds=10)
    await web.until_event("DeadlineExceeded")
    node.runtime.set_file("alive", there=False)
    await web.until_phase("Failed")


@witness("PROBE-14")
async def test_probe_without_result_changes_nothing(node: Node) -> None:
    """An execution that brings no result is tried three times in all, and then counts neither way."""
    liveness = exec_probe("x 0 0", periodSeconds=3, failureThreshold=1)
    readiness = exec_probe("x 0 0.1", periodSeconds=3, failureThreshold=1)
    web = await node.run(container(livenessProbe=liveness, readinessProbe=readiness))
    await web.until_condition("Ready")
    with node.fault("ExecSync", code="UNKNOWN", message="no shim"):
        await node.wait(8)
    await node.wait(8)


@witness("PROBE-15", "CRI-26")
async def test_probe_that_takes_too_long_has_failed(node: Node) -> None:
    """A command that is not done within its timeout has failed, one that is done says so itself."""
    slow = container("c1", readinessProbe=exec_probe("x 0 5", periodSeconds=4, timeoutSeconds=2))
    quick = container("c2", readinessProbe=exec_probe("x 0 1", periodSeconds=4, timeoutSeconds=2))
    web = await node.run(slow, quick)
    await web.until_event("Unhealthy", count=2)
    await web.until(lambda: bool(web.container_status("c2").get("ready")), "c2 ready")


@witness("PROBE-21")
async def test_command_of_a_probe_is_expanded(node: Node) -> None:
    """References to the container's environment in a probe's command are replaced, and nothing else is."""
    probe = exec_probe("x $(CODE) 0 $HOME", periodSeconds=2)
    await node.run(container(env=[{"name": "CODE", "value": "0"}], readinessProbe=probe))
    await node.wait(5)


def http_probe(path: str, **fields: Any) -> Json:  # noqa: ANN401 - fields of the Probe type
    """A probe that asks a server for a path."""
    return {"httpGet": {"path": path, "port": "web"}, "periodSeconds": 2, "failureThreshold": 1, **fields}


def tcp_probe(port: int) -> Json:
    """A probe that opens a connection."""
    return {"tcpSocket": {"port": port}, "periodSeconds": 2, "failureThreshold": 1}


def grpc_probe(service: str) -> Json:
    """A probe that asks a health service."""
    return {"grpc": {"port": 9000, "service": service}, "periodSeconds": 2, "failureThreshold": 1}


@witness("PROBE-16", "PROBE-20")
async def test_status_of_http_decides(node: Node) -> None:
    """A probe over HTTP succeeds with a status from 200 to 399, and with a redirect to another host."""
    node.runtime.answer_http("/fine", 204)
    node.runtime.answer_http("/gone", 404)
    node.runtime.answer_http("/mute", 0)
    node.runtime.answer_http("/slow", 200, delay=5)
    node.runtime.answer_http("/near", 302, location="/fine2")
    node.runtime.answer_http("/away", 301, location="http://elsewhere.example/")
    ports = [{"name": "web", "containerPort": 8080}]
    names = ("fine", "gone", "mute", "slow", "near", "away")
    await node.run(*(container(name, ports=ports, readinessProbe=http_probe(f"/{name}")) for name in names))
    await node.wait(10)


_HEALTHY, _ILL = {200, 299, 300, 399}, {199, 400, 500}
_REDIRECTS = 10
"""So many in a row are one too many."""
_FOLLOWED = (301, 302, 303, 307, 308)


@witness("PROBE-16")
async def test_statuses_at_the_limits_and_many_redirects(node: Node) -> None:
    """A status is healthy from 200 to 399, and so is what nine redirects lead to."""
    for status in _HEALTHY | _ILL:
        node.runtime.answer_http(f"/s{status}", status)
    for number in range(_REDIRECTS):
        node.runtime.answer_http(f"/r{number}", 302, location=f"/r{number + 1}")
    for status in (300, *_FOLLOWED):
        node.runtime.answer_http(f"/to{status}", status, location="/s400")
    ports = [{"name": "web", "containerPort": 8080}]
    healthy = {"r1", "to300", *(f"s{status}" for status in _HEALTHY)}
    ill = {"r0", *(f"s{status}" for status in _ILL), *(f"to{status}" for status in _FOLLOWED)}
    names = sorted(ill | healthy)
    web = await node.run(
        *(container(name, ports=ports, readinessProbe=http_probe(f"/{name}")) for name in names)
    )
    await node.wait(12)

    def wrong() -> list[str]:
        return [name for name in names if web.container_status(name)["ready"] is not (name in healthy)]

    await node.expect("statuses are healthy from 200 to 399, after 9 redirects", wrong, "PROBE-16")


_NO_HEADERS = [{"name": "user-agent", "value": ""}, {"name": "Accept", "value": ""}]
_HEADERS = [{"name": "x-own", "value": "any"}, {"name": "X-Empty", "value": ""}]
_OTHER_HEADERS = [{"name": "User-Agent", "value": "mine"}, {"name": "accept", "value": "text/plain"}]


@witness("PROBE-20")
async def test_requests_have_the_headers_of_their_spec(node: Node) -> None:
    """A request has the headers of its spec, and two more, which a spec may replace or leave out."""
    usual = {"user-agent": r"kube-probe/1\.\d+\+?", "accept": r"\*/\*", "x-own": ""}
    cases: dict[str, tuple[list[Json], dict[str, str]]] = {
        "/usual": ([], usual),
        "/own": (_HEADERS, {**usual, "x-own": "any"}),
        "/other": (_OTHER_HEADERS, {"user-agent": "mine", "accept": "text/plain"}),
        "/none": (_NO_HEADERS, {"user-agent": "", "accept": ""}),
    }
    hook = {"postStart": {"httpGet": {"path": "/hook", "port": 8080, "httpHeaders": _HEADERS}}}
    probed = [
        container(
            f"c{number}",
            lifecycle=hook,
            readinessProbe={"httpGet": {"path": path, "port": 8080, "httpHeaders": given}},
        )
        for number, (path, (given, _)) in enumerate(cases.items())
    ]
    web = await node.run(*probed)
    await web.until_condition("Ready")
    expected = {path: headers for path, (_, headers) in cases.items()}
    expected["/hook"] = {"user-agent": r"kube-lifecycle/1\.\d+\+?", "accept": r"\*/\*", "x-own": "any"}

    def wrong() -> list[str]:
        found = [
            f"{name} of {path}: {sent!r}"
            for path, headers in expected.items()
            for name, value in headers.items()
            if not re.fullmatch(value, sent := node.runtime.headers(path).get(name, ""))
        ]
        is_kept = "x-empty" in node.runtime.headers("/own")
        return found + ([] if is_kept else ["an empty header of its own is left out"])

    await node.expect("requests have the headers of their specs", wrong, "PROBE-20")


_OUTPUT_MAX = 10_240
"""So many bytes of a command's output are kept."""


@witness("PROBE-22", undisturbed="it waits for what a fault lets pass unseen")
async def test_failed_probes_say_why(node: Node) -> None:
    """The event of a failed probe says what was answered, of a command 10 KiB of its output at most."""
    node.runtime.answer_http("/health", 500)
    node.runtime.report_health("down", "NOT_SERVING")
    ports = [{"name": "web", "containerPort": 8080}]
    long = exec_probe(f"x 1 0 bytes={_OUTPUT_MAX + 1}", periodSeconds=2)
    web = await node.run(
        container("exec", readinessProbe=long),
        container("http", ports=ports, readinessProbe=http_probe("/health")),
        container("grpc", readinessProbe=grpc_probe("down")),
    )
    await node.wait(8)
    causes = {each.message.partition(" failed: ")[2] for each in web.events("Unhealthy")}
    expected = {
        "\0" * _OUTPUT_MAX,
        "HTTP probe failed with statuscode: 500",
        'service unhealthy (responded with "NOT_SERVING")',
    }
    # A busy kubelet has others too: a probe that it could not make in time.
    missing = [text[:99] for text in expected - causes]
    await node.expect("events say why probes fail", lambda: missing, "EVENTS-01")


@witness("PROBE-14", undisturbed="it waits for what a fault lets pass unseen")
async def test_probe_without_result_is_reported(node: Node) -> None:
    """An execution that brings no result is reported by an event too, with the error."""
    with node.fault("ExecSync", code="UNKNOWN", message="no shim"):
        web = await node.run(container(livenessProbe=exec_probe("x 0 0", periodSeconds=3)))
        await web.until_event("Unhealthy")
    messages = [each.message for each in web.events("Unhealthy")]
    has_it = any("probe errored" in text and "no shim" in text for text in messages)
    await node.expect("the event has the error", lambda: [] if has_it else messages, "EVENTS-01")


@witness("PROBE-17")
async def test_body_of_a_failure_is_kept_quiet(node: Node) -> None:
    """What a server answers when a probe fails is not repeated in an event."""
    node.runtime.answer_http("/health", 500, body="the password is swordfish")
    ports = [{"name": "web", "containerPort": 8080}]
    web = await node.run(container(ports=ports, readinessProbe=http_probe("/health")))
    await web.until_event("Unhealthy", count=2)


@witness("PROBE-18", "PROBE-20")
async def test_open_port_is_healthy(node: Node) -> None:
    """A probe that opens a connection succeeds where it can."""
    node.runtime.open_port(7001, is_open=False)
    closed, opened = tcp_probe(7001), tcp_probe(7002)
    web = await node.run(container("c1", readinessProbe=closed), container("c2", readinessProbe=opened))
    await web.until_event("Unhealthy", count=2)
    node.runtime.open_port(7001, is_open=True)
    await web.until_condition("Ready")
    await node.wait(5)


@witness("PROBE-19")
async def test_health_service_has_to_serve(node: Node) -> None:
    """A gRPC probe succeeds with SERVING only."""
    node.runtime.report_health("mute", "")
    node.runtime.report_health("down", "NOT_SERVING")
    node.runtime.report_health("old", "UNIMPLEMENTED")
    names = ("well", "mute", "down", "old")
    web = await node.run(*(container(name, readinessProbe=grpc_probe(name)) for name in names))
    await web.until_event("Unhealthy", count=6, contract="PROBE-19")
    for name in names:
        node.runtime.report_health(name, "SERVING")
    await web.until_condition("Ready", contract="PROBE-19")
    await node.wait(6)


@witness("PROBE-26")
async def test_late_result_hits_no_other(node: Node) -> None:
    """A failure that comes when its container is gone does nothing to the next instance."""
    probe = exec_probe("x 0 0", periodSeconds=8, failureThreshold=1)
    web = await node.run(container(livenessProbe=probe), grace=3)
    with node.fault("ExecSync", effect="hang", times=1):
        await web.until_called("ExecSync", done=False)
        web.exit(code=1)
        await web.until_running("c1", attempt=1)
        await web.until_called("ExecSync", contract="PROBE-26")
    await node.wait(20)


@witness("PROBE-28", "RESTART-10", undisturbed="a container whose stop comes late is killed otherwise")
async def test_liveness_under_never_ends_the_pod(node: Node) -> None:
    """A container that is never restarted is stopped when its liveness fails, and stays so."""
    job = await node.run(
        container(livenessProbe=exec_probe("x 1 0", periodSeconds=2, failureThreshold=2)),
        name="job",
        restart="Never",
        grace=4,
    )
    await job.until_phase("Succeeded")
    await node.wait(5)


@witness("PROBE-25", kubernetes=(1, 35), undisturbed="it waits for what a fault lets pass unseen")
async def test_readiness_is_kept_over_a_restart_of_the_kubelet(node: Node) -> None:
    """A kubelet that comes back leaves a container ready that was so long before it."""
    ready = exec_probe("x 0 0", periodSeconds=10)
    started = exec_probe("x 0 0.1", periodSeconds=1)
    web = await node.run(container("c1", readinessProbe=ready, startupProbe=started), container("c2"))
    await web.until_condition("Ready")
    await node.wait(30)
    await node.restart_kubelet()
    web.exit("c2", 1)
    await web.until_running("c2", attempt=1)
    await node.wait(15)
    web.exit("c1", 1)
    await web.until_condition("Ready", status="False")
    await web.until_condition("Ready")


@witness("PROBE-02", kubernetes=(1, 35))
async def test_readiness_is_not_inherited(node: Node) -> None:
    """An instance that came while the API server was away is not ready for what the one before it was."""
    node.runtime.set_file("ready", there=True)
    ready = exec_probe("xf ready", periodSeconds=10)
    web = await node.run(container("c1", readinessProbe=ready), container("c2"))
    await web.until_condition("Ready")
    node.runtime.set_file("ready", there=False)
    with node.outage():
        web.exit("c1", 1)
        await node.wait(25)
        await node.kubelet.kill()
    await node.kubelet.start()
    await node.wait(15)
    web.exit("c2", 1)
    await web.until_running("c2", attempt=1)


@witness("PROBE-25", until=(1, 34))
async def test_readiness_after_a_restart_of_the_kubelet(node: Node) -> None:
    """A kubelet that comes back shows a probed container as not ready until its probe has succeeded again."""
    web = await node.run(container(readinessProbe=exec_probe("x 0 0", periodSeconds=10)))
    await web.until_condition("Ready")
    await node.wait(30)
    await node.restart_kubelet()
    await node.wait(4)
    await web.until_condition("Ready")


@witness("PROBE-01")
async def test_init_containers_are_not_probed(node: Node) -> None:
    """While init containers run no probe of the app containers does."""
    liveness, readiness = exec_probe("x 0 0", periodSeconds=1), exec_probe("x 0 0.1", periodSeconds=1)
    probed = container(livenessProbe=liveness, readinessProbe=readiness)
    web = node.want(pod(probed, init=(container("i1", "exit 0 5"),)))
    await web.until_condition("Ready")
