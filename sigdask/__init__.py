"""sigdask: is a difference in score real? Approximate-randomization tests at any scale, on dask.

Read system outputs with `read`, compare them with `compare_all` (two arrays with `compare`, several
test sets with `compare_sets`), bring a metric with `metric`, ask `power` how many units would do. A
whole night's comparisons are a plan: `load_plan` and `run_plan`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sigdask.api import compare, compare_all, compare_sets, power
    from sigdask.comparison.found.result import Result
    from sigdask.comparison.labelling.asking import independence, independence_all
    from sigdask.comparison.results import Results
    from sigdask.counts import Counts
    from sigdask.errors import InputError, SigdaskError, UnfinishedError
    from sigdask.formats import read
    from sigdask.formats.frames import as_counts
    from sigdask.metrics import black_box, metric
    from sigdask.overnight import run_plan
    from sigdask.plan import Plan, load_plan

__all__ = [
    "Counts",
    "InputError",
    "Plan",
    "Result",
    "Results",
    "SigdaskError",
    "UnfinishedError",
    "as_counts",
    "black_box",
    "compare",
    "compare_all",
    "compare_sets",
    "independence",
    "independence_all",
    "load_plan",
    "metric",
    "power",
    "read",
    "run_plan",
]

_HOMES = {
    "Counts": "counts",
    "InputError": "errors",
    "Plan": "plan",
    "Result": "comparison.found.result",
    "Results": "comparison.results",
    "SigdaskError": "errors",
    "UnfinishedError": "errors",
    "as_counts": "formats.frames",
    "black_box": "metrics",
    "compare": "api",
    "compare_all": "api",
    "compare_sets": "api",
    "independence": "comparison.labelling.asking",
    "independence_all": "comparison.labelling.asking",
    "load_plan": "plan",
    "metric": "metrics",
    "power": "api",
    "read": "formats",
    "run_plan": "overnight",
}

_NAMING = frozenset({
    "as_counts", "compare", "compare_all", "compare_sets", "independence", "independence_all", "power", "read",
})  # fmt: skip
"""Functions whose errors name options as Python does, and not as the command line."""


def __getattr__(name: str) -> Any:
    """Import public names when they are used, so that importing sigdask costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'sigdask' has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f"sigdask.{_HOMES[name]}"), name)
    if name in _NAMING:
        from sigdask.options import naming_options

        found = globals()[name] = naming_options("python")(found)
    return found


def __dir__() -> list[str]:
    """Return the public names, so that `help(sigdask)` and completion show them and nothing else."""
    return [*__all__]
