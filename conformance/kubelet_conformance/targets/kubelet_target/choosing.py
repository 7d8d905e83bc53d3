"""The kubelet that a user chose, where it is a process of its own."""

import shutil
from dataclasses import replace
from pathlib import Path

from kubelet_conformance.contract.applicability import USUAL_VERSION, parse_known_version
from kubelet_conformance.targets.choice import Choice, UnknownTargetError
from kubelet_conformance.targets.kubelet_target.binary import binary_target
from kubelet_conformance.targets.kubelet_target.overrides import overrides_of
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
    target = kubelet_process(choice)
    if target is None or not choice.is_foreign:
        is_open = choice.is_live and not choice.kubernetes
        return replace(choice, kubernetes=USUAL_VERSION) if is_open else choice
    _check_program(target, choice.kubelet)
    return replace(choice, kubernetes=target.kubernetes)


def _check_program(target: KubeletTarget, where: str) -> None:
    program = target.command[0]
    path = target.environment.get("PATH")
    if "{" not in program and shutil.which(program, path=path) is None:
        why = "cannot be executed" if Path(program).exists() else "there is no such program"
        raise UnknownTargetError(f"{where}: kubelet.command[0]: {program}: {why}")
