"""Statistics on arrays and numbers only: bounds, multiplicity, stopping, checks, dependence.

scipy.special imports all modules of numpy, also those that it does not use. Here the slowest of them are imported only
when they are first used. So is what scipy.special has besides its ufuncs, such as support of other array libraries.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any


def _defer_import(name: str) -> None:
    """Import a submodule when one of its attributes is first used; until then it is not in `sys.modules`."""
    parent, _, child = name.rpartition(".")
    if name not in sys.modules:
        stand_in = ModuleType(name)
        vars(stand_in)["__getattr__"] = lambda attribute: getattr(import_module(name), attribute)
        setattr(import_module(parent), child, stand_in)


for _name in ("numpy.f2py", "numpy.testing"):
    _defer_import(_name)


SPECIAL = "scipy.special"
REST = f"{SPECIAL}._rest"
"""Stands for all of scipy.special but its ufuncs. It is imported as a module, so that threads wait for each other."""


class _SpecialFunctions(SourceFileLoader):
    """Imports the ufuncs of scipy.special, which are the same objects, and the rest when one of its names is used."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, _: object = None) -> ModuleSpec | None:
        """Return how to import scipy.special and its rest, None for any other module."""
        if name == REST:
            return ModuleSpec(REST, getattr(sys.modules[SPECIAL], "__loader__", None))
        spec = PathFinder.find_spec(name, path) if name == SPECIAL else None
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = cls(name, spec.loader.path)
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Import the ufuncs, or the rest into scipy.special."""
        if module.__name__ == REST:
            super().exec_module(sys.modules[SPECIAL])
            return
        names: dict[str, Any] = vars(module)
        names |= {"__getattr__": _load_special, "__dir__": lambda: [*_load_rest()]}
        ufuncs = import_module(f"{SPECIAL}._ufuncs")
        names |= {name: getattr(ufuncs, name) for name in ufuncs.__all__}


def _load_rest() -> dict[str, Any]:
    import_module(REST)  # at once while it is being imported
    return vars(sys.modules[SPECIAL])


def _load_special(name: str) -> Any:
    """Return a name of scipy.special that is no ufunc."""
    if name == "__all__" or not name.startswith("__"):
        names = _load_rest()
        if name in names:
            return names[name]
    raise AttributeError(f"module {SPECIAL!r} has no attribute {name!r}")


if not os.environ.get("SCIPY_ARRAY_API"):  # with it, functions take arrays of other libraries too
    sys.meta_path.insert(0, _SpecialFunctions)
