"""Clusters of any other dask class, given as `module:Class` with options."""

from __future__ import annotations

import importlib
import inspect
from functools import partial, reduce
from typing import Any

from sigdask.errors import InputError
from sigdask.execution.clusters.description import ClusterDescription
from sigdask.execution.clusters.lifecycle import ClusterKind
from sigdask.execution.clusters.tls import TlsFiles

PAGES = "127.0.0.1:0"
"""Default address of dashboards. dask's own default listens on all interfaces."""


def build_kind(description: ClusterDescription) -> ClusterKind:
    """Return the `ClusterKind` that starts a cluster of the user's own class."""
    module, _, name = description.kind.partition(":")
    try:
        cluster_class = reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        remedy = "write MODULE:CLASS of a dask cluster class that Python can import here"
        raise InputError(f"{description.source}: class {description.kind!r}: {error}; {remedy}") from None
    return ClusterKind(partial(_make_cluster, cluster_class))


def _make_cluster(cluster_class: Any, description: ClusterDescription, files: TlsFiles | None) -> Any:
    options, parameters = dict(description.options), inspect.signature(cluster_class).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    if files is not None:
        if "security" not in parameters and not takes_any:
            raise description.build_error(
                f'{description.kind} takes no security=, so it cannot use TLS; write security = "tcp" to start '
                "it without TLS"
            )
        options["security"] = files.to_security()
        if "protocol" in parameters or takes_any:
            options.setdefault("protocol", "tls://")
    for name in ("dashboard_address", "worker_dashboard_address"):
        if name in parameters:
            options.setdefault(name, PAGES)
    for name in ("scheduler_options", "worker_options"):  # dask-jobqueue and SSHCluster
        if name in parameters and "dashboard_address" not in parameters:
            options[name] = {"dashboard_address": PAGES, **(options.get(name) or {})}
    return cluster_class(**options)
