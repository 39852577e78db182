"""Statistics on arrays and numbers only: bounds, multiplicity, stopping, checks, dependence.

scipy.special imports all modules of numpy, also those that it does not use. The slowest of them are loaded when they
are first used.
"""

from __future__ import annotations

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec


def _defer_import(name: str) -> None:
    """Let a submodule be loaded at the first use of one of its attributes, unless it is loaded already."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    parent, _, child = name.rpartition(".")
    setattr(sys.modules[parent], child, module)


for _name in ("numpy.f2py", "numpy.testing"):
    _defer_import(_name)
