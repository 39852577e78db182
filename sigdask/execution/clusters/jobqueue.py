"""Workers as jobs of Slurm, by dask-jobqueue.

The scheduler is in this process, and each job is one worker. dask-jobqueue does not report what the queue answers, so
this module keeps the answers for error messages.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from sigdask.errors import explain_missing
from sigdask.execution.clusters.base import get_first_line, join_last_lines
from sigdask.execution.clusters.description import ClusterDescription, parse_duration
from sigdask.execution.clusters.lifecycle import QUIET_WORKER, ClusterKind
from sigdask.execution.clusters.settings import environment
from sigdask.execution.clusters.tls import TlsFiles

SAFE_TEXT = re.compile(r"[\w./+:@%=,~-]*")
"""Texts that may go into a job script. dask-jobqueue does not quote them."""

SHORTEST_LIFE = 120.0


def check_queue(description: ClusterDescription) -> None:
    """Raise unless this machine has the queue's submit command."""
    if shutil.which("sbatch") is None:
        raise description.build_error(
            "class slurm: the command sbatch is not on this machine; start sigdask where jobs can be submitted"
        )


def build_kind(description: ClusterDescription) -> ClusterKind:
    """Return the `ClusterKind` that starts workers as jobs of the queue."""
    check_queue(description)
    _import_jobqueue(description)  # in this thread, because it takes over signals
    queue = _Queue(description)
    threads = int(description.options.get("cores", 1)) // int(description.options.get("processes", 1))
    return ClusterKind(
        queue.make, queue.get_status, queue.has_vanished, queue.has_refused_all, max(1, threads), scratch=True
    )


def _import_jobqueue(description: ClusterDescription) -> Any:
    """Return the module dask_jobqueue; restore this process's handler of Ctrl-C, which importing it replaces."""
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    try:
        with explain_missing("dask-jobqueue", "slurm", f"class {description.kind}"):
            import dask_jobqueue
    finally:
        if in_main:
            signal.signal(signal.SIGINT, handler)
    return dask_jobqueue


class _Queue:
    """Workers as jobs, with the messages of submissions that the queue refused."""

    def __init__(self, description: ClusterDescription) -> None:
        self.description = description
        self.refusals: list[str] = []
        self.cluster: Any = None
        self.logs: Path | None = None

    def make(self, description: ClusterDescription, files: TlsFiles | None) -> Any:
        cluster_class = _import_jobqueue(description).SLURMCluster
        texts = {name: self.description.options.get(name) for name in ("log_directory", "local_directory")}
        texts |= {f"certificate file {path.name}": str(path) for path in files or ()}
        for name, text in texts.items():
            if text is not None and not SAFE_TEXT.fullmatch(str(text)):
                raise self.description.build_error(
                    f"{name} = {text!r}: is written into a job script, so it may have only letters, digits and "
                    "./_-; use another path"
                )
        job = _build_job_class(cluster_class.job_cls, self.refusals)
        self.cluster = cluster_class(job_cls=job, **self._build_options(files))
        return self.cluster

    def _build_options(self, files: TlsFiles | None) -> dict[str, Any]:
        user_options = dict(self.description.options)
        options = {"processes": 1, "death_timeout": 60, "python": f"{shlex.quote(sys.executable)} -P", **user_options}
        options["scheduler_options"] = {"dashboard_address": "127.0.0.1:0", **user_options.get("scheduler_options", {})}
        options["worker_extra_args"] = [
            *QUIET_WORKER,
            *self._build_lifetime_options(),
            *user_options.get("worker_extra_args", []),
        ]
        exports = [f"export {name}={shlex.quote(value)}" for name, value in environment().items()]
        options["job_script_prologue"] = [*exports, *user_options.get("job_script_prologue", [])]
        if files is not None:
            self.logs = files.ca.parent / "log"
            options.setdefault("log_directory", str(self.logs))
            options |= {"security": files.to_security(), "protocol": "tls://"}
        options["log_directory"] = options.get("log_directory") or None
        self.logs = Path(options["log_directory"]) if options["log_directory"] else None
        return options

    def _build_lifetime_options(self) -> list[str]:
        """Return worker options that end each worker at its own moment, before its job's time limit."""
        if "--lifetime" in self.description.options.get("worker_extra_args", []):
            return []
        limit = parse_duration(str(self.description.options.get("walltime", "")))
        life = limit - max(60.0, limit * 0.1) if limit else 0.0
        if life < SHORTEST_LIFE:
            return []
        return ["--lifetime", f"{life:.0f}s", "--lifetime-stagger", f"{min(life * 0.05, 300):.0f}s"]

    def get_status(self) -> str:
        """Return, as one line, the errors of the submit command, the states of the jobs, and the end of a log."""
        refusals = dict.fromkeys(self.refusals[-4:])
        ids = self._list_job_ids()
        states = _run_command(["squeue", "--noheader", "--format=%i %T %r", f"--jobs={','.join(ids)}"]) if ids else ""
        return " | ".join(filter(None, [*refusals, join_last_lines(states), self._read_log()]))

    def has_refused_all(self) -> bool:
        """Return whether every submission so far was refused."""
        jobs = dict(getattr(self.cluster, "workers", {}))
        return bool(self.refusals and jobs) and not self._list_job_ids()

    def _list_job_ids(self) -> list[str]:
        return [str(job.job_id) for job in dict(getattr(self.cluster, "workers", {})).values() if job.job_id]

    def _read_log(self) -> str:
        if self.logs is None or not self.logs.is_dir():
            return ""
        paths = sorted(self.logs.glob("*.err"), key=lambda path: path.stat().st_mtime)
        return join_last_lines(paths[-1].read_text(errors="replace"), 2) if paths else ""

    def has_vanished(self, job: Any) -> bool:
        """Return whether a worker's job is no longer known to Slurm."""
        if not job.job_id:
            return False
        process = subprocess.run(  # noqa: S603
            ["squeue", "--noheader", "--format=%T", f"--jobs={job.job_id}"],  # noqa: S607
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        return (process.returncode == 0 and not process.stdout.strip()) or "Invalid job id" in process.stderr


def _build_job_class(job_class: Any, refusals: list[str]) -> Any:
    """Return a job class that appends the error messages of the submit command to `refusals`."""
    from distributed.core import Status

    class Recording(job_class):  # type: ignore[misc]
        async def _submit_job(self, script_filename: str) -> Any:
            try:
                return await super()._submit_job(script_filename)
            except RuntimeError as error:
                stderr = str(error).partition("stderr:")[2]
                refusals.append(join_last_lines(stderr) or get_first_line(error))
                self.status = Status.failed
                raise

    return Recording


def _run_command(command: list[str]) -> str:
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return get_first_line(error)
    return process.stdout or process.stderr
