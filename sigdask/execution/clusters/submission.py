"""Submission of a plan's whole run to Slurm: `sigdask submit PLAN --cluster FILE.toml`.

The job holds the driver and, unless workers are to be jobs of their own, the scheduler and all workers. It stops a
minute before its time limit, stores its counts, and returns to the queue until the plan is done. Options are arguments
of sbatch, and paths are quoted in the script, so no shell interprets a name.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dask.utils import parse_bytes

from sigdask.errors import InputError, UnfinishedError
from sigdask.execution.clusters import ALLOCATION_PREFIX, read
from sigdask.execution.clusters.base import join_last_lines
from sigdask.execution.clusters.description import ClusterDescription

MARGIN = 60
"""Seconds before the time limit at which the driver receives the signal to stop. It needs ten."""

MAX_RESTARTS = 100

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
        The sbatch command.
    script : str
        The script, which sbatch reads from standard input.
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
        try:
            process = subprocess.run(  # noqa: S603
                self.arguments, input=self.script, capture_output=True, text=True, check=False
            )
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
    margin : int
        Seconds before the time limit at which the job receives the signal to stop.

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
    in_allocation = description.submit.allocation == "one"
    cluster_name = f"{ALLOCATION_PREFIX if in_allocation else ''}{cluster.resolve()}"
    command = [sys.executable, "-P", "-m", "sigdask", "run", str(plan.resolve()), "--cluster", cluster_name, *options]
    script = SCRIPT.format(
        prologue="\n".join(description.options.job_script_prologue),
        folder=shlex.quote(str(Path.cwd())),
        command=shlex.join(command),
        restarts=MAX_RESTARTS,
    )
    try:
        return Submission(("sbatch", *_build_arguments(plan, description, margin)), script)
    except ValueError as error:
        raise description.build_error(str(error)) from None


def _build_arguments(plan: Path, description: ClusterDescription, margin: int) -> list[str]:
    options, name = description.options, _make_safe_name(plan.stem)
    size = ["--ntasks=1"]
    if description.submit.allocation == "one":
        megabytes = parse_bytes(options.memory) // options.cores // 10**6
        size = [f"--ntasks={description.maximum or description.workers or 1}", f"--cpus-per-task={options.cores}"]
        size += [f"--mem-per-cpu={megabytes}M"] if megabytes else []
    table, lines = options.to_arguments(), [*options.job_extra_directives, *description.submit.directives]
    flags = {"--partition": table.get("queue"), "--account": table.get("account"),
             "--time": description.submit.walltime or table.get("walltime")}  # fmt: skip
    return [
        "--parsable", f"--job-name=sigdask-{name}", "--requeue", "--open-mode=append", f"--signal=B:TERM@{margin}",
        f"--output={Path.cwd() / f'{name}-%j.log'}", *size,
        *(f"{key}={value}" for key, value in flags.items() if value is not None),
        *(word for line in lines for word in shlex.split(line)),
    ]  # fmt: skip


def _make_safe_name(name: str) -> str:
    """Return a name without characters that are special in file names or in Slurm's patterns.

    Examples
    --------
    >>> _make_safe_name("night $(date) %j")
    'night-date-j'
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-") or "plan"
