"""Check that workers have the client's versions; others could count differently, or not at all."""

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
    """Compare the versions of scheduler and workers with the client's; raise if they differ.

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
    """Return the checked versions of this process."""
    from distributed.versions import get_versions

    return _extract_versions(get_versions(packages=list(CHECKED_PACKAGES)))


def check_driver_versions(theirs: Mapping[str, str]) -> None:
    """Raise if the driver has other versions; checks workers that join while it runs.

    Raises
    ------
    InputError
        As `check_versions`.
    """
    differences = describe_differences(theirs, {f"worker on {gethostname()}": get_own_versions()})
    if differences:
        raise InputError(f"versions differ: {'; '.join(differences)}. {REMEDY}")


def describe_differences(expected: Mapping[str, str], actual: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return a phrase for each package that differs, naming one host with the other version.

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
    """Return the checked versions; for Python, only major and minor."""
    packages = (info or {}).get("packages", {})
    python = str(packages.get("python") or "absent")
    versions = {name: packages.get(name) or "absent" for name in CHECKED_PACKAGES}
    return {"python": ".".join(python.split(".")[:2]), **versions}
