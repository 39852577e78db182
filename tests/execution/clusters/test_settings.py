"""Tests of settings and versions: what dask is told, and what is refused."""

import dask
import pytest

from sigdask.errors import InputError
from sigdask.execution.clusters.base import (
    SETTINGS,
    check_driver_versions,
    environment,
    get_own_versions,
)


def test_every_setting_is_one_that_dask_has():
    import distributed  # noqa: F401

    for key, value in SETTINGS.items():
        default = dask.config.get(key)
        assert default is None or isinstance(value, type(default)) or value is False, key


def test_the_environment_says_what_the_settings_say():
    collected = dask.config.collect_env(environment())
    for key, value in SETTINGS.items():
        assert dask.config.get(key, config=collected) == value, key


def test_a_worker_refuses_a_driver_of_another_version():
    check_driver_versions(get_own_versions())
    with pytest.raises(InputError, match=r"sigdask is 0.0 here and .* at worker on .*Install the same"):
        check_driver_versions({**get_own_versions(), "sigdask": "0.0"})
