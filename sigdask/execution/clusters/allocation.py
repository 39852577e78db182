"""Clusters in the Slurm job in which this process runs: nothing is submitted, so a run at night never waits in a queue.

The scheduler is in this process on the job's first node, and `srun` starts the workers.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sigdask.execution.clusters.base import LOOPBACK_PAGES, QUIET_WORKER, environment, join_last_lines
from sigdask.execution.clusters.description import ClusterDescription, build_settings


def as_allocation(description: ClusterDescription) -> ClusterDescription:
    """Return a Slurm cluster's description as one allocation, for a driver that runs inside a Slurm job.

    Raises
    ------
    InputError
        The description is not of a Slurm cluster.
    """
    if description.kind != "slurm":
        raise description.build_error(f"class {description.kind}: only class slurm can run a whole cluster in one job")
    size = {"workers": description.maximum or description.workers, "minimum": 0, "maximum": None}
    return description.model_copy(update={"kind": "allocation", **size})


@contextmanager
def open_cluster(description: ClusterDescription, security: Any) -> Iterator[Any]:
    """Yield a scheduler in this process, while a job step of srun runs its workers."""
    from distributed import LocalCluster

    if "SLURM_JOB_ID" not in os.environ:
        raise description.build_error("an allocation needs a Slurm job (sbatch, salloc); see deploy/slurm")
    with tempfile.TemporaryFile() as errors:

        class Allocation(LocalCluster):  # type: ignore[misc]
            """A scheduler whose workers are run by srun."""

            def get_status(self) -> str:
                """Return the last lines of the error output of srun and the workers."""
                errors.seek(0)
                return join_last_lines(errors.read().decode(errors="replace"))

        cluster = Allocation(
            n_workers=0,
            host=description.options.scheduler_options.get("host", socket.gethostname()),
            protocol="tcp://" if security is None else "tls://",
            security=security,
            dashboard_address=LOOPBACK_PAGES,
            silence_logs=50,
        )
        command = [
            "srun", "--overlap", "--kill-on-bad-exit=0", f"--ntasks={description.workers}",
            sys.executable, "-P", "-m", "distributed.cli.dask_worker", cluster.scheduler_address, *QUIET_WORKER,
            "--nthreads", str(description.options.cores), "--death-timeout", "60",
            *description.options.worker_extra_args,
        ]  # fmt: skip
        variables = os.environ | environment(_list_certificates(security))
        step = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=errors)  # noqa: S603
        try:
            yield cluster
        finally:
            step.terminate()


def _list_certificates(security: Any) -> dict[str, Any]:
    """Return dask's settings with the certificates; in the environment only this user can read them."""
    if security is None:
        return {}
    certificates = security.get_tls_config_for_role("worker")
    return build_settings(certificates["ca_file"], certificates["cert"], certificates["key"])
