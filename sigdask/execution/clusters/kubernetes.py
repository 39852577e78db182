"""Clusters of pods on Kubernetes, by the operator of dask-kubernetes and its class KubeCluster.

    class = "kubernetes"
    workers = 8
    security = "tcp"
    [options]
    image = "registry.example.org/sigdask:0.4.0.dev0"
    namespace = "evaluation"

dask's class and its operator support only plain tcp, so a cluster file must say so. A DaskCluster with TLS is reached
by its address (deploy/kubernetes).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sigdask.errors import explain_missing
from sigdask.execution.clusters.base import environment
from sigdask.execution.clusters.description import ClusterDescription


@contextmanager
def open_cluster(description: ClusterDescription, security: Any) -> Iterator[Any]:
    """Yield a cluster of pods, which dask's class deletes when it is closed."""
    if security is not None:
        raise description.build_error(
            'class kubernetes supports only plain tcp: write security = "tcp" for a network in which you trust all '
            "pods, or start a DaskCluster with TLS and give its address (deploy/kubernetes)"
        )
    with explain_missing("dask-kubernetes", "class kubernetes"):
        from dask_kubernetes.operator import KubeCluster
    yield KubeCluster(**build_arguments(description))


def build_arguments(description: ClusterDescription) -> dict[str, Any]:
    """Return the arguments of KubeCluster, for pods of sigdask's image unless the file names a specification."""
    from dask_kubernetes.operator import make_cluster_spec

    options = description.options.to_arguments()
    if "custom_cluster_spec" in options:
        return options
    own = {"namespace": options.pop("namespace", None), "quiet": True}
    variables = {**environment(), "NUMBA_CACHE_DIR": "/tmp/numba"}  # noqa: S108  # the image's home may be read-only
    pods = {"name": f"sigdask-{secrets.token_hex(4)}", "n_workers": description.workers or 0, "env": variables}
    spec = make_cluster_spec(**pods | options, worker_command=["dask", "worker"])
    arguments = spec["spec"]["scheduler"]["spec"]["containers"][0]["args"]
    arguments[:1] = ["dask", "scheduler"]  # the program dask-scheduler no longer exists
    return {"custom_cluster_spec": spec, **own}
