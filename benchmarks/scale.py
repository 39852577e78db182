"""Measure large comparisons as commands: `python -m benchmarks.scale [PART OF A NAME] [--small]`.

Writes `results-scale.md` with the goal of each beside wall time, CPU and peak memory, those of worker processes included;
a run of some of them replaces their lines alone. `--small` runs the commands on little data, without the one on Slurm, and
writes no file.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks import scale_cases

HERE = Path(__file__).parent
MIB = 2**20
BUSY_PERCENT = 20
RESULTS = HERE / "results-scale.json"
TABLE_HEAD = (
    "# Scale",
    "",
    "`python -m benchmarks.scale`: every command in a process of its own, from its start to its end; peaks are of all its",
    "processes together. MB are 10^6 bytes, MiB 2^20. Rows *beside other work* were measured while other programs used the",
    "machine, which makes their times two to four times as long.",
    "",
    "| work | goal | wall s | CPU s | peak MiB | |",
    "|---|---|---|---|---|---|",
)


@dataclass(frozen=True, slots=True)
class CommandUsage:
    """Exit status, time and memory of a command.

    Attributes
    ----------
    status : int
        As it ended.
    wall, cpu : float
        Seconds, of it and all its children.
    peak : float
        Bytes: of the command itself the most that were resident, with its children the most seen at once.
    output_end : str
        The end of what it wrote.
    is_beside_others : bool
        Whether other programs used the machine when it began.
    """

    status: int
    wall: float
    cpu: float
    peak: float
    output_end: str
    is_beside_others: bool = False


def main() -> None:
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # after the command and Slurm have ended
    words = [word for word in sys.argv[1:] if word != "--small"]
    small = "--small" in sys.argv
    rows = json.loads(RESULTS.read_text()) if RESULTS.is_file() and not small else {}
    for case, usage in measure(words[0] if words else "", size="small" if small else "full"):
        rows[case.name] = format_row(case, usage)
        print(rows[case.name])
        if not small:  # what a run of some cases finds replaces only theirs
            RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
            RESULTS.with_suffix(".md").write_text("\n".join([*TABLE_HEAD, *rows.values(), ""]))
    for name, reason in scale_cases.iter_skipped():
        print(f"{name}: skipped, {reason}")


def measure(name_part: str = "", *, size: str = "full") -> Iterator[tuple[scale_cases.Case, CommandUsage]]:
    """Measure the cases whose group names contain a text, each group in its own folder."""
    for group in scale_cases.GROUPS:
        if name_part not in group.__doc__:
            continue
        with tempfile.TemporaryDirectory() as folder, closing(group(Path(folder), size)) as cases:
            usage = None
            with suppress(StopIteration):
                while True:
                    case = cases.send(usage)
                    print(case.name, file=sys.stderr)
                    usage = run_measured([sys.executable, "-m", "sigdask", *case.arguments], Path(folder))
                    yield case, usage


def run_measured(command: list[str], folder: Path, *, env: dict[str, str] | None = None) -> CommandUsage:
    """Run a command in a folder and measure it and its children until it ends."""
    output_path = folder / scale_cases.OUTPUT
    load = psutil.cpu_percent(interval=0.5)  # of all cores, without the command
    start = time.perf_counter()
    root = {"PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])}
    with output_path.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, stdout=out, stderr=out, env={**os.environ, **root, **(env or {})}
        )
        samples: list[float] = []
        watcher = threading.Thread(target=_watch_memory, args=(process.pid, samples), daemon=True)
        watcher.start()
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.terminate()
            process.wait()
            raise
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    watcher.join()
    own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if used.ru_maxrss > own_peak:  # a child begins with the most that this process ever held
        samples.append(used.ru_maxrss * 1024.0)
    with output_path.open("rb") as file:
        file.seek(max(0, output_path.stat().st_size - 400))
        end = file.read().decode("utf-8", "replace")
    return CommandUsage(process.returncode, wall, used.ru_utime + used.ru_stime, max(samples), end, load > BUSY_PERCENT)


def _watch_memory(pid: int, samples: list[float]) -> None:
    """Sample a process's peak memory, and the total with its children, shared pages counted once."""
    try:
        process = psutil.Process(pid)
        while process.status() != psutil.STATUS_ZOMBIE:
            samples.append(_read_peak(pid))
            if children := process.children(recursive=True):
                samples.append(float(sum(_read_memory(member) for member in (process, *children))))
            time.sleep(0.1)
    except (psutil.NoSuchProcess, FileNotFoundError):
        return


def _read_peak(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0.0)


def _read_memory(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss
    except (psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError):
        return 0


def format_row(case: scale_cases.Case, usage: CommandUsage) -> str:
    """Format the result of a case as a line of Markdown."""
    note = (
        case.describe_result(usage)
        if usage.status == 0
        else f"status {usage.status}: {''.join(usage.output_end.strip().splitlines()[-1:])}"
    )
    if usage.is_beside_others:
        note = f"{note}; beside other work".removeprefix("; ")
    return f"| {case.name} | {case.goal} | {usage.wall:.1f} | {usage.cpu:.1f} | {usage.peak / MIB:,.0f} | {note} |"


if __name__ == "__main__":
    main()
