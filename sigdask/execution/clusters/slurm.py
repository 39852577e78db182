"""Workers as Slurm jobs, by dask-jobqueue.

The scheduler is in this process, and each job is one worker. dask-jobqueue does not report what the queue answers, so
this module keeps the answers for error messages.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sigdask.errors import explain_missing
from sigdask.execution.clusters.base import (
    LOOPBACK_PAGES,
    QUIET_WORKER,
    environment,
    get_first_line,
    join_last_lines,
    log,
)
from sigdask.execution.clusters.description import ClusterDescription, write_certificate


def check_queue(description: ClusterDescription) -> None:
    """Raise unless this machine has dask-jobqueue and the queue's submit command."""
    handler = signal.getsignal(signal.SIGINT)
    with explain_missing("dask-jobqueue", "class slurm"):
        import dask_jobqueue  # noqa: F401  # takes over Ctrl-C when it is imported
    with suppress(ValueError):  # in another thread than the main one
        signal.signal(signal.SIGINT, handler)
    if shutil.which("sbatch") is None:
        raise description.build_error(
            "class slurm: the command sbatch is not on this machine; start sigdask where jobs can be submitted"
        )


@contextmanager
def open_cluster(description: ClusterDescription, security: Any) -> Iterator[Any]:
    """Yield a cluster of jobs, with certificates and logs in a private folder of the home that hosts share."""
    root = Path.home() / ".sigdask"
    root.mkdir(exist_ok=True, mode=0o700)
    with TemporaryDirectory(prefix="slurm-", dir=root, ignore_cleanup_errors=True) as folder:
        user_options = description.options.to_arguments()
        exports = [f"export {name}={shlex.quote(value)}" for name, value in environment().items()]
        options = {"death_timeout": 60, "python": f"{shlex.quote(sys.executable)} -P", "log_directory": folder}
        options |= user_options
        options |= {
            "scheduler_options": {"dashboard_address": LOOPBACK_PAGES, **description.options.scheduler_options},
            "worker_extra_args": [*QUIET_WORKER, *description.options.worker_extra_args],
            "job_script_prologue": [*exports, *description.options.job_script_prologue],
        }
        if security is not None and description.certificates is None:
            security = write_certificate(security, Path(folder) / "tls.pem")
        yield _build_cluster_class()(security=security, processes=1, **options)


def _build_cluster_class() -> Any:
    """Return dask's SLURMCluster with the answers of the queue."""
    from dask_jobqueue import SLURMCluster
    from distributed.core import Status

    refusals: list[str] = []

    class RecordingJob(SLURMCluster.job_cls):  # type: ignore[misc]
        """A job that records why its submission was refused."""

        async def _submit_job(self, script_filename: str) -> Any:
            try:
                return await super()._submit_job(script_filename)
            except RuntimeError as error:
                stderr = str(error).partition("stderr:")[2]
                refusals.append(join_last_lines(stderr) or get_first_line(error))
                log.warning("sbatch: %s", refusals[-1])
                self.status = Status.failed  # else the cluster could not be closed
                raise

    class RecordingCluster(SLURMCluster):  # type: ignore[misc]
        """A Slurm cluster that says what the queue answers."""

        job_cls = RecordingJob

        def adapt(self, **options: Any) -> Any:
            """Look at the work every few seconds only, because each refused job is submitted again at each look."""
            return super().adapt(interval="5s", **options)

        def is_hopeless(self) -> bool:
            """Return whether every submission so far was refused."""
            return bool(refusals) and not self._list_job_ids()

        def get_status(self) -> str:
            """Return, as one line, the errors of the submit command, the states of the jobs, and the end of a log."""
            ids = self._list_job_ids()
            states = _run_squeue(f"--jobs={','.join(ids)}") if ids else ""
            paths = sorted(Path(self._job_kwargs["log_directory"]).glob("*.err"), key=lambda path: path.stat().st_mtime)
            log_end = join_last_lines(paths[-1].read_text(errors="replace"), 2) if paths else ""
            return " | ".join(filter(None, [*dict.fromkeys(refusals[-4:]), join_last_lines(states), log_end]))

        def _list_job_ids(self) -> list[str]:
            return [str(job.job_id) for job in list(self.workers.values()) if job.job_id]

    return RecordingCluster


def _run_squeue(jobs: str) -> str:
    command = ["squeue", "--noheader", "--format=%i %T %r", jobs]
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return get_first_line(error)
    return process.stdout or process.stderr
