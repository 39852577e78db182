"""Scheduler, workers and driver in one Slurm job: `--cluster FILE.toml` inside an sbatch job.

For unattended nights: nothing is submitted while it runs, so no queue can starve it. The
scheduler is in this process, on the allocation's first node; `srun` starts the workers.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from sigdask.execution.certificates import CertificateFiles
from sigdask.execution.clusters.base import join_last_lines
from sigdask.execution.clusters.description import ClusterDescription
from sigdask.execution.clusters.lifecycle import QUIET_WORKER, ClusterKind, check_options
from sigdask.execution.clusters.settings import environment

OPTIONS = ("threads", "host", "srun", "worker_args")


def count_workers(_: ClusterDescription) -> int:
    """Return the default number of workers: the tasks of the Slurm allocation."""
    return int(os.environ.get("SLURM_NTASKS", "1"))


def build_kind(description: ClusterDescription) -> ClusterKind:
    """Return the `ClusterKind` that starts workers in the Slurm allocation."""
    steps: list[_WorkerStep] = []

    def make(description: ClusterDescription, files: CertificateFiles | None) -> Any:
        steps.append(_WorkerStep(description, files))
        return steps[-1].cluster

    threads = int(description.options.get("threads", os.environ.get("SLURM_CPUS_PER_TASK", "1")))
    return ClusterKind(make, get_status=lambda: steps[-1].get_status() if steps else "", threads=threads, scratch=True)


class _WorkerStep:
    """A scheduler in this process, and the srun job step that runs its workers."""

    def __init__(self, description: ClusterDescription, files: CertificateFiles | None) -> None:
        from distributed import LocalCluster

        options = check_options(description, OPTIONS)
        if "SLURM_JOB_ID" not in os.environ:
            raise description.build_error(
                "class allocation works inside a Slurm job (sbatch, salloc); see deploy/slurm"
            )
        if description.is_adaptive:
            raise description.build_error("class allocation has the allocation's size: give workers")
        tls = {} if files is None else {"security": files.to_security(), "protocol": "tls://"}

        class Allocated(LocalCluster):  # type: ignore[misc]
            """A scheduler whose workers are run by srun."""

            def scale(self, *_: Any, **__: Any) -> None:
                """Do nothing, as srun determines the number of workers."""

            def close(self, timeout: float | None = None) -> Any:
                step.terminate()
                return super().close(timeout)

        host = options.get("host", os.environ.get("SLURMD_NODENAME", "") and socket.gethostname())
        self.cluster = Allocated(n_workers=0, host=host, dashboard_address="127.0.0.1:0", silence_logs=50, **tls)
        command = build_worker_command(description, self.cluster.scheduler_address, files, options, os.environ)
        self.errors = _open_log()
        step = subprocess.Popen(  # noqa: S603
            command, env={**os.environ, **environment()}, stdout=subprocess.DEVNULL, stderr=self.errors
        )  # fmt: skip
        self.step = step

    def get_status(self) -> str:
        """Return the last lines of the error output of srun and the workers."""
        self.errors.seek(0)
        return join_last_lines(self.errors.read().decode(errors="replace"))


def build_worker_command(
    description: ClusterDescription,
    address: str,
    files: CertificateFiles | None,
    options: Mapping[str, Any],
    env: Mapping[str, str],
) -> list[str]:
    """Return the srun command that starts the workers, as a list of arguments."""
    n_workers = description.workers or int(env.get("SLURM_NTASKS", "1"))
    threads = str(options.get("threads", env.get("SLURM_CPUS_PER_TASK", 1)))
    tls: list[str] = []
    if files is not None:
        tls = ["--tls-ca-file", str(files.ca), "--tls-cert", str(files.certs["worker"]),
               "--tls-key", str(files.keys["worker"])]  # fmt: skip
    return [
        "srun", "--overlap", "--kill-on-bad-exit=0", f"--ntasks={n_workers}", *options.get("srun", []),
        sys.executable, "-m", "distributed.cli.dask_worker", address, *QUIET_WORKER, "--nthreads", threads,
        "--death-timeout", "60", *options.get("worker_args", []), *tls,
    ]  # fmt: skip


def _open_log() -> Any:
    import tempfile

    return tempfile.TemporaryFile()
