"""Manifests in few words: what is misspelt in them is an error, not a field that nobody reads."""

from typing import Any

import pytest

from kubelet_conformance.node import container


@pytest.mark.parametrize(
    ("command", "fields", "error"),
    [
        ("run", {"imagePulPolicy": "Never"}, "no field 'imagePulPolicy'; did you mean 'imagePullPolicy'?"),
        ("run", {"colour": "red"}, "no field 'colour'$"),
        ("runn", {}, "no script 'runn'; did you mean 'run'?"),
        ("nostrat", {}, "no script 'nostrat'; did you mean 'nostart'?"),
    ],
)
def test_misspelt_container_is_refused(command: str, fields: dict[str, Any], error: str) -> None:
    """The error names what is wrong and what may have been meant."""
    with pytest.raises((TypeError, ValueError), match=error.replace("?", r"\?")):
        container("c1", command, **fields)


@pytest.mark.parametrize("command", ["run stopdelay=1", "sleep 60", "/pause", ""])
def test_other_commands_are_left_alone(command: str) -> None:
    """Whatever resembles no script is a command of the image."""
    assert container("c1", command)["command"] == command.split()
