"""Check that workers have the client's package versions, as others could count differently or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from socket import gethostname
from typing import Any

from sigdask.errors import InputError
from sigdask.text import format_list

CHECKED_PACKAGES = ("sigdask", "dask", "distributed", "numpy", "numba", "scipy", "cloudpickle", "msgpack")
SCHEDULER_PACKAGES = ("dask", "distributed", "msgpack")
"""A scheduler only passes tasks on."""

REMEDY = (
    "Install the same versions there as here, run sigdask in the environment that the workers have, or count here "
    "(cluster none, threads or local)"
)


def check_versions(client: Any) -> None:
    """Raise if versions of packages on the scheduler or on workers differ from the client's.

    Raises
    ------
    InputError
        Some differ: names them, who has which, and what to do.
    """
    reports = client.get_versions(packages=list(CHECKED_PACKAGES))
    client_versions = _extract_versions(reports["client"])
    other_versions = {
        "the scheduler": {
            k: v for k, v in _extract_versions(reports["scheduler"]).items() if k in (*SCHEDULER_PACKAGES, "python")
        }
    }
    other_versions |= {f"worker {address}": _extract_versions(info) for address, info in reports["workers"].items()}
    differences = describe_differences(client_versions, other_versions)
    if differences:
        raise InputError(f"versions differ: {'; '.join(differences)}. {REMEDY}")


@cache
def get_own_versions() -> dict[str, str]:
    """Return the versions of Python and of the checked packages in this process."""
    from distributed.versions import get_versions

    return _extract_versions(get_versions(packages=list(CHECKED_PACKAGES)))


def check_driver_versions(theirs: Mapping[str, str]) -> None:
    """Raise, on a worker, if the driver's package versions differ from the worker's.

    Raises
    ------
    InputError
        As `check_versions`.
    """
    differences = describe_differences(theirs, {f"worker on {gethostname()}": get_own_versions()})
    if differences:
        raise InputError(f"versions differ: {'; '.join(differences)}. {REMEDY}")


def describe_differences(expected: Mapping[str, str], actual: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return a phrase for each package version that differs, with one host that has the other version.

    Examples
    --------
    >>> describe_differences({"dask": "2"}, {"worker a": {"dask": "1"}, "worker b": {"dask": "1"}})
    ['dask is 2 here and 1 at worker a and 1 more']
    """
    holders: dict[tuple[str, str], list[str]] = {}
    for name, versions in actual.items():
        for package, version in versions.items():
            if version != expected[package]:
                holders.setdefault((package, version), []).append(name)
    return [
        f"{package} is {expected[package]} here and {version} at {format_list(name, 1)}"
        for (package, version), name in holders.items()
    ]


def _extract_versions(info: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the versions of the checked packages and of Python, the latter as major.minor."""
    packages = (info or {}).get("packages", {})
    python = str(packages.get("python") or "absent")
    versions = {name: packages.get(name) or "absent" for name in CHECKED_PACKAGES}
    return {"python": ".".join(python.split(".")[:2]), **versions}
