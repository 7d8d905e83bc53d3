"""The contracts: one module a subject, found by walking this package and its families."""

import pkgutil
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contract.definition import BrokenModuleError, Contract

__all__ = ("every_contract",)


def _imported(module: pkgutil.ModuleInfo) -> ModuleType:
    """The module; `BrokenModuleError` names the file and the line that cannot be imported."""
    try:
        return import_module(module.name)
    except Exception as error:
        here = [
            f"{frame.filename}:{frame.lineno}"
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).is_relative_to(Path(__file__).parent) and frame.filename != __file__
        ]
        if isinstance(error, SyntaxError):
            here.append(f"{error.filename}:{error.lineno}")
        where = here[-1] if here else module.name
        raise BrokenModuleError(f"{where}: cannot be imported: {type(error).__name__}: {error}") from error


@cache
def every_contract() -> dict[str, Contract]:
    """All contracts by id, in the order of the catalogue."""
    found: dict[str, Contract] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        for value in vars(_imported(module)).values():
            if isinstance(value, Contract) and value.module == module.name:
                if found.get(value.id, value) is not value:
                    raise ValueError(f"{value.id} is judged in {found[value.id].module} and in {module.name}")
                found[value.id] = value
    return {each: found[each] for each in rows() if each in found}
