"""The kubelet that a user chose, where it is a process of its own."""

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

from kubelet_conformance.contract.applicability import USUAL_VERSION, parse_known_version
from kubelet_conformance.targets.choice import Choice, UnknownTargetError
from kubelet_conformance.targets.kubelet_target.binary import binary_target
from kubelet_conformance.targets.kubelet_target.overrides import overrides_of, sets_many
from kubelet_conformance.targets.kubelet_target.target import KubeletTarget
from kubelet_conformance.targets.kubelet_target.target_file import read_target, reference_process


def kubelet_process(choice: Choice) -> KubeletTarget | None:
    """The kubelet of a choice where it is a process of its own, None for one in this process.

    Raises:
        UnknownTargetError: The target file cannot be used, the binary is no kubelet, or it cannot be given
            what is to be set in it.
    """
    target = _target(choice)
    overrides = overrides_of(choice.gates, choice.config)
    if not overrides:
        return target
    if target is None:
        raise UnknownTargetError(
            "--gates and --config are for a kubelet in a process of its own: choose it with --kubelet"
        )
    if not target.config:
        raise UnknownTargetError(f"{choice.kubelet}: kubelet.config: missing: --gates and --config change it")
    return replace(target, overrides=overrides)


def _target(choice: Choice) -> KubeletTarget | None:
    if choice.has_target_file:
        return read_target(Path(choice.kubelet))
    if choice.is_binary:
        return binary_target(str(Path(choice.kubelet).absolute()))
    return reference_process(choice.kubernetes) if choice.is_process else None


def resolved(choice: Choice) -> Choice:
    """The choice with the version that it leaves open: a foreign kubelet states one, a shared node has one.

    Raises `UnknownTargetError`, also where the version is not known or the kubelet's program is not there.
    """
    if choice.kubernetes:
        try:
            parse_known_version(choice.kubernetes)
        except ValueError as error:
            raise UnknownTargetError(str(error)) from None
    target, then = kubelet_process(choice), choice.then
    if then is not None:
        _check_then(choice, then)
    if target is None or not choice.is_foreign:
        is_open = (choice.is_live or then is not None) and not choice.kubernetes
        return replace(choice, kubernetes=USUAL_VERSION) if is_open else choice
    _check_program(target, choice.kubelet)
    return replace(choice, kubernetes=target.kubernetes)


@cache
def then_kubernetes(choice: Choice) -> str:
    """The version of the kubelet that takes turns with the chosen one, "" if none does."""
    return "" if choice.then is None else resolved(choice.then).kubernetes


def _check_then(choice: Choice, then: Choice) -> None:
    """See that the other kubelet can take turns with this one; raises `UnknownTargetError`."""
    if then.is_process != choice.is_process or (choice.is_live and not choice.is_process):
        raise UnknownTargetError(
            f"--then-kubelet: {then.kubelet}: both kubelets are in processes of their own, or both in this "
            "one on the fake runtime"
        )
    if not (then.is_foreign or then.kubernetes):
        raise UnknownTargetError(
            f"--then-kubelet: {then.kubelet}: its version is missing: write reference@1.36"
        )
    if sets_many(overrides_of(choice.gates, choice.config)):
        raise UnknownTargetError("--then-kubelet: AllAlpha and AllBeta are other gates in either: name them")
    first, second = kubelet_process(choice), kubelet_process(resolved(then))
    if first is not None and second is not None and first.pods != second.pods:
        raise UnknownTargetError(
            f'--then-kubelet: {then.kubelet}: its pods = "{second.pods}", those of the first "{first.pods}"'
        )


def _check_program(target: KubeletTarget, where: str) -> None:
    program = target.command[0]
    path = target.environment.get("PATH")
    if "{" not in program and shutil.which(program, path=path) is None:
        why = "cannot be executed" if Path(program).exists() else "there is no such program"
        raise UnknownTargetError(f"{where}: kubelet.command[0]: {program}: {why}")
