"""The pages about kubelets in processes name what there is, and nothing else."""

import re
from pathlib import Path

from kubelet_conformance.targets.kubelet_target.target import CAPABILITIES, PLACEHOLDERS
from kubelet_conformance.targets.kubelet_target.target_file import read_target
from kubelet_reference.server.command import command
from kubelet_reference.server.configuration import FIELDS
from kubelet_reference.server.loading import GATES_SINCE
from kubelet_reference.util.versions import ON_SINCE

DOCS = Path(__file__).resolve().parents[3] / "docs"


def rows(page: str, heading: str) -> str:
    """The table under a heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return text.partition(f"{heading}\n")[2].partition("\n#")[0]


def test_every_flag_and_field_is_documented() -> None:
    """The table of flags has every flag and every field, and no others."""
    table = rows("kubelet-reference.md", "## Flags").partition("\n\n`--kubernetes`")[0]
    flags = {name for option in command.params for name in option.opts if name.startswith("--")}

    assert set(re.findall(r"`(--[a-z-]+)`", table)) == flags - {"--version"}
    assert {name.partition(".")[0] for name in re.findall(r"`([a-z][A-Za-z]+[A-Z.][\w.]*)`", table)} >= (
        FIELDS.keys() - {"address", "port"}
    )


def test_every_gate_is_documented() -> None:
    """The table of gates has every gate, with the versions that first had it and had it on."""
    table = rows("kubelet-reference.md", "## Feature gates")
    on_since = {**ON_SINCE, "PodLifecycleSleepAction": 30}
    reported = re.findall(r"^\| `(\w+)` \|.*\| 1\.(\d+) \| (?:1\.(\d+) )?\|$", table, re.MULTILINE)

    assert [(name, int(since), int(on) if on else None) for name, since, on in reported] == [
        (name, since, on_since[name]) for name, since in GATES_SINCE.items()
    ]


def test_placeholders_and_capabilities_are_documented() -> None:
    """The page has every placeholder and every capability, and no others."""
    placeholders = rows("targets.md", "### Placeholders")
    capabilities = rows("targets.md", "### Capabilities")

    assert set(re.findall(r"`\{([a-z_]+)\}`", placeholders)) == PLACEHOLDERS.keys()
    assert set(re.findall(r"^\| `([a-z]+)`", capabilities, re.MULTILINE)) == CAPABILITIES.keys()


def test_example_is_a_target(tmp_path: Path) -> None:
    """The example of a target file is one."""
    example = re.search(r"```toml\n(.*?)```", (DOCS / "targets.md").read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    (tmp_path / "k.toml").write_text(example[1], encoding="utf-8")

    assert read_target(tmp_path / "k.toml").name == "kubelet 1.36"
