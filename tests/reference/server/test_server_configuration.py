"""The configuration: read strictly from a file, changed by flags, refused by file and field."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import pytest

from kubelet_reference.server.command import OLDEST, run
from kubelet_reference.server.configuration import Configuration
from kubelet_reference.server.errors import BadInputError
from kubelet_reference.server.loading import GATES_SINCE, load, with_gates
from kubelet_reference.server.readers import parse_duration, socket_of
from kubelet_reference.server.run import Wanted, settings_of
from kubelet_reference.util.versions import Behaviour

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
NEWEST = Behaviour.of()
Flags: TypeAlias = Mapping[str, str | int]
NO_FLAGS: Flags = {}


def loaded(folder: Path, text: str = "", head: str = HEAD, flags: Flags = NO_FLAGS) -> Configuration:
    """The configuration of a file with this text."""
    file = folder / "k.yaml"
    file.write_text(head + text, encoding="utf-8")
    return load(str(file), flags, NEWEST)


def refused(folder: Path, text: str = "", head: str = HEAD, flags: Flags = NO_FLAGS) -> str:
    """Why it is refused, without the folder."""
    with pytest.raises(BadInputError) as caught:
        loaded(folder, text, head, flags)
    return str(caught.value).replace(f"{folder}/", "")


def test_nothing_given_is_the_kubelets_defaults(tmp_path: Path) -> None:
    """A file that says nothing, and no file, are the defaults."""
    assert loaded(tmp_path) == load(None, {}, NEWEST) == Configuration()


def test_every_field_is_read(tmp_path: Path) -> None:
    """Each field of the file arrives, in the units of the core."""
    found = loaded(
        tmp_path,
        """
staticPodPath: /m
staticPodURL: https://example.com/pods
staticPodURLHeader: {X-Node: [a, b]}
fileCheckFrequency: 1m30s
httpCheckFrequency: 500ms
syncFrequency: 1.5h
runtimeRequestTimeout: 0s
containerRuntimeEndpoint: unix:///run/a.sock
imageServiceEndpoint: unix:///run/b.sock
address: "::1"
port: 1
readOnlyPort: 2
healthzBindAddress: 127.0.0.2
healthzPort: 3
podLogsDir: /logs
maxPods: 0
systemReserved: {cpu: 500m, memory: 1Gi}
crashLoopBackOff: {maxContainerRestartPeriod: 10s}
serializeImagePulls: false
registryPullQPS: 0
registryBurst: 4
featureGates: {KubeletCrashLoopBackOffMax: true}
""",
    )

    assert found == Configuration(
        static_pod_path="/m",
        static_pod_url="https://example.com/pods",
        static_pod_url_header={"X-Node": ("a", "b")},
        file_check_frequency=90,
        http_check_frequency=0.5,
        sync_frequency=5400,
        runtime_request_timeout=120,
        runtime_socket="/run/a.sock",
        image_socket="/run/b.sock",
        address="::1",
        port=1,
        read_only_port=2,
        healthz_address="127.0.0.2",
        healthz_port=3,
        pod_logs_dir="/logs",
        max_pods=110,
        system_reserved={"cpu": "500m", "memory": "1Gi"},
        max_container_restart_period=10,
        serialize_image_pulls=False,
        registry_pull_qps=0,
        registry_burst=4,
        feature_gates={"KubeletCrashLoopBackOffMax": True},
    )


def test_flags_win_and_gates_are_merged(tmp_path: Path) -> None:
    """A flag replaces what the file says; of feature gates it replaces those that it names."""
    found = loaded(
        tmp_path,
        "port: 5\nsyncFrequency: 10s\nfeatureGates: {EventedPLEG: false, PodLifecycleSleepAction: true}\n",
        flags={"port": 7, "feature-gates": "KubeletCrashLoopBackOffMax=true, EventedPLEG=0"},
    )

    assert (found.port, found.sync_frequency) == (7, 10)
    assert found.feature_gates == {
        "EventedPLEG": False,
        "PodLifecycleSleepAction": True,
        "KubeletCrashLoopBackOffMax": True,
    }


def test_relative_path_is_that_of_the_file(tmp_path: Path) -> None:
    """A manifest folder in the file is relative to the file, as in the kubelet."""
    assert loaded(tmp_path, "staticPodPath: m\n").static_pod_path == str(tmp_path / "m")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("staticPodPth: /m", "staticPodPth: unknown field, did you mean staticPodPath?"),
        ("xyz: 1", "xyz: unknown field: leave it out"),
        (
            "cgroupDriver: systemd",
            "cgroupDriver: a kubelet has this field, kubelet-reference does not: leave it out",
        ),
        ("maxPods: many", 'maxPods: expected a whole number of at least 0, got "many"'),
        (
            "systemReserved: {pid: 9}",
            "systemReserved.pid: kubelet-reference keeps back cpu and memory only: leave it out",
        ),
        (
            "systemReserved: {cpu: 0}",
            "systemReserved.cpu: expected a quantity above 0 such as 500m or 1Gi, got 0",
        ),
        ("maxPods: true", "maxPods: expected a whole number of at least 0, got true"),
        ("port: 70000", "port: expected a whole number from 0 to 65535, got 70000"),
        ("syncFrequency: soon", 'syncFrequency: expected a duration such as 1m30s, got "soon"'),
        ("syncFrequency: 20", "syncFrequency: expected a duration such as 1m30s, got 20"),
        ("syncFrequency: -1s", 'syncFrequency: expected a duration of at least 0.001 s, got "-1s"'),
        ("serializeImagePulls: 'yes'", 'serializeImagePulls: expected true or false, got "yes"'),
        (
            "address: 0.0.0.0",
            (
                "address: expected a loopback address such as 127.0.0.1, "
                'for what is served is served to anybody, got "0.0.0.0"'
            ),
        ),
        ("staticPodURL: ftp://a/b", 'staticPodURL: expected an http:// or https:// URL, got "ftp://a/b"'),
        (
            "staticPodURL: 'http://[::1'",
            'staticPodURL: expected an http:// or https:// URL, got "http://[::1"',
        ),
        ("staticPodURLHeader: {A: b}", 'staticPodURLHeader.A: expected a list of strings, got "b"'),
        ("staticPodURLHeader: [A]", "staticPodURLHeader: expected an object, got a list"),
        (
            "podLogsDir: /a/../b",
            (
                "podLogsDir: expected an absolute path of ASCII characters without dots in between, "
                'got "/a/../b"'
            ),
        ),
        ("crashLoopBackOff: 1", "crashLoopBackOff: expected an object, got 1"),
        (
            "crashLoopBackOff: {max: 1s}",
            "crashLoopBackOff.max: unknown field, did you mean maxContainerRestartPeriod?",
        ),
        (
            "crashLoopBackOff: {maxContainerRestartPeriod: 301s}",
            ('crashLoopBackOff.maxContainerRestartPeriod: expected a duration from 1 s to 300 s, got "301s"'),
        ),
        (
            "crashLoopBackOff: {maxContainerRestartPeriod: 9s}",
            (
                "crashLoopBackOff.maxContainerRestartPeriod: may only be set with the feature gate "
                "KubeletCrashLoopBackOffMax: add it to featureGates"
            ),
        ),
        (
            "featureGates: {Sidecar: true}",
            f"featureGates.Sidecar: unknown feature gate; known are {', '.join(sorted(GATES_SINCE))}",
        ),
        (
            "featureGates: {AllAlpha: true}",
            (
                "featureGates.AllAlpha: a kubelet has this feature gate, kubelet-reference does not: "
                "leave it out"
            ),
        ),
        (
            "featureGates: {PodLifecycleSleepAction: false}",
            (
                "featureGates.PodLifecycleSleepAction: can only be true in kubelet-reference: "
                "sleep hooks are always run"
            ),
        ),
        ("featureGates: {EventedPLEG: 1}", "featureGates.EventedPLEG: expected true or false, got 1"),
        (
            "containerRuntimeEndpoint: tcp://a:1",
            (
                "containerRuntimeEndpoint: expected a unix socket with an absolute path, such as "
                "unix:///run/containerd/containerd.sock, got 'tcp://a:1'"
            ),
        ),
        ("maxPods: 1\nmaxPods: 2", "not YAML: line 4, column 1: the key 'maxPods' is given twice"),
        ("a: [", "not YAML: line 4, column 1: expected the node content, but found '<stream end>'"),
    ],
)
def test_mistake_in_the_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    """The message names the file, the field, what was expected, and what stands there."""
    assert refused(tmp_path, f"{text}\n") == f"k.yaml: {said}"


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    """Several mistakes are one message."""
    assert refused(tmp_path, "x: 1\nport: -1\n") == (
        "k.yaml: x: unknown field: leave it out; port: expected a whole number from 0 to 65535, got -1"
    )


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("kind: KubeletConfiguration\n", "apiVersion: expected kubelet.config.k8s.io/v1beta1, got null"),
        (
            "apiVersion: v1\nkind: Pod\n",
            (
                'apiVersion: expected kubelet.config.k8s.io/v1beta1, got "v1"; '
                'kind: expected KubeletConfiguration, got "Pod"'
            ),
        ),
        ("", "expected an object of kind KubeletConfiguration, got null"),
        ("- 1\n", "expected an object of kind KubeletConfiguration, got a list"),
    ],
)
def test_another_kind_is_refused(tmp_path: Path, head: str, said: str) -> None:
    """Only a KubeletConfiguration of v1beta1 is one."""
    assert refused(tmp_path, "", head) == f"k.yaml: {said}"


def test_file_that_is_not_there(tmp_path: Path) -> None:
    """A file that cannot be read is named with the reason."""
    with pytest.raises(
        BadInputError, match=r"none\.yaml: cannot read the configuration: No such file or directory"
    ):
        load(str(tmp_path / "none.yaml"), {}, NEWEST)


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("port", 65536, "--port: expected a whole number from 0 to 65535, got 65536"),
        (
            "feature-gates",
            "A",
            '--feature-gates: expected feature gates such as Name=true,Other=false, got "A"',
        ),
        ("feature-gates", "A=maybe", '--feature-gates.A: expected true or false, got "maybe"'),
        (
            "feature-gates",
            "PodLifecycleSleepAction=false",
            (
                "--feature-gates.PodLifecycleSleepAction: can only be true in kubelet-reference: "
                "sleep hooks are always run"
            ),
        ),
    ],
)
def test_mistake_in_a_flag_is_named(tmp_path: Path, flag: str, value: str | int, said: str) -> None:
    """The message names the flag."""
    assert refused(tmp_path, flags={flag: value}) == said


def test_gates_change_the_behaviour() -> None:
    """A gate that the version has switches what it is about; an older version has no such gate."""
    changed = with_gates(NEWEST, {"PodReadyToStartContainersCondition": False})

    assert NEWEST.reports_ready_to_start_containers
    assert not changed.reports_ready_to_start_containers
    with pytest.raises(BadInputError, match=r"Kubernetes 1\.26 has no such gate, 1\.28 is the first"):
        load(None, {"feature-gates": "PodReadyToStartContainersCondition=true"}, Behaviour.of("1.26"))


@pytest.mark.parametrize("gate", GATES_SINCE)
def test_every_gate_of_the_core_is_offered(gate: str) -> None:
    """Each gate can be opened from the first version on that has it."""
    first = Behaviour.of(f"1.{max(GATES_SINCE[gate], OLDEST)}")

    assert load(None, {"feature-gates": f"{gate}=true"}, first).feature_gates == {gate: True}


def test_restart_period_needs_its_gate(tmp_path: Path) -> None:
    """A maxContainerRestartPeriod may be set where its gate is on, be it by itself."""
    file = tmp_path / "k.yaml"
    file.write_text(f"{HEAD}crashLoopBackOff: {{maxContainerRestartPeriod: 9s}}\n", encoding="utf-8")

    assert load(str(file), {}, Behaviour.of("1.35")).max_container_restart_period == 9
    with pytest.raises(BadInputError, match="may only be set with the feature gate"):
        load(str(file), {"feature-gates": "KubeletCrashLoopBackOffMax=false"}, Behaviour.of("1.35"))


def test_settings_of_the_core() -> None:
    """What the core reads follows from the configuration and the machine."""
    found = settings_of(Wanted(Configuration(max_pods=3, sync_frequency=5), NEWEST, "n", "/r"))

    assert (found.max_pods, found.sync_frequency, found.node_name, found.root_dir) == (3, 5, "n", "/r")
    assert (found.with_api_server, found.max_container_restart_period) == (False, None)
    assert found.cpu_millicores >= 1000
    assert found.memory_bytes > 1 << 20


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1m30s", 90),
        ("1.5h", 5400),
        ("300ms", 0.3),
        ("2us", 2e-06),
        ("+5s", 5),
        ("-1.s", -1),
        (".5s", 0.5),
        ("0", 0),
    ],
)
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    """Every form that Go takes."""
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "s", "1m 30s", "1d", "1,5s", "9999999h", "1s" * 60, "--1s", "\u0661s"]
)
def test_other_durations_are_refused(text: str) -> None:
    """Anything else is an error, not zero."""
    with pytest.raises(ValueError, match="expected"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("endpoint", "path"),
    [("unix:///run/a.sock", "/run/a.sock"), ("/run/a.sock", "/run/a.sock"), ("unix:////run//a", "/run/a")],
)
def test_endpoints(endpoint: str, path: str) -> None:
    """A unix address, or a bare path."""
    assert socket_of(endpoint) == path


@pytest.mark.parametrize(
    "endpoint", ["unix://run/a.sock", "run/a.sock", "npipe:////./pipe/a", f"/{'a' * 120}"]
)
def test_other_endpoints_are_refused(endpoint: str) -> None:
    """A relative path, another protocol, and a path that fits no address."""
    with pytest.raises(ValueError, match="expected"):
        socket_of(endpoint)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bogus"], "No such option '--bogus'"),
        (
            ["--cloud-provider=x"],
            "--cloud-provider: a kubelet has this flag, kubelet-reference does not: leave it out",
        ),
        (
            ["--config=/none.yaml"],
            "error: /none.yaml: cannot read the configuration: No such file or directory",
        ),
        (["--kubernetes=2.0"], "error: --kubernetes: expected a Kubernetes version such as 1.32, got '2.0'"),
        (["--kubernetes=1.x"], "error: --kubernetes: expected a Kubernetes version such as 1.32, got '1.x'"),
        (["--kubernetes=1"], "error: --kubernetes: expected a Kubernetes version such as 1.32, got '1'"),
        (["--kubernetes=1.20"], "error: --kubernetes: expected Kubernetes 1.24 or newer, got 1.20"),
        (
            ["--hostname-override=a/b"],
            "error: --hostname-override: expected a name of small letters, digits, '-' and '.', got 'a/b'",
        ),
        (["--v=-1"], "Invalid value for '-v' / '--v'"),
        (
            ["--max-pods=5"],
            "kubelet-reference does not: set its field in the file of --config",
        ),
        (["--port"], "Option '--port' requires an argument"),
        (["--port=x"], "Invalid value for '--port': 'x' is not a valid integer"),
        (["extra"], "Got unexpected extra argument (extra)"),
    ],
)
def test_command_line_mistakes_end_with_two(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """Bad usage is one message and exit code 2, whatever comes of it."""
    code = run(arguments)

    assert code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "said"), [("--version", "kubelet-reference"), ("--help", "--pod-manifest-path")]
)
def test_help_and_version(capsys: pytest.CaptureFixture[str], flag: str, said: str) -> None:
    """Both are reported on standard output."""
    assert run([flag]) == 0
    assert said in capsys.readouterr().out
