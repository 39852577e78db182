"""The driver itself as a Slurm job: `sigdask submit PLAN --cluster FILE.toml`, and the laptop can be closed.

The job stops a minute before its time limit, keeps what is counted, and goes back to the queue
until the plan is done. Options go to sbatch as arguments and paths into the script quoted: no
shell reads a name.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sigdask.errors import InputError, UnfinishedError
from sigdask.execution.clusters import INSIDE, read
from sigdask.execution.clusters.base import last_lines
from sigdask.execution.clusters.description import Description

MARGIN = 60
"""Seconds before the time limit at which the driver is told to stop; it needs ten."""

RESTARTS = 100

PATIENCE = 120
"""Seconds to wait for sbatch."""

SCRIPT = """#!/bin/bash
# Written by `sigdask submit`. Exit status 3 after a warning of the time limit means: there is more to count.
set -u
stopping=
{prologue}
cd -- {folder} || exit 2
{command} &
driver=$!
trap 'stopping=1; kill -TERM "$driver" 2>/dev/null' TERM
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
    """What is sent to the queue.

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
        """Submit it; return the job's id.

        Raises
        ------
        InputError
            There is no sbatch here.
        UnfinishedError
            sbatch refused; says why.
        """
        with tempfile.NamedTemporaryFile("w", prefix="sigdask-", suffix=".sh", encoding="utf-8") as file:
            file.write(self.script)
            file.flush()
            try:
                done = subprocess.run(  # noqa: S603
                    [*self.arguments, file.name], capture_output=True, text=True, check=False, timeout=PATIENCE
                )
            except subprocess.TimeoutExpired:
                raise UnfinishedError(
                    f"sbatch did not answer within {PATIENCE} s; `squeue --me` tells whether the job was taken"
                ) from None
            except OSError as error:
                raise InputError(f"sbatch cannot be run here ({error.strerror}): submit from a login node") from None
        if done.returncode != 0:
            raise UnfinishedError(f"sbatch refused: {last_lines(done.stderr)}")
        return done.stdout.strip().partition(";")[0]


def prepare(
    plan: Path,
    cluster: Path,
    *,
    options: Sequence[str] = (),
    program: Sequence[str] = (sys.executable, "-m", "sigdask", "run"),
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
        What runs a plan.
    margin : int
        Seconds before the time limit at which it is told to stop.

    Raises
    ------
    InputError
        The plan is missing, or the file describes no Slurm cluster.
    """
    if not plan.is_file():
        raise InputError(f"plan {plan}: no such file")
    description = read(cluster)
    if description.kind != "slurm":
        raise description.refuse(f"class {description.kind}: submit knows Slurm; start `sigdask run` there by hand")
    alone = description.submit.get("allocation", "one")
    if alone not in {"one", "jobs"}:
        raise description.refuse(f'[submit] allocation = {alone!r}: must be "one" or "jobs"')
    where = f"{INSIDE if alone == 'one' else ''}{cluster.resolve()}"
    command = [*program, str(plan.resolve()), "--cluster", where, *options]
    script = SCRIPT.format(
        prologue="\n".join(description.submit.get("prologue", [])),
        folder=shlex.quote(str(Path.cwd())),
        command=shlex.join(command),
        restarts=description.submit.get("restarts", RESTARTS),
    )
    return Submission(("sbatch", *_arguments(plan, description, margin, one=alone == "one")), script)


def _arguments(plan: Path, description: Description, margin: int, *, one: bool) -> list[str]:
    given, own = description.options, description.submit
    walltime = own.get("walltime", given.get("walltime"))
    n_cores = int(given.get("cores", 1))
    size = [f"--ntasks={description.expected or 1}", f"--cpus-per-task={n_cores}"] if one else ["--ntasks=1"]
    memory = (
        [f"--mem-per-cpu={max(1, _megabytes(given['memory'], description) // n_cores)}M"] if "memory" in given else []
    )
    named = {"--partition": given.get("queue"), "--account": given.get("account"), "--time": walltime,
             "--nodes": own.get("nodes")}  # fmt: skip
    log = Path(own.get("log", Path.cwd() / f"{_plain(plan.stem)}-%j.log"))
    return [
        "--parsable", f"--job-name=sigdask-{_plain(plan.stem)}", "--requeue", "--open-mode=append",
        f"--signal=B:TERM@{margin}", f"--output={log}",
        *size, *(memory if one else []),
        *(f"{key}={value}" for key, value in named.items() if value is not None),
        *(word for line in given.get("job_extra_directives", []) for word in _words(line, description)),
        *(word for line in own.get("directives", []) for word in _words(line, description)),
    ]  # fmt: skip


def _words(line: str, description: Description) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise description.refuse(f"directive {line!r}: {error}") from None


def _megabytes(memory: str, description: Description) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", str(memory), re.IGNORECASE)
    if match is None:
        raise description.refuse(f'[options] memory = {memory!r}: must be a size such as "4GB"')
    return int(float(match[1]) * {"": 1e-6, "K": 1e-3, "M": 1, "G": 1000, "T": 1_000_000}[match[2].upper()])


def _plain(name: str) -> str:
    """Return a name that is safe in file names and patterns of Slurm.

    Examples
    --------
    >>> _plain("night $(date) %j")
    'night-date-j'
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-") or "plan"
