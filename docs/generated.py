"""Adds the generated pages to the guide: the catalogue, what it rests on, and the decision tables."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

from kubelet_conformance.campaigns.coverage import gather
from kubelet_conformance.campaigns.coverage.decisions import decisions_page
from kubelet_conformance.campaigns.coverage.pages import pages
from kubelet_conformance.targets.bugs import bug_card, bug_ids

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

__all__ = ("on_config", "on_files")

_CATALOGUE = "catalogue/"


@cache
def _pages() -> dict[str, str]:
    return {**pages(gather(), map(bug_card, bug_ids())), "decisions.md": decisions_page()}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the catalogue into the navigation, after its index."""
    section: list[Any] = next(item["Catalogue"] for item in config.nav or () if "Catalogue" in item)
    section += [path for path in _pages() if path.startswith(_CATALOGUE) and path not in section]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add each page as a file of the guide."""
    for path, text in _pages().items():
        files.append(File.generated(config, path, content=text))
    return files
