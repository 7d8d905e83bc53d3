"""Target files: read strictly, filled with the places of a kubelet."""

from pathlib import Path

import msgspec
import pytest

from kubelet_conformance.targets.choice import Choice, UnknownTargetError
from kubelet_conformance.targets.kubelet_target.choosing import resolved
from kubelet_conformance.targets.kubelet_target.target_file import read_target, reference_process
from kubelet_conformance.targets.process.kubelet_paths import Places, configuration
from kubelet_conformance.targets.process.machine.ports import free_ports
from kubelet_reference.server.loading import load
from kubelet_reference.util.versions import Behaviour

GOOD = """
[kubelet]
name = "kubelet 1.31"
kubernetes = "v1.31.4"
command = ["kubelet", "--config={config}", "--root-dir={root}"]
config = '''
readOnlyPort: {read_only_port}
authentication: {anonymous: {enabled: true}}
staticPodPath: {pods}
'''
pods = "folder"
environment = { HOME = "{root}" }
healthz = "http://127.0.0.1:{healthz_port}/healthz"
start_seconds = 5
capabilities = ["restart", "statuses"]
feature_gates = { EventedPLEG = true }
baseline = "known.toml"
"""


def refused(folder: Path, text: str) -> str:
    """Why a file with this text is refused, without the folder."""
    file = folder / "k.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UnknownTargetError) as caught:
        read_target(file)
    return str(caught.value).replace(f"{folder}/", "")


def test_file_is_read(tmp_path: Path) -> None:
    """Every key arrives, a baseline relative to the file."""
    file = tmp_path / "k.toml"
    file.write_text(GOOD, encoding="utf-8")
    target = read_target(file)

    assert (target.name, target.kubernetes, target.start_seconds) == ("kubelet 1.31", "1.31", 5)
    assert target.command == ("kubelet", "--config={config}", "--root-dir={root}")
    assert target.capabilities == {"restart", "statuses"}
    assert (target.environment, target.feature_gates) == ({"HOME": "{root}"}, {"EventedPLEG": True})
    assert target.baseline == str(tmp_path / "known.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "kubelet: missing: begin with [kubelet]"),
        ("[kubelt]", "kubelt: unknown table: there is one, [kubelet]"),
        ("[kubelet]", "kubelet.command: missing: the program and its arguments"),
        ("kubelet = 1", "kubelet: missing: begin with [kubelet]"),
        ("[kubelet]\ncomand = []", "kubelet.comand: unknown key, did you mean command?"),
        ("[kubelet]\nzzz = 1", "kubelet.zzz: unknown key, known are baseline, capabilities, command,"),
        ("[kubelet]\ncommand = 'kubelet'", "kubelet.command: expected a list of strings"),
        ("[kubelet]\ncommand = []", "kubelet.command: expected a list of strings"),
        ("[kubelet]\ncommand = ['a', 1]", "kubelet.command[1]: expected a string"),
        (
            "[kubelet]\ncommand = ['{rot}']",
            "kubelet.command[0]: nothing is called {rot}: known are {config},",
        ),
        ("[kubelet]\nconfig = 'a: ['", "kubelet.config: no YAML: "),
        ("[kubelet]\nconfig = 'a'", "kubelet.config: expected an object in YAML"),
        ("[kubelet]\npods = 'tape'", 'kubelet.pods: expected "api", "folder" or "url"'),
        ("[kubelet]\nkubernetes = 'new'", "kubelet.kubernetes: expected a version such as 1.32"),
        (
            "[kubelet]\nkubernetes = '9.9'",
            "kubelet.kubernetes: Kubernetes 9.9 is not known; this suite knows 1.24 to 1.36",
        ),
        ("[kubelet]\nkubernetes = 1.32", "kubelet.kubernetes: expected a string"),
        ("[kubelet]\nhealthz = 'https://example.com'", "kubelet.healthz: expected a URL such as http://127"),
        ("[kubelet]\nstart_seconds = 0", "kubelet.start_seconds: expected a number of seconds up to 600"),
        ("[kubelet]\nstop_seconds = true", "kubelet.stop_seconds: expected a number of seconds up to 600"),
        ("[kubelet]\ncapabilities = ['fly']", "kubelet.capabilities: expected a list of some of restart,"),
        ("[kubelet]\ncapabilities = 'fly'", "kubelet.capabilities: expected a list of some of restart,"),
        ("[kubelet]\nfeature_gates = {A = 1}", "kubelet.feature_gates.A: expected true or false"),
        ("[kubelet]\nenvironment = 1", "kubelet.environment: expected a table"),
        ("[kubelet]\nenvironment = {A = 1}", "kubelet.environment.A: expected a string"),
        ("a = ", "no TOML: "),
    ],
)
def test_mistake_is_named(tmp_path: Path, text: str, said: str) -> None:
    """The message names the file and the key, and what was expected there."""
    assert refused(tmp_path, text).startswith(f"k.toml: {said}")


def test_file_that_is_not_there(tmp_path: Path) -> None:
    """A file that cannot be read is named with the reason."""
    with pytest.raises(UnknownTargetError, match=r"none\.toml: cannot read the target file: No such file"):
        read_target(tmp_path / "none.toml")


def test_version_that_is_not_known_is_refused() -> None:
    """Nothing is played as a version that no contract is known for."""
    with pytest.raises(UnknownTargetError, match=r"Kubernetes 9\.9 is not known; this suite knows 1\.24 to"):
        resolved(Choice(kubernetes="9.9"))


def test_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A command that cannot be started is refused before anything is played, with its file and key."""
    path = tmp_path / "mine.toml"
    path.write_text("[kubelet]\ncommand = ['/nonexistent']")

    with pytest.raises(UnknownTargetError, match=r"mine\.toml: kubelet\.command\[0\]: /nonexistent: there"):
        resolved(Choice(str(path), "fake"))


def test_reference_process_behaves_as_asked() -> None:
    """The target that comes along has the version that was chosen."""
    assert reference_process("1.28").kubernetes == "1.28"


def test_reference_process_frees_nothing(tmp_path: Path) -> None:
    """However full this machine is: no pod is evicted and no image removed, unless a scenario wants it."""
    places = Places(tmp_path, "node-1", tmp_path / "cri.sock", "1.32", free_ports())
    file = tmp_path / "kubelet.yaml"
    written = configuration(reference_process(), places, {})
    file.write_bytes(msgspec.yaml.encode(written))
    found = load(str(file), {}, Behaviour.of())

    assert (found.eviction_hard, found.eviction_soft, found.image_gc_high_threshold) == ({}, {}, 100)


def test_configuration_with_what_a_scenario_sets(tmp_path: Path) -> None:
    """Placeholders are filled, other braces stay, and settings become fields."""
    file = tmp_path / "k.toml"
    file.write_text(GOOD, encoding="utf-8")
    places = Places(tmp_path / "n", "node-1", tmp_path / "cri.sock", "1.31", free_ports(), "http://u")
    settings = {
        "static_pod_path": "/etc/kubernetes/one.yaml",
        "sync_frequency": 0.5,
        "max_container_restart_period": 20,
        "max_pods": 2,
    }
    found = configuration(read_target(file), places, settings)

    assert found == {
        "readOnlyPort": places.ports[1],
        "authentication": {"anonymous": {"enabled": True}},
        "staticPodPath": f"{tmp_path}/n/etc/kubernetes/one.yaml",
        "syncFrequency": "0.5s",
        "crashLoopBackOff": {"maxContainerRestartPeriod": "20s"},
        "maxPods": 2,
        "featureGates": {"KubeletCrashLoopBackOffMax": True},
    }
    assert (
        places.filled("{node} {runtime} {root}") == f"node-1 unix://{tmp_path}/cri.sock {tmp_path}/n/kubelet"
    )
