"""Tests of settings and versions: what dask is told, and what is refused."""

import dask
import pytest

from sigdask.errors import InputError
from sigdask.execution.clusters.settings import (
    check_driver_versions,
    check_versions,
    environment,
    get_own_versions,
    settings,
)


def test_every_setting_is_one_that_dask_has():
    import distributed  # noqa: F401

    for key, value in settings().items():
        default = dask.config.get(key)
        assert default is None or isinstance(value, type(default)) or value is False, key


def test_the_environment_says_what_the_settings_say():
    collected = dask.config.collect_env(environment())
    for key, value in settings().items():
        assert dask.config.get(key, config=collected) == value, key


class StubClient:
    """Answers like a cluster whose worker has another version."""

    def __init__(self, **changed):
        self.changed = changed

    def get_versions(self, packages):
        packages_here = {"python": "3.11.7.final.0", **dict.fromkeys(packages, "1.0")}
        packages_there = {"packages": {**packages_here, **self.changed}}
        return {
            "client": {"packages": packages_here},
            "scheduler": packages_there,
            "workers": {"tls://w:1": packages_there},
        }


def test_other_versions_are_refused_by_package_and_worker():
    with pytest.raises(InputError, match=r"sigdask is 1.0 here and 0.9 at worker tls://w:1.*Install the same"):
        check_versions(StubClient(sigdask="0.9"))
    with pytest.raises(InputError, match="numpy is 1.0 here and absent at"):
        check_versions(StubClient(numpy=None))
    with pytest.raises(InputError, match=r"python is 3.11 here and 3.12 at the scheduler and 1 more"):
        check_versions(StubClient(python="3.12.1.final.0"))


def test_a_worker_that_joins_later_refuses_a_driver_of_another_version():
    check_driver_versions(get_own_versions())
    with pytest.raises(InputError, match=r"sigdask is 0.0 here and .* at worker on .*Install the same"):
        check_driver_versions({**get_own_versions(), "sigdask": "0.0"})


def test_another_patch_of_python_and_a_scheduler_without_sigdask_are_not():
    check_versions(StubClient(python="3.11.2.final.0"))
    client = StubClient()
    versions = client.get_versions(["sigdask", "dask"])
    versions["scheduler"]["packages"] = {**versions["scheduler"]["packages"], "sigdask": None}
    client.get_versions = lambda packages: versions | {"client": {"packages": dict(versions["client"]["packages"])}}
    versions["workers"] = {}
    check_versions(client)
