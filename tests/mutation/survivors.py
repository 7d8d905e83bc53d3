"""The list of known survivors, each with its reason, read from `survivors.toml`."""

from pathlib import Path

import msgspec

_FILE = Path(__file__).with_name("survivors.toml")


class _Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mutants: list[str]
    reason: str = ""
    contract: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    survivors: list[_Group] = []


def listed() -> dict[str, str]:
    """The reason of each listed survivor, by the mutant's name."""
    groups = msgspec.toml.decode(_FILE.read_bytes(), type=_File).survivors
    reasons = {
        name: group.reason or f"{group.contract} is to come" for group in groups for name in group.mutants
    }
    if not all(group.reason or group.contract for group in groups):
        raise ValueError(f"{_FILE.name}: a group has neither a reason nor a contract")
    if len(reasons) != sum(len(group.mutants) for group in groups):
        raise ValueError(f"{_FILE.name}: a mutant is listed twice")
    return reasons
