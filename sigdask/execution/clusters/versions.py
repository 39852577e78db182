"""Workers must run what the client runs: another version could count differently, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from socket import gethostname
from typing import Any

from sigdask.errors import InputError
from sigdask.text import listed

CHECKED = ("sigdask", "dask", "distributed", "numpy", "numba", "scipy", "cloudpickle", "msgpack")
OF_SCHEDULERS = ("dask", "distributed", "msgpack")
"""A scheduler only passes tasks on."""

REMEDY = (
    "Install the same versions there as here, run sigdask in the environment that the workers have, or count here "
    "(cluster none, threads or local)"
)


def check(client: Any) -> None:
    """Hold the versions of scheduler and workers against the client's.

    Raises
    ------
    InputError
        Some differ: names them, who has which, and what to do.
    """
    found = client.get_versions(packages=list(CHECKED))
    own = _versions(found["client"])
    others = {
        "the scheduler": {k: v for k, v in _versions(found["scheduler"]).items() if k in (*OF_SCHEDULERS, "python")}
    }
    others |= {f"worker {address}": _versions(info) for address, info in found["workers"].items()}
    wrong = differing(own, others)
    if wrong:
        raise InputError(f"versions differ: {'; '.join(wrong)}. {REMEDY}")


@cache
def here() -> dict[str, str]:
    """Return the checked versions of this process."""
    from distributed.versions import get_versions

    return _versions(get_versions(packages=list(CHECKED)))


def require(theirs: Mapping[str, str]) -> None:
    """Refuse to count for a driver of other versions; for workers that join while it runs.

    Raises
    ------
    InputError
        As `check`.
    """
    wrong = differing(theirs, {f"worker on {gethostname()}": here()})
    if wrong:
        raise InputError(f"versions differ: {'; '.join(wrong)}. {REMEDY}")


def differing(own: Mapping[str, str], others: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Say which packages differ, each with one of those who have another version.

    Examples
    --------
    >>> differing({"dask": "2"}, {"worker a": {"dask": "1"}, "worker b": {"dask": "1"}})
    ['dask is 2 here and 1 at worker a and 1 more']
    """
    found: dict[tuple[str, str], list[str]] = {}
    for who, versions in others.items():
        for package, version in versions.items():
            if version != own[package]:
                found.setdefault((package, version), []).append(who)
    return [
        f"{package} is {own[package]} here and {version} at {listed(who, 1)}"
        for (package, version), who in found.items()
    ]


def _versions(info: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the checked versions; of Python, the first two numbers."""
    packages = (info or {}).get("packages", {})
    python = str(packages.get("python") or "absent")
    versions = {name: packages.get(name) or "absent" for name in CHECKED}
    return {"python": ".".join(python.split(".")[:2]), **versions}
