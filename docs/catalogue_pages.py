"""The catalogue and its coverage as pages of the user guide, in Markdown."""

import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from textwrap import shorten

from kubelet_conformance.campaigns.coverage.gathering import Gathered
from kubelet_conformance.reports.catalogue import Fate
from kubelet_conformance.runtime_checks.scenario import TITLE_PREFIX
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bugs import BugCard

AREAS: Mapping[str, str] = {
    "LOOP": "The sync loop",
    "CONFIG": "Sources of pods",
    "STATIC": "Static pods and their mirrors",
    "WORK": "Pod workers",
    "SYNC": "One sync of a pod",
    "SANDBOX": "Sandboxes",
    "INIT": "Init containers",
    "SIDECAR": "Sidecars",
    "EPH": "Ephemeral containers",
    "RESTART": "Restarts",
    "BACKOFF": "Back-off",
    "TERM": "Termination",
    "HOOK": "Lifecycle hooks",
    "PROBE": "Probes",
    "IMAGE": "Images",
    "START": "Starting a container",
    "PLEG": "The PLEG",
    "STATUS": "The status manager",
    "CSTAT": "Container statuses",
    "COND": "Conditions",
    "PHASE": "The phase",
    "CLEANUP": "Housekeeping",
    "GC": "Garbage collection",
    "ADMIT": "Admission",
    "EVICT": "Eviction",
    "DEADLINE": "The active deadline",
    "SHUT": "Node shutdown",
    "RESTARTKUBELET": "Restarts of the kubelet",
    "EVENTS": "Events",
    "RESIZE": "Resize in place",
    "CRI": "The container runtime",
    "METRIC": "Metrics",
}
"""The areas of the catalogue in words."""
_TITLE_MIN, _TITLE_MAX = 20, 64


_CATALOGUE = """# The catalogue

Each rule on a pod's life has an id, which is its address everywhere: in code, in reports, on the command
line and here. A rule is *implemented* when a judge holds traces to it, a scenario exercises it and a bug of
the zoo breaks it. It is *excluded*, with the reason, when it cannot be observed from outside a kubelet.
"""
_COVERAGE = f"""---
hide:
  - toc
---
# Contract, witness, bug

What each contract rests on: the scenarios that declare it, how often all scenarios together exercise it on
the reference, and the bugs of the zoo that break it. The strongest bug is the one that breaks the fewest
other contracts: what it shows is that this contract can fail. `{TITLE_PREFIX.strip()}` stands before runtime
scenarios, which call a runtime directly. `kubelet-conformance list --coverage` gives the same.
"""
_BUGS = """---
hide:
  - toc
---
# The bugs

Every bug of [the zoo](zoo.md), what is wrong with it, and the contracts that catch it. A number is that of
the report upstream; `MUT-` stands before the id of a rule whose typical wrong implementation it is.

| bug | what is wrong | other names | broken contracts |
|---|---|---|---|
"""


def pages(every: Sequence[Gathered], bugs: Iterable[BugCard]) -> dict[str, str]:
    """The generated pages by their path below `docs/`."""
    areas = {area: list(group) for area, group in groupby(every, key=lambda each: each.entry.row.area)}
    return {
        "catalogue/index.md": _index(areas),
        **{f"catalogue/{area.lower()}.md": area_page(area, rows) for area, rows in areas.items()},
        "coverage.md": _coverage(areas),
        "bugs.md": _BUGS + "".join(map(_bug, bugs)),
        **dict(_scenario_pages()),
    }


def _scenario_pages() -> Iterator[tuple[str, str]]:
    """The scenarios with their source, to which the catalogue links: a page for each family."""
    every = dict[str, Callable[..., object]](every_scenario())
    every |= {each.title: each.run for each in every_runtime_scenario()}
    for page, names in groupby(sorted(every, key=_scenario_page), key=_scenario_page):
        lines = ["# Scenarios", ""]
        for name in names:
            lines += [f"## {name} {{ #{_anchor(name)} }}", "", "```python"]
            lines += [inspect.getsource(every[name]).rstrip(), "```", ""]
        yield page, "\n".join(lines)


def _scenario_page(name: str) -> str:
    if name.startswith(TITLE_PREFIX):
        return "scenarios/called-directly.md"
    return f"scenarios/{name.partition('.')[0]}.md"


def _anchor(name: str) -> str:
    return name.removeprefix(TITLE_PREFIX).replace(".", "-")


def _index(areas: Mapping[str, Sequence[Gathered]]) -> str:
    every = [each for rows in areas.values() for each in rows]
    bound = [each for each in every if each.entry.row.addressee != "runtime"]
    left_out = [each for each in bound if each.entry.fate is Fate.EXCLUDED]
    share = len(left_out) / max(1, len(bound))
    lines = [
        _CATALOGUE,
        f"{len(bound)} rules speak of the kubelet; {len(left_out)} of them ({share:.1%}) are excluded.\n",
        "| area | about | rules | implemented | planned | excluded |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for area, rows in areas.items():
        numbers = " | ".join(str(sum(each.entry.fate is fate for each in rows)) for fate in Fate)
        lines.append(f"| [{area}]({area.lower()}.md) | {AREAS[area]} | {len(rows)} | {numbers} |")
    return "\n".join([*lines, ""])


def area_page(area: str, rows: Sequence[Gathered]) -> str:
    """One area: a heading with its anchor for each rule."""
    parts = [f"# {area}: {AREAS[area].lower()}", ""]
    for each in rows:
        name = each.entry.row.id
        parts += [f"## {name}: {_title(each)} {{ #{name.lower()} }}", "", *_rule_lines(each), ""]
    return "\n".join(parts)


def _title(each: Gathered) -> str:
    """The rule in short: its first part, where that says something, or its first words."""
    entry = each.entry
    rule = entry.contract.rule if entry.contract else entry.row.rule
    first = re.split(r"[.:;,(] ?", rule)[0]
    is_title = _TITLE_MIN <= len(first) <= _TITLE_MAX
    return _text(first if is_title else shorten(rule, _TITLE_MAX, placeholder=" …"))


def _rule_lines(each: Gathered) -> Iterator[str]:
    entry = each.entry
    rule = entry.contract.rule if entry.contract else entry.row.rule
    yield f"**{entry.row.level}.** {_text(rule)}"
    yield ""
    yield f"- fate: {entry.fate}{f': {_text(entry.reason)}' if entry.reason else ''}"
    yield f"- versions: {_text(entry.contract.versions.text if entry.contract else entry.row.versions)}"
    if entry.contract and entry.contract.gate:
        yield f"- feature gate: {entry.contract.gate}"
    yield f"- source: {_text(entry.row.source)}"
    if entry.contract:
        yield f"- in the catalogue: {_text(entry.row.rule)}"
    yield f"- stimulus: {_text(entry.row.stimulus)}"
    yield f"- observation: {_text(entry.row.observation)}"
    yield f"- typical wrong implementation: {_text(entry.row.mutant)}"
    if each.witnesses:
        named = (f"{_scenario_link(one.name)} ({one.activations})" for one in each.witnesses)
        yield f"- witnesses: {', '.join(named)}"
    if each.bugs:
        yield f"- bugs that break it: {', '.join(f'[{bug}](../bugs.md#{bug.lower()})' for bug in each.bugs)}"


def _coverage(areas: Mapping[str, Sequence[Gathered]]) -> str:
    lines = [_COVERAGE]
    for area, rows in areas.items():
        lines += [
            f"## {area}",
            "",
            "| contract | fate | strongest bug | other bugs | activations | witnesses |",
            "|---|---|---|---|---:|---|",
        ]
        for each in rows:
            name = each.entry.row.id
            witnesses = ", ".join(one.name for one in each.witnesses)
            times = "" if each.entry.fate is Fate.EXCLUDED else str(each.activations)
            first = strongest(each.bugs)
            others = ", ".join(bug for bug in each.bugs if bug != first)
            lines.append(
                f"| {_link(name)} | {each.entry.fate} | {first} | {others} | {times} | {witnesses} |"
            )
        lines.append("")
    return "\n".join(lines)


def strongest(bugs: Iterable[str]) -> str:
    """Of these bugs the one that breaks the fewest contracts, the first of several; "" for none."""
    return min(bugs, key=lambda bug: len(broken_by(bug)), default="")


@cache
def broken_by(bug: str) -> frozenset[str]:
    """The contracts that a bug breaks on its witnesses, as the tests of the zoo see them broken."""
    return frozenset(clause.partition(" ")[0] for clause in _broken_clauses()[bug])


@cache
def _broken_clauses() -> dict[str, list[str]]:
    path = Path(__file__).parent.parent / "tests" / "zoo" / "broken_clauses.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _bug(card: BugCard) -> str:
    broken = ", ".join(map(_link, card.breaks))
    name = f'<span id="{card.id.lower()}">{card.id}</span>'
    return f"| {name} | {_text(card.title)} | {', '.join(card.aliases)} | {broken} |\n"


def _scenario_link(name: str) -> str:
    return f"[{name}](../{_scenario_page(name)}#{_anchor(name)})"


def _link(contract: str) -> str:
    area = contract.partition("-")[0].lower()
    return f"[{contract}](catalogue/{area}.md#{contract.lower()})"


def _text(words: str) -> str:
    """Plain text as Markdown: nothing in it is markup."""
    marked = "".join(f"\\{char}" if char in r"\`*_{}[]<>#|" else char for char in words)
    return " ".join(marked.split())
