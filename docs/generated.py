"""Adds the generated pages to the guide: the catalogue, what it rests on, and the decision tables.

A link to a file of the reference works in the repository as it is. In the guide it leads to a page with that
file's source.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalogue_pages import pages
from decision_pages import decisions_page
from mkdocs.structure.files import File, InclusionLevel

from kubelet_conformance.campaigns.coverage import Coverage, coverage_of, gather, runtime_counts
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bugs import bug_card, bug_ids

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

__all__ = ("on_config", "on_files", "on_page_markdown")

_CATALOGUE = "catalogue/"
_SCENARIOS = "scenarios/"
_DOCS = Path(__file__).parent
_SOURCE_LINK = re.compile(r"\]\((\.\./reference/kubelet_reference/([\w/]+)\.py)\)")


@cache
def _pages() -> dict[str, str]:
    return {**pages(_coverage().contracts, map(bug_card, bug_ids())), "decisions.md": decisions_page()}


def _coverage() -> Coverage:
    """What all scenarios come to; with GUIDE_UNPLAYED set none is played, for who checks the pages only."""
    if os.environ.get("GUIDE_UNPLAYED"):
        return coverage_of(runtime_counts() | {name: {} for name in every_scenario()}, Counter())
    return gather()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the catalogue into the navigation, after its index."""
    section: list[Any] = next(item["Catalogue"] for item in config.nav or () if "Catalogue" in item)
    section += [path for path in _pages() if path.startswith(_CATALOGUE) and path not in section]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add each page as a file of the guide."""
    for path, text in _pages().items():
        shown = InclusionLevel.NOT_IN_NAV if path.startswith(_SCENARIOS) else InclusionLevel.UNDEFINED
        files.append(File.generated(config, path, content=text, inclusion=shown))
    for link, name in _linked_sources():
        page = f"# {name}.py\n\n```python\n{(_DOCS / link).read_text(encoding='utf-8')}```\n"
        files.append(
            File.generated(config, f"source/{name}.md", content=page, inclusion=InclusionLevel.NOT_IN_NAV)
        )
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Let links to files of the reference lead to the pages with their source."""
    return _SOURCE_LINK.sub(r"](source/\2.md)", markdown)


def _linked_sources() -> set[tuple[str, str]]:
    """The files of the reference that pages of the guide link to: each as it is linked, and its name."""
    pages_of_guide = (path.read_text(encoding="utf-8") for path in _DOCS.glob("*.md"))
    return {(link, name) for text in pages_of_guide for link, name in _SOURCE_LINK.findall(text)}
