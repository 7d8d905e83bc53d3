"""The page for library users: its examples hold, and the names that it calls public are documented."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

from kubelet_conformance import plugin

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
STABLE = TEXT.partition("## What is stable")[2]
PUBLIC = [
    name
    for row in re.findall(r"^\| (`kubelet_.*?) \|", STABLE, re.MULTILINE)
    for name in row.split("`")[1::2]
]
RULES = ROOT / "docs" / "examples" / "toy_kubelet" / "toy_rules"


def test_examples_of_the_page() -> None:
    """What the page shows at a prompt is what Python says."""
    test = doctest.DocTestParser().get_doctest(TEXT, {}, "library.md", None, 0)
    result = doctest.DocTestRunner().run(test)

    assert result.failed == 0
    assert result.attempted == TEXT.count("\n>>> ")


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name: str) -> None:
    """A package lists its public names; each class and function says what it promises."""
    module = import_module(name)
    is_package = hasattr(module, "__path__")
    names = module.__all__ if is_package else [each for each in vars(module) if not each.startswith("_")]
    public = {each: getattr(module, each) for each in names}
    own = {
        each: value
        for each, value in public.items()
        if str(getattr(value, "__module__", "")).startswith("kubelet_")
    }

    assert module.__doc__
    assert len(PUBLIC) > 10
    # The classes of manifests and bodies are the protocol's, and so is their documentation.
    undocumented = {each for each, value in own.items() if callable(value) and not value.__doc__}
    assert {each for each in undocumented if ".trace.format." not in own[each].__module__} == set()


def test_page_shows_the_rules_of_the_example() -> None:
    """The contract, the runtime scenario and the bug of the page are those of the example project."""
    for name in ("contracts.py", "bugs.py", "runtime_scenarios.py"):
        assert f"```python\n{(RULES / name).read_text(encoding='utf-8')}```" in TEXT


def test_page_names_the_fixtures() -> None:
    """The page has a row for each fixture of the plugin."""
    assert set(re.findall(r"^\| `(\w+)` \|", TEXT.partition("## Contracts")[0], re.MULTILINE)) == set(
        plugin.__all__
    )
