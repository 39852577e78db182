"""sigdask: is a difference in score real? Approximate-randomization tests at any scale, on dask.

- `read` reads the outputs of systems from files. `as_counts` takes scores held in Python.
- `compare_all` compares all systems of a test set, `compare` two arrays or the systems of a data frame, and
  `compare_sets` systems on several test sets.
- `metric` and `black_box` make metrics of your own functions.
- `power` computes how many units are needed to detect a difference.
- `independence` and `independence_all` test whether two labellings agree more than by chance.
- `load_plan`, `run_plan` and `write_site` are for plans: files that describe a nightly evaluation.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sigdask.api import compare, compare_all, compare_sets, independence, independence_all, power
    from sigdask.counts import Counts
    from sigdask.errors import InputError, SigdaskError, UnfinishedError
    from sigdask.formats import read
    from sigdask.formats.frames import as_counts
    from sigdask.metrics import black_box, metric
    from sigdask.nightly.plan import Plan, load_plan
    from sigdask.nightly.report.site import write_site
    from sigdask.nightly.run import run_plan
    from sigdask.report.presentable import Results
    from sigdask.results.record import Result

__all__ = [
    "Counts", "InputError", "Plan", "Result", "Results", "SigdaskError", "UnfinishedError", "as_counts", "black_box",
    "compare", "compare_all", "compare_sets", "independence", "independence_all", "load_plan", "metric", "power",
    "read", "run_plan", "write_site",
]  # fmt: skip

_PUBLIC_HOMES = {
    name: home
    for home, names in {
        "api": ("compare", "compare_all", "compare_sets", "independence", "independence_all", "power"),
        "counts": ("Counts",),
        "errors": ("InputError", "SigdaskError", "UnfinishedError"),
        "formats": ("read",),
        "formats.frames": ("as_counts",),
        "metrics": ("black_box", "metric"),
        "nightly.plan": ("Plan", "load_plan"),
        "nightly.report.site": ("write_site",),
        "nightly.run": ("run_plan",),
        "report.presentable": ("Results",),
        "results.record": ("Result",),
    }.items()
    for name in names
}

_NAMES_OPTIONS: dict[str, Any] = {
    **dict.fromkeys(["as_counts", "read", *(name for name, home in _PUBLIC_HOMES.items() if home == "api")], "python"),
    "run_plan": "plan",
}
"""Functions whose errors and notes call options by their Python or plan names, not by those of the command line."""


def __getattr__(name: str) -> Any:
    """Import public names when they are used, so that importing sigdask costs nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("sigdask")
    if name not in _PUBLIC_HOMES:
        from sigdask.options import suggest_instead

        hint = "" if name.startswith("_") else suggest_instead("sigdask", name, __all__)
        raise AttributeError(f"module 'sigdask' has no attribute {name!r}{hint}")
    value = getattr(import_module(f"sigdask.{_PUBLIC_HOMES[name]}"), name)
    if name in _NAMES_OPTIONS:
        from sigdask.options import name_arguments

        value = globals()[name] = name_arguments(value, _NAMES_OPTIONS[name])
    return value


def __dir__() -> list[str]:
    """Return the public names, so that `help(sigdask)` and completion show them and nothing else."""
    return [*__all__]
