"""Slurm jobs that hold a whole run: scheduler, workers and driver in one allocation, and its submission.

With `--cluster allocation:FILE.toml` inside an sbatch job, nothing more is submitted, so a run at night never waits in
a queue. The scheduler is in this process on the first node of the allocation, and `srun` starts the workers.

`sigdask submit PLAN --cluster FILE.toml` submits the whole run of a plan. The job stops a minute before its time limit,
stores its counts, and returns to the queue until the plan is done. Options are arguments of sbatch, and paths are
quoted in the script, so no shell interprets a name.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigdask.errors import InputError, UnfinishedError
from sigdask.execution.clusters import ALLOCATION_PREFIX, read
from sigdask.execution.clusters.base import join_last_lines
from sigdask.execution.clusters.description import ClusterDescription, parse_duration
from sigdask.execution.clusters.lifecycle import QUIET_WORKER, ClusterKind, check_options
from sigdask.execution.clusters.settings import environment
from sigdask.execution.clusters.tls import TlsFiles

OPTIONS = ("threads", "host", "srun", "worker_args")


def count_workers(_: ClusterDescription) -> int:
    """Return the default number of workers: the tasks of the Slurm allocation."""
    return int(os.environ.get("SLURM_NTASKS", "1"))


def build_kind(description: ClusterDescription) -> ClusterKind:
    """Return the `ClusterKind` that starts workers in the Slurm allocation."""
    threads = int(description.options.get("threads", os.environ.get("SLURM_CPUS_PER_TASK", "1")))
    return ClusterKind(_make_cluster, threads=threads, scratch=True)


def _make_cluster(description: ClusterDescription, files: TlsFiles | None) -> Any:
    """Start a scheduler in this process, and the srun job step that runs its workers."""
    from distributed import LocalCluster

    options = check_options(description, OPTIONS)
    if "SLURM_JOB_ID" not in os.environ:
        raise description.build_error("class allocation works inside a Slurm job (sbatch, salloc); see deploy/slurm")
    if description.is_adaptive:
        raise description.build_error("class allocation has the allocation's size: give workers")
    tls = {} if files is None else {"security": files.to_security(), "protocol": "tls://"}

    class Allocated(LocalCluster):  # type: ignore[misc]
        """A scheduler whose workers are run by srun."""

        def scale(self, *_: Any, **__: Any) -> None:
            """Do nothing, because srun determines the number of workers."""

        def close(self, timeout: float | None = None) -> Any:
            step.terminate()
            return super().close(timeout)

        def get_status(self) -> str:
            """Return the last lines of the error output of srun and the workers."""
            errors.seek(0)
            return join_last_lines(errors.read().decode(errors="replace"))

    host = options.get("host", os.environ.get("SLURMD_NODENAME", "") and socket.gethostname())
    cluster = Allocated(n_workers=0, host=host, dashboard_address="127.0.0.1:0", silence_logs=50, **tls)
    command = build_worker_command(description, cluster.scheduler_address, files, options, os.environ)
    errors = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the step
    step = subprocess.Popen(  # noqa: S603
        command, env={**os.environ, **environment()}, stdout=subprocess.DEVNULL, stderr=errors
    )  # fmt: skip
    return cluster


def build_worker_command(
    description: ClusterDescription,
    address: str,
    files: TlsFiles | None,
    options: Mapping[str, Any],
    env: Mapping[str, str],
) -> list[str]:
    """Return the srun command that starts the workers, as a list of arguments."""
    n_workers = description.workers or int(env.get("SLURM_NTASKS", "1"))
    threads = str(options.get("threads", env.get("SLURM_CPUS_PER_TASK", 1)))
    tls = [] if files is None else files.to_arguments()
    return [
        "srun", "--overlap", "--kill-on-bad-exit=0", f"--ntasks={n_workers}", *options.get("srun", []),
        sys.executable, "-P", "-m", "distributed.cli.dask_worker", address, *QUIET_WORKER, "--nthreads", threads,
        "--death-timeout", "60", *options.get("worker_args", []), *tls,
    ]  # fmt: skip


MARGIN = 60
"""Seconds before the time limit at which the driver receives the signal to stop. It needs ten."""

MAX_RESTARTS = 100

SUBMIT_SECONDS = 120
"""Seconds to wait for sbatch."""

SCRIPT = """#!/bin/bash
# Written by `sigdask submit`. Exit status 3 after a warning of the time limit means: there is more to count.
set -u
stopping=
driver=
trap 'stopping=1; [ -z "$driver" ] || kill -TERM "$driver" 2>/dev/null' TERM
{prologue}
cd -- {folder} || exit 2
{command} &
driver=$!
[ -z "$stopping" ] || kill -TERM "$driver" 2>/dev/null
wait "$driver"
status=$?
if [ -n "$stopping" ]; then
    wait "$driver"
    again=$?
    if [ "$again" -ne 127 ]; then status=$again; fi
    for pause in 1 2 4 8; do  # a busy controller may not answer at once
        state=$(squeue --noheader --format=%T --jobs="$SLURM_JOB_ID") && [ -n "$state" ] && break
        sleep "$pause"
    done
    # 143: the warning came before the driver had begun, or while it was leaving
    if {{ [ "$status" -eq 3 ] || [ "$status" -eq 143 ]; }} && [ "$state" = RUNNING ] &&
        [ "${{SLURM_RESTART_COUNT:-0}}" -lt {restarts} ]; then
        for pause in 1 2 4 8; do
            scontrol requeue "$SLURM_JOB_ID" && exit 0
            sleep "$pause"
        done
    fi
fi
exit "$status"
"""


@dataclass(frozen=True, slots=True)
class Submission:
    """A Slurm batch job that is ready to be submitted.

    Attributes
    ----------
    arguments : tuple of str
        The sbatch command, without the script.
    script : str
        Its content.
    """

    arguments: tuple[str, ...]
    script: str

    def send(self) -> str:
        """Submit the batch job by sbatch, and return the job's id.

        Raises
        ------
        InputError
            This machine has no sbatch.
        UnfinishedError
            sbatch refused. The message says why.
        """
        with tempfile.NamedTemporaryFile("w", prefix="sigdask-", suffix=".sh", encoding="utf-8") as file:
            file.write(self.script)
            file.flush()
            try:
                process = subprocess.run(  # noqa: S603
                    [*self.arguments, file.name], capture_output=True, text=True, check=False, timeout=SUBMIT_SECONDS
                )
            except subprocess.TimeoutExpired:
                raise UnfinishedError(
                    f"sbatch did not answer within {SUBMIT_SECONDS} s; `squeue --me` shows whether the job was accepted"
                ) from None
            except OSError as error:
                raise InputError(f"sbatch cannot be run here ({error.strerror}): submit from a login node") from None
        if process.returncode != 0:
            raise UnfinishedError(f"sbatch refused: {join_last_lines(process.stderr)}")
        return process.stdout.strip().partition(";")[0]


def build_submission(
    plan: Path,
    cluster: Path,
    *,
    options: Sequence[str] = (),
    program: Sequence[str] = (sys.executable, "-P", "-m", "sigdask", "run"),
    margin: int = MARGIN,
) -> Submission:
    """Return the batch job that runs a plan.

    Parameters
    ----------
    plan : Path
        The plan.
    cluster : Path
        A cluster file of class slurm.
    options : sequence of str
        Further options of `sigdask run`.
    program : sequence of str
        Command that runs a plan.
    margin : int
        Seconds before the time limit at which the job receives the signal to stop; at most half of the limit.

    Raises
    ------
    InputError
        The plan is missing, or the file does not describe a Slurm cluster.
    """
    if not plan.is_file():
        raise InputError(f"plan {plan}: no such file")
    description = read(cluster)
    if description.kind != "slurm":
        raise description.build_error(
            f"class {description.kind}: `sigdask submit` supports only Slurm; start `sigdask run` yourself"
        )
    allocation = description.submit.get("allocation", "one")
    if allocation not in {"one", "jobs"}:
        raise description.build_error(f'[submit] allocation = {allocation!r}: must be "one" or "jobs"')
    cluster_name = f"{ALLOCATION_PREFIX if allocation == 'one' else ''}{cluster.resolve()}"
    command = [*program, str(plan.resolve()), "--cluster", cluster_name, *options]
    script = SCRIPT.format(
        prologue="\n".join(description.submit.get("prologue", [])),
        folder=shlex.quote(str(Path.cwd())),
        command=shlex.join(command),
        restarts=description.submit.get("restarts", MAX_RESTARTS),
    )
    return Submission(
        ("sbatch", *_build_arguments(plan, description, margin, in_allocation=allocation == "one")), script
    )


def _build_arguments(plan: Path, description: ClusterDescription, margin: int, *, in_allocation: bool) -> list[str]:
    options, submit = description.options, description.submit
    walltime = submit.get("walltime", options.get("walltime"))
    margin = min(margin, _parse_time_limit(walltime) // 2)
    n_cores = int(options.get("cores", 1))
    megabytes = _parse_megabytes(options["memory"], description) // n_cores if "memory" in options else None
    size = ["--ntasks=1"]
    if in_allocation:
        size = [f"--ntasks={description.max_workers or 1}", f"--cpus-per-task={n_cores}"]
        size += [] if megabytes is None else [f"--mem-per-cpu={max(1, megabytes)}M"]
    flags = {"--partition": options.get("queue"), "--account": options.get("account"), "--time": walltime,
             "--nodes": submit.get("nodes")}  # fmt: skip
    log = Path(submit.get("log", Path.cwd() / f"{_make_safe_name(plan.stem)}-%j.log"))
    return [
        "--parsable", f"--job-name=sigdask-{_make_safe_name(plan.stem)}", "--requeue", "--open-mode=append",
        f"--signal=B:TERM@{margin}", f"--output={log}",
        *size,
        *(f"{key}={value}" for key, value in flags.items() if value is not None),
        *(word for line in options.get("job_extra_directives", []) for word in _split_directive(line, description)),
        *(word for line in submit.get("directives", []) for word in _split_directive(line, description)),
    ]  # fmt: skip


def _split_directive(line: str, description: ClusterDescription) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise description.build_error(f"directive {line!r}: {error}") from None


def _parse_time_limit(walltime: object) -> int:
    """Return the seconds of a time limit in Slurm's notation, in which a number alone means minutes.

    Examples
    --------
    >>> _parse_time_limit("00:01:00"), _parse_time_limit(5), _parse_time_limit("2-12")
    (60, 300, 216000)
    """
    text = str(walltime)
    if match := re.fullmatch(r"(\d+)-(\d+)", text):
        return int(match[1]) * 86400 + int(match[2]) * 3600
    seconds = parse_duration(f"{text} min" if text.isdigit() else text)
    return sys.maxsize if seconds is None else int(seconds)


def _parse_megabytes(memory: str, description: ClusterDescription) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", str(memory), re.IGNORECASE)
    if match is None:
        raise description.build_error(f'[options] memory = {memory!r}: must be a size such as "4GB"')
    return int(float(match[1]) * {"": 1e-6, "K": 1e-3, "M": 1, "G": 1000, "T": 1_000_000}[match[2].upper()])


def _make_safe_name(name: str) -> str:
    """Return a name without characters that are special in file names or in Slurm's patterns.

    Examples
    --------
    >>> _make_safe_name("night $(date) %j")
    'night-date-j'
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-") or "plan"
