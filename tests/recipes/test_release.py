"""What is released: wheels that are the same whoever builds them, and the image that is made of them."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "docs" / "recipes" / "Containerfile"
DEPENDENCIES = sysconfig.get_paths()["purelib"]


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    """Run a program; its output, where it ended well."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**os.environ, "PIP_NO_DEPS": "1", "PIP_NO_INPUT": "1", **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=280,
    )

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def copied(sources: tuple[str, ...], folder: Path) -> Path:
    """A folder with these files and folders of the checkout, none of which is as old as there."""
    folder.mkdir()
    for name in sources:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name,
                folder / name,
                copy_function=shutil.copyfile,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        else:
            shutil.copyfile(ROOT / name, folder / name)
    return folder


SOURCES = ("pyproject.toml", "README.md", "LICENSE", "conformance", "fakes", "fixtures", "reference")


@pytest.mark.slow
def test_wheel_is_the_same_whoever_builds_it(tmp_path: Path) -> None:
    """Two builds of the same sources in different folders, umasks and times of files have the same bytes."""
    digests: list[str] = []
    years: set[int] = set()
    for number, mask in enumerate((0o022, 0o077)):
        before = os.umask(mask)
        try:
            source = copied(SOURCES, tmp_path / f"source-{number}")
        finally:
            os.umask(before)
        out = tmp_path / f"dist-{number}"
        run(
            *(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out),
            folder=source,
            SOURCE_DATE_EPOCH="1767225600",
        )
        [wheel] = out.glob("*.whl")
        digests.append(hashlib.sha256(wheel.read_bytes()).hexdigest())
        with zipfile.ZipFile(wheel) as packed:
            years |= {each.date_time[0] for each in packed.infolist()}

    assert digests[0] == digests[1]
    assert years == {2026}


def steps() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, each with what follows it."""
    text = re.sub(r"\\\n\s*", "", CONTAINERFILE.read_text(encoding="utf-8"))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def in_folder(text: str, folders: Mapping[str, Path]) -> str:
    """A step with folders of this machine in place of those of the image."""
    for name, folder in folders.items():
        text = re.sub(rf"(?<=\s){name}(?=/|\s|$)", str(folder), text)
    return re.sub(r"--mount=\S+ ?", "", text)


@pytest.mark.campaign
def test_steps_of_the_image_install_it_from_an_index(tmp_path: Path) -> None:
    """The steps build wheels, install by their names from a folder of them, and the image plays scenarios."""
    venv.create(tmp_path / "environment", with_pip=True)
    programs = tmp_path / "environment" / "bin"
    [packages] = (tmp_path / "environment").glob("lib/python*/site-packages")
    dependencies = packages / "dependencies.pth"
    sources = [rest.split()[:-1] for word, rest in steps() if word == "COPY" and "--chmod" not in rest]
    source = copied(tuple(each for names in sources for each in names), tmp_path / "source")
    folders = {"/src": source, "/wheels": tmp_path / "wheels"}
    path = f"{programs}:{os.environ['PATH']}"
    for word, rest in steps():
        if word == "FROM" and rest.endswith(" AS build"):
            dependencies.write_text(f"{DEPENDENCIES}\n", encoding="utf-8")
        elif word == "FROM":
            # In what there is already pip would find this project.
            dependencies.unlink()
        elif word == "RUN":
            # With "0" pip builds without an environment of its own, and so without the network.
            run(
                *("sh", "-c", in_folder(f" {rest}", folders)),
                folder=tmp_path,
                PATH=path,
                PIP_NO_BUILD_ISOLATION="0",
            )
    dependencies.write_text(f"{DEPENDENCIES}\n", encoding="utf-8")
    [entry], [command] = (
        [json.loads(rest) for w, rest in steps() if w == word] for word in ("ENTRYPOINT", "CMD")
    )
    shown = run(programs / entry[0], *command, "SANDBOX-02", folder=tmp_path)
    place = run(
        programs / "python", "-c", "import kubelet_conformance as k; print(k.__file__)", folder=tmp_path
    )

    assert re.search(r"^OK: 1 kept, 0 broken", shown, re.MULTILINE)
    assert place.startswith(str(tmp_path / "environment"))
    assert all((ROOT / name).exists() for names in sources for name in names)
    assert os.access(ROOT / "docs" / "recipes" / "record-node", os.X_OK)
