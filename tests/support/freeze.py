"""Freeze what a release is held to: `python tests/support/freeze.py 1.36` writes its list once.

A list that is there is never written again: rules that come later are for later releases.
"""

import sys
from pathlib import Path

from kubelet_conformance.contract.applicability import is_on, parse_version
from kubelet_conformance.contracts import every_contract

FOLDER = Path(__file__).parents[2] / "conformance/kubelet_conformance/contract/requirements"


def applying(release: str) -> list[str]:
    """The contracts that hold for a release as it comes, in the order of their ids."""
    version = parse_version(release)
    return sorted(
        each.id
        for each in every_contract().values()
        if each.versions.why_not(version) is None and (each.gate is None or is_on(each.gate, {}, version))
    )


def main(asked: list[str]) -> int:
    """Write the lists of these releases; 2 where one is there already."""
    for release in asked:
        path = FOLDER / f"{release}.txt"
        if path.exists():
            sys.stderr.write(f"{path.name}: is frozen\n")
            return 2
        title = f"# What Kubernetes {release} is held to."
        path.write_text("".join(f"{each}\n" for each in (title, *applying(release))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
