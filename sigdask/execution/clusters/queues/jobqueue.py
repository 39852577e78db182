"""Workers as jobs of a queueing system (Slurm, PBS, SGE, LSF, HTCondor, …), by dask-jobqueue.

The scheduler is in this process; each job is one worker. dask-jobqueue keeps what the queue said
to itself: here it is kept for errors.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from sigdask.errors import missing_extra
from sigdask.execution.certificates import Files
from sigdask.execution.clusters.base import first_line, last_lines
from sigdask.execution.clusters.description import QUEUES, Description, seconds_of
from sigdask.execution.clusters.lifecycle import QUIET_WORKER, ClusterKind
from sigdask.execution.clusters.settings import environment

SUBMIT = {
    "slurm": "sbatch",
    "pbs": "qsub",
    "sge": "qsub",
    "lsf": "bsub",
    "htcondor": "condor_submit",
    "oar": "oarsub",
    "moab": "msub",
}
"""What submits a job to each queue."""

ASK = {
    "slurm": ["squeue", "--noheader", "--format=%i %T %r", "--jobs={}"],
    "pbs": ["qstat", "{}"],
    "sge": ["qstat", "-j", "{}"],
    "lsf": ["bjobs", "-noheader", "-pend", "{}"],
    "htcondor": ["condor_q", "-hold", "-better-analyze", "{}"],
}
"""How to ask each queue about jobs."""

PLAIN = re.compile(r"[\w./+:@%=,~-]*")
"""What dask-jobqueue may put into a job script, which it does without quoting."""

SHORTEST_LIFE = 120.0


def check(description: Description) -> None:
    """Refuse a queue that cannot be reached from this machine."""
    command = SUBMIT[description.kind]
    if shutil.which(command) is None:
        raise description.refuse(
            f"class {description.kind}: there is no {command} on this machine; start it where jobs can be submitted"
        )


def kind(description: Description) -> ClusterKind:
    """Return how workers are queued."""
    check(description)
    _dask_jobqueue(description)  # in this thread, for it takes signals
    queue = _Queue(description)
    threads = int(description.options.get("cores", 1)) // int(description.options.get("processes", 1))
    vanished = queue.has_vanished if description.kind == "slurm" else None
    return ClusterKind(queue.make, queue.said, vanished, queue.refuses_all, max(1, threads), scratch=True)


def _dask_jobqueue(description: Description) -> Any:
    """Import what queues workers, and give back Ctrl-C, which it takes for itself."""
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    try:
        import dask_jobqueue
    except ImportError:
        raise missing_extra("dask-jobqueue", "slurm", f"class {description.kind}") from None
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before)
    return dask_jobqueue


class _Queue:
    """One queueing system, and what it said."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self.refusals: list[str] = []
        self.cluster: Any = None
        self.logs: Path | None = None

    def make(self, description: Description, files: Files | None) -> Any:
        made = getattr(_dask_jobqueue(description), f"{QUEUES[description.kind]}Cluster")
        self._check_plain(files)
        job = _recording(made.job_cls, self.refusals)
        self.cluster = made(job_cls=job, **self._options(files))
        return self.cluster

    def _options(self, files: Files | None) -> dict[str, Any]:
        given = dict(self.description.options)
        own = {"processes": 1, "death_timeout": 60, **given}
        own["scheduler_options"] = {"dashboard_address": "127.0.0.1:0", **given.get("scheduler_options", {})}
        own["worker_extra_args"] = [*QUIET_WORKER, *self._lifetime(), *given.get("worker_extra_args", [])]
        exports = [f"export {name}={shlex.quote(value)}" for name, value in environment().items()]
        own["job_script_prologue"] = [*exports, *given.get("job_script_prologue", [])]
        if files is not None:
            self.logs = files.ca.parent / "log"
            own.setdefault("log_directory", str(self.logs))
            own |= {"security": files.security(), "protocol": "tls://"}
        own["log_directory"] = own.get("log_directory") or None
        self.logs = Path(own["log_directory"]) if own["log_directory"] else None
        return own

    def _lifetime(self) -> list[str]:
        """End workers gracefully before the queue kills them, not all at the same moment."""
        if "--lifetime" in self.description.options.get("worker_extra_args", []):
            return []
        limit = seconds_of(str(self.description.options.get("walltime", "")))
        life = limit - max(60.0, limit * 0.1) if limit else 0.0
        if life < SHORTEST_LIFE:
            return []
        return ["--lifetime", f"{life:.0f}s", "--lifetime-stagger", f"{min(life * 0.05, 300):.0f}s"]

    def _check_plain(self, files: Files | None) -> None:
        texts = {"log_directory": self.description.options.get("log_directory"),
                 "local_directory": self.description.options.get("local_directory")}  # fmt: skip
        texts |= {f"certificate file {path.name}": str(path) for path in files or ()}
        for what, text in texts.items():
            if text is not None and not PLAIN.fullmatch(str(text)):
                raise self.description.refuse(
                    f"{what} = {text!r}: goes into a job script; give a path of letters, digits, and ./_- only"
                )

    def said(self) -> str:
        """Return refusals of the submit command, the state of the jobs, and the end of their logs."""
        refusals = dict.fromkeys(self.refusals[-4:])
        return " | ".join(filter(None, [*refusals, self._states(), self._log()]))

    def refuses_all(self) -> bool:
        """Say whether every submission so far was refused."""
        jobs = dict(getattr(self.cluster, "workers", {}))
        return bool(self.refusals and jobs) and not self._ids()

    def _ids(self) -> list[str]:
        return [str(job.job_id) for job in dict(getattr(self.cluster, "workers", {})).values() if job.job_id]

    def _states(self) -> str:
        ids, command = self._ids(), ASK.get(self.description.kind)
        if not ids or command is None:
            return ""
        return last_lines(_output([part.format(",".join(ids)) for part in command]))

    def _log(self) -> str:
        if self.logs is None or not self.logs.is_dir():
            return ""
        written = sorted(self.logs.glob("*.err"), key=lambda path: path.stat().st_mtime)
        return last_lines(written[-1].read_text(errors="replace"), 2) if written else ""

    def has_vanished(self, job: Any) -> bool:
        """Say whether Slurm no longer knows a job."""
        if not job.job_id:
            return False
        done = subprocess.run(  # noqa: S603
            ["squeue", "--noheader", "--format=%T", f"--jobs={job.job_id}"],  # noqa: S607
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        return (done.returncode == 0 and not done.stdout.strip()) or "Invalid job id" in done.stderr


def _recording(job_class: Any, refusals: list[str]) -> Any:
    """Return a job class that keeps what the submit command complained of."""
    from distributed.core import Status

    class Recording(job_class):  # type: ignore[misc]
        async def _submit_job(self, script_filename: str) -> Any:
            try:
                return await super()._submit_job(script_filename)
            except RuntimeError as error:
                stderr = str(error).partition("stderr:")[2]
                refusals.append(last_lines(stderr) or first_line(error))
                self.status = Status.failed
                raise

    return Recording


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return first_line(error)
    return done.stdout or done.stderr
