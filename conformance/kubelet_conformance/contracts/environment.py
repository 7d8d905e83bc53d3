"""START: the environment that a container is made with."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubelet_conformance.contract import Moment, Pod
from kubelet_conformance.contract.frame import KEPT, Findings, broken, contract
from kubelet_conformance.contract.needs import CRI, PODS
from kubelet_conformance.contract.words import call
from kubelet_conformance.contracts.instances import asked
from kubelet_conformance.trace.container_specs import ContainerSpec

_REFERENCE = re.compile(r"\$(?:(\$)|\(([^()]*)\))")


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """The text with $(NAME) replaced where the name is known, and $$ by a dollar sign."""

    def value(match: re.Match[str]) -> str:
        dollar, name = match.groups()
        return dollar or known.get(name, match.group())

    return _REFERENCE.sub(value, text)


def _wrong(spec: ContainerSpec, given: Mapping[str, str], *, secret: bool) -> str | None:
    """The first declared variable that is missing or has another value than declared."""
    declared = {one.name for one in spec.env or ()}
    # A variable can refer to those before it, and to those of a whole config map or secret.
    known = {name: value for name, value in given.items() if spec.env_from and name not in declared}
    for one in spec.env or ():
        if one.name not in given:
            if one.value_from is not None and one.value_from.optional:
                continue
            return f"{one.name} is missing"
        if one.value_from is None and not secret:
            named = {name for dollar, name in _REFERENCE.findall(one.value) if not dollar}
            expected = _expanded(one.value, known)
            # What is not known here may be a variable of a service, which no manifest tells.
            if named <= known.keys() and given[one.name] != expected:
                return f"{one.name} is {given[one.name]!r}, expected {expected!r}"
        known[one.name] = given[one.name]
    return None


@contract("START-09", on=call("CreateContainer"), needs=(CRI, PODS))
def environment_is_complete(m: Moment, pod: Pod) -> Findings:
    """A container is made with every variable that it declares, references to those before it replaced.

    Where a config map or secret is missing that it cannot do without, it is not made.
    """
    config = asked(m)
    spec = pod.container_spec(config.metadata.name)
    if spec is None or not spec.env or pod.spec_changed_t is not None:
        return None
    given = {one.key: one.value for one in config.envs}
    names = [one.name for one in spec.env]
    if len(set(names)) < len(names):
        return None
    wrong = _wrong(spec, given, secret=m.header.redacted)
    return broken(f"the variable {wrong}, in {spec.name}", pod.set_seq) if wrong else KEPT
