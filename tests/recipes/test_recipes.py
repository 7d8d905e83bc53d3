"""The recipes of the guide are valid, and their commands do what they are for."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubelet_command import manifest
from lightkube.models import apps_v1, batch_v1, core_v1

from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.manifest import read_pod
from kubelet_reference.config.validation.fields import read_object

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "recipes"
BIN = Path(sys.executable).parent
MODELS = {
    "DaemonSet": apps_v1.DaemonSet,
    "Job": batch_v1.Job,
    "Namespace": core_v1.Namespace,
    "PersistentVolumeClaim": core_v1.PersistentVolumeClaim,
}


def loaded(name: str) -> list[Any]:
    """The documents of a file of YAML."""
    return list(yaml.safe_load_all((ROOT / name).read_text(encoding="utf-8")))


def shell(
    script: str, folder: Path, *, using: str = "sh", **environment: str | Path
) -> subprocess.CompletedProcess[str]:
    """Run this text in a folder, as a container or a step would."""
    path = f"{folder}:{BIN}:{os.environ['PATH']}"
    given = {"PATH": path, "HOME": str(folder), **{name: str(each) for name, each in environment.items()}}
    return subprocess.run(
        [using, "-c", script], cwd=folder, env=given, check=False, capture_output=True, text=True, timeout=300
    )


def errors(model: Any, raw: object) -> list[str]:
    """What is wrong with an object, read strictly along its model."""
    place = FieldPath([])
    read_object(model, raw, place)
    return [str(each) for each in place.errors]


def containers() -> Iterator[dict[str, Any]]:
    """The containers of all recipes for a cluster."""
    for name in ("daemonset", "indexed-job"):
        for each in loaded(f"docs/recipes/{name}.yaml"):
            template = each.get("spec", {}).get("template", {"spec": {"containers": []}})
            yield from template["spec"]["containers"]
    yield loaded("docs/recipes/sonobuoy-plugin.yaml")[0]["spec"]


@pytest.mark.parametrize("name", ["daemonset", "indexed-job"])
def test_objects_are_those_of_kubernetes(name: str) -> None:
    """Each object has the fields and types of its kind, and its pods are such as a kubelet takes."""
    for each in loaded(f"docs/recipes/{name}.yaml"):
        each.setdefault("spec", {})
        template = each["spec"].get("template")

        assert errors(MODELS[each["kind"]], each) == []
        if template is not None:
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": template["spec"]}
            assert read_pod(json.dumps(pod).encode()).spec is not None


def test_parts_are_as_many_as_pods() -> None:
    """The Indexed Job has a pod for each part, and the last step waits for as many."""
    _, parts, merge = loaded("docs/recipes/indexed-job.yaml")
    told = [
        {each["name"]: each.get("value") for each in job["spec"]["template"]["spec"]["containers"][0]["env"]}
        for job in (parts, merge)
    ]

    assert parts["spec"]["completionMode"] == "Indexed"
    assert {each["PARTS"] for each in told} == {str(parts["spec"]["completions"])}
    assert {each["RECORDS"] for each in told} == {"/records"}


def test_versions_are_this_one() -> None:
    """Images and the action are named by the version of this project."""
    images = {each["image"] for each in containers()}
    [action] = [
        each["with"]
        for each in loaded("docs/recipes/workflow.yml")[0]["jobs"]["conformance"]["steps"]
        if "kubelet-conformance" in each.get("with", {}).get("repository", "")
    ]

    assert images == {f"registry.example/kubelet-conformance:{version('kubelet-conformance')}"}
    assert action["ref"] == f"v{version('kubelet-conformance')}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "file"),
    [("github-actions", "action.yml"), ("github-workflows", "docs/recipes/workflow.yml")],
)
def test_action_fits_the_schema_of_github(schema: str, file: str) -> None:
    """The action and the workflow that uses it are what GitHub takes, with inputs that there are."""
    done = subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", ROOT / file],
        check=False,
        capture_output=True,
        text=True,
    )
    given = [
        each.get("with", {})
        for each in loaded("docs/recipes/workflow.yml")[0]["jobs"]["conformance"]["steps"]
        if "kubelet-conformance" in each.get("uses", "")
    ]

    assert (done.returncode, done.stdout) == (0, "ok -- validation done\n")
    assert set(given[0]) <= set(loaded("action.yml")[0]["inputs"])


@pytest.mark.campaign
@pytest.mark.parametrize(("kubelet", "code"), [("reference", 0), ("bug:K8S-9649", 1)])
def test_action_writes_its_summary(tmp_path: Path, kubelet: str, code: int) -> None:
    """The step ends as the run did, with a summary, a record and JUnit, also where something is broken."""
    programs = tmp_path / "temp" / "kubelet-conformance" / "bin"
    programs.mkdir(parents=True)
    (programs / "kubelet-conformance").symlink_to(BIN / "kubelet-conformance")
    [step] = [each for each in loaded("action.yml")[0]["runs"]["steps"] if "ARGUMENTS" in each.get("env", {})]
    arguments = "PROBE-10 --scenario 'probes.failing_readiness_never_kills'"
    ended = shell(
        f"set -eo pipefail\n{step['run']}",
        tmp_path,
        using="bash",
        RUNNER_TEMP=tmp_path / "temp",
        GITHUB_STEP_SUMMARY=tmp_path / "step.md",
        KUBELET=kubelet,
        ARGUMENTS=arguments,
        RECORD="kept",
    )

    assert ended.returncode == code, ended.stderr
    assert "PROBE-10" in (tmp_path / "step.md").read_text() or not code
    assert "kubelet-conformance" in (tmp_path / "step.md").read_text()
    assert (tmp_path / "kept" / "run.json").is_file()
    assert "<testsuite" in (tmp_path / "kept" / "junit.xml").read_text()


@pytest.mark.campaign
def test_indexed_job_shares_out_and_merges(tmp_path: Path) -> None:
    """Each index plays its part, a break is no reason to try again, and the last step reports the whole."""
    _, parts, merge = loaded("docs/recipes/indexed-job.yaml")
    [part] = parts["spec"]["template"]["spec"]["containers"][0]["args"]
    [last] = merge["spec"]["template"]["spec"]["containers"][0]["args"]
    records = tmp_path / "records"
    records.mkdir()
    wanted = "PROBE-10 --kubelet bug:K8S-9649"

    def played(index: int) -> int:
        environment = {"JOB_COMPLETION_INDEX": str(index), "ARGUMENTS": wanted, "PARTS": "2"}
        return shell(part, tmp_path, using="sh", RECORDS=records, **environment).returncode

    codes = [played(0)]
    early = shell(last, tmp_path, PARTS="2", RECORDS=records, WAIT_SECONDS="0")
    codes.append(played(1))
    ended = shell(last, tmp_path, PARTS="2", RECORDS=records, WAIT_SECONDS="0")

    assert codes == [0, 0]
    assert early.returncode == 130
    assert "without the parts 2/2" in early.stderr
    assert ended.returncode == 1, ended.stderr
    assert "BROKEN  PROBE-10" in ended.stdout
    assert "PROBE-10" in (records / "summary.md").read_text()


@pytest.mark.parametrize("recorded", [True, False])
def test_sonobuoy_is_told_what_to_take(tmp_path: Path, *, recorded: bool) -> None:
    """The plugin is valid, and `done` names the JUnit, or a file that says why there is none."""
    [plugin] = loaded("docs/recipes/sonobuoy-plugin.yaml")
    stub = tmp_path / "record-node"
    stub.write_text(f"#!/bin/sh\n{'echo x >$RESULTS/junit.xml' if recorded else 'exit 2'}\n")
    stub.chmod(0o755)
    pod = {"containers": [plugin["spec"]], **plugin["podSpec"]}
    ended = shell(plugin["spec"]["args"][0], tmp_path, SONOBUOY_RESULTS_DIR=tmp_path, SLEEP_SECONDS="0")
    [told] = (tmp_path / "done").read_text().splitlines()

    assert ended.returncode == 0
    assert Path(told).name == ("junit.xml" if recorded else "error.txt")
    assert Path(told).is_file()
    assert errors(core_v1.PodSpec, pod) == []
    assert errors(core_v1.Container, plugin["spec"]) == []
    assert plugin["sonobuoy-config"] == {
        "driver": "DaemonSet",
        "plugin-name": "kubelet-conformance",
        "result-format": "junit",
    }


RECORDED = """
enough() {
    if [ -n "$KILL" ]; then
        [ ! -e cri.sock.tap ]
    else
        grep -qs '"rpc":"StartContainer"' results/trace.jsonl
    fi
}
kubelet-conformance serve-fake --listen unix://$PWD/cri.sock &
fake=$!
trap 'kill $fake $(cat kubelet.pid)' EXIT
until [ -S cri.sock ]; do sleep 0.1; done
{
    until [ -s kubelet.pid ] && enough; do kill -0 $$ && sleep 0.1 || exit; done
    kill -INT $(cat timeout.pid)
} >/dev/null 2>&1 &
if [ -n "$KILL" ]; then
    sh "$SCRIPT" & recorder=$!
    until [ -s kubelet.pid ]; do sleep 0.1; done
    kill -9 $recorder
    wait $recorder
else
    sh "$SCRIPT"
fi
code=$?
until [ ! -e cri.sock.recorded ] && [ ! -e cri.sock.tap ]; do sleep 0.1; done
# A kubelet ends sandboxes that are not its own.
kill -9 $(cat kubelet.pid)
kubelet-conformance runtime unix://$PWD/cri.sock CRI-01
exit $code
"""


TIMEOUT = """#!/bin/sh
echo $$ >timeout.pid
PATH=${PATH#*:}
exec timeout "$@"
"""
"""The command of that name, first on the PATH: it can be ended once there is what the test is about."""


@pytest.mark.campaign
@pytest.mark.parametrize("kill", ["", "yes"])
def test_node_is_recorded_and_left_as_it_was(tmp_path: Path, kill: str) -> None:
    """The recorder takes the place of the socket, and puts it back at its end, even if it is killed."""
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / "web.json").write_text(manifest("web"))
    config = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    (tmp_path / "kubelet.json").write_text(json.dumps(config | {"podLogsDir": str(tmp_path / "logs")}))
    kubelet = tmp_path / "restart-kubelet"
    kubelet.write_text(
        "#!/bin/sh\nkubelet-reference --container-runtime-endpoint unix://$PWD/cri.sock --root-dir root "
        "--config kubelet.json --pod-manifest-path pods --hostname-override n1 --port 0 >kubelet.log 2>&1 &\n"
        "echo $! >kubelet.pid\n"
    )
    kubelet.chmod(0o755)
    (tmp_path / "timeout").write_text(TIMEOUT)
    (tmp_path / "timeout").chmod(0o755)
    ended = shell(
        RECORDED,
        tmp_path,
        SCRIPT=RECIPES / "record-node",
        RUNTIME_SOCKET=tmp_path / "cri.sock",
        RESULTS=tmp_path / "results",
        RECORD_SECONDS="240",
        KUBERNETES="1.32",
        NODE_NAME="n1",
        ON_HOST="",
        GUARD="setsid",
        RESTART_KUBELET=kubelet,
        KILL=kill,
    )
    trace = (tmp_path / "results" / "trace.jsonl").read_text(encoding="utf-8")

    assert ended.returncode == (137 if kill else 0), ended.stderr
    assert "OK: 1 kept, 0 broken" in ended.stdout
    assert '"kubernetes":"1.32"' in trace.splitlines()[0]
    if not kill:
        assert '"rpc":"RunPodSandbox"' in trace
        assert "<testsuite" in (tmp_path / "results" / "junit.xml").read_text()
        assert (tmp_path / "results" / "record" / "run.json").is_file()


@pytest.mark.campaign
def test_page_shows_a_run_on_all_cores(tmp_path: Path) -> None:
    """The command of the page for pytest-xdist plays scenarios and keeps their record."""
    text = (RECIPES / "index.md").read_text(encoding="utf-8")
    [command] = [line for line in text.splitlines() if line.startswith("python -m pytest")]
    ended = shell(command.replace("-n auto", "-n 0").replace("'*'", "SANDBOX-02"), tmp_path)

    assert ended.returncode == 0, ended.stdout
    assert (tmp_path / "kept" / "run.json").is_file()
