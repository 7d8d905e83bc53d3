"""The package of each contract family lists the contracts of its modules."""

import re
from collections import defaultdict
from importlib import import_module

from kubelet_conformance.contracts import every_contract

_LINE = re.compile(r"^(\w+): ([^.]*)\.$", re.MULTILINE)


def test_each_family_lists_its_contracts() -> None:
    """A contract's id stands beside its module in the docstring of its family, and nowhere else."""
    defined: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for each in every_contract().values():
        family, module = each.module.rsplit(".", 1)
        defined[family][module].add(each.id)

    for family, modules in defined.items():
        text = import_module(family).__doc__ or ""
        listed = {name: set(re.findall(r"[A-Z]+-\d+", ids)) for name, ids in _LINE.findall(text)}
        assert listed == modules, family
