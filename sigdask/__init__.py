"""sigdask: is a difference in score real? Approximate-randomization tests at any scale, on dask.

- `read` reads the outputs of systems from files or from a data frame.
- `compare` compares two sequences, `compare_all` all systems of a test set, and `compare_sets` systems on several test
  sets. `load_results` reads their results from JSON.
- `power` computes how many units are needed to detect a difference.
- `independence` tests whether two labellings agree more than by chance, `rankings` evaluates rankings of candidates,
  and `meta` compares metrics by their agreement with people.
- `metric` makes a metric of your own function.
- `load_plan` and `run_plan` are for plans: files that describe a nightly evaluation.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sigdask.api import compare, compare_all, compare_sets, meta, read
    from sigdask.counts import Counts
    from sigdask.errors import InputError, SigdaskError, UnfinishedError
    from sigdask.metrics import metric
    from sigdask.nightly.plan import Plan, load_plan
    from sigdask.nightly.run import run_plan
    from sigdask.report.analyses import independence, load_results, power, rankings
    from sigdask.report.presentable import Results
    from sigdask.results.record import Result

__all__ = [
    "Counts", "InputError", "Plan", "Result", "Results", "SigdaskError", "UnfinishedError", "compare", "compare_all",
    "compare_sets", "independence", "load_plan", "load_results", "meta", "metric", "power", "rankings", "read",
    "run_plan",
]  # fmt: skip

_PUBLIC_HOMES = {
    name: home
    for home, names in {
        "api": ("compare", "compare_all", "compare_sets", "meta", "read"),
        "counts": ("Counts",),
        "errors": ("InputError", "SigdaskError", "UnfinishedError"),
        "metrics": ("metric",),
        "nightly.plan": ("Plan", "load_plan"),
        "nightly.run": ("run_plan",),
        "report.analyses": ("independence", "load_results", "power", "rankings"),
        "report.presentable": ("Results",),
        "results.record": ("Result",),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    """Import public names when they are used, so that importing sigdask costs nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("sigdask")
    if name not in _PUBLIC_HOMES:
        raise AttributeError(f"module 'sigdask' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"sigdask.{_PUBLIC_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    """Return the public names, so that `help(sigdask)` and completion show them and nothing else."""
    return [*__all__]
