"""Statistics on arrays and numbers only: bounds, multiplicity, checks, dependence.

scipy.special imports all modules of numpy, also those that it does not use. Here the slowest of them are imported only
when they are first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType


def _defer_import(name: str) -> None:
    """Import a submodule when one of its attributes is first used; until then it is not in `sys.modules`."""
    parent, _, child = name.rpartition(".")
    if name not in sys.modules:
        stand_in = ModuleType(name)
        vars(stand_in)["__getattr__"] = lambda attribute: getattr(import_module(name), attribute)
        setattr(import_module(parent), child, stand_in)


for _name in ("numpy.f2py", "numpy.testing"):
    _defer_import(_name)
