"""Large comparisons as commands, each in a process of its own: `python -m benchmarks.scale [PART OF A NAME] [--small]`.

Writes `results-scale.md` with the goal of each beside wall time, CPU and peak memory, those of worker processes included;
a run of some of them replaces their lines alone.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks import scale_cases

HERE = Path(__file__).parent
MIB = 2**20
KEPT = HERE / "results-scale.json"
HEAD = (
    "# Scale",
    "",
    "`python -m benchmarks.scale`: every command in a process of its own, from its start to its end; peaks are of all its",
    "processes together. MB are 10^6 bytes, MiB 2^20.",
    "",
    "| work | goal | wall s | CPU s | peak MiB | |",
    "|---|---|---|---|---|---|",
)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a command took.

    Attributes
    ----------
    status : int
        As it ended.
    wall, cpu : float
        Seconds, of it and all its children.
    peak : float
        Bytes: of the command itself the most that were resident, with its children the most seen at once.
    said : str
        The end of what it wrote.
    """

    status: int
    wall: float
    cpu: float
    peak: float
    said: str


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--small"]
    small = "--small" in sys.argv
    kept = json.loads(KEPT.read_text()) if KEPT.is_file() and not small else {}
    for case, took in measure(words[0] if words else "", size="small" if small else "full"):
        kept[case.name] = row(case, took)
        print(kept[case.name])
        if not small:  # what a run of some cases finds replaces only theirs
            KEPT.write_text(json.dumps(kept, indent=1) + "\n")
            KEPT.with_suffix(".md").write_text("\n".join([*HEAD, *kept.values(), ""]))
    for name, why in scale_cases.skipped():
        print(f"{name}: skipped, {why}")


def measure(part: str = "", *, size: str = "full") -> Iterator[tuple[scale_cases.Case, Spent]]:
    """Measure the cases with a part in their names, each in a folder of its own."""
    for group in scale_cases.GROUPS:
        if part not in group.__doc__:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for case in group(Path(folder), size):
                print(case.name, file=sys.stderr)
                yield case, spent([sys.executable, "-m", "sigdask", *case.arguments], Path(folder))


def spent(command: list[str], folder: Path, *, env: dict[str, str] | None = None) -> Spent:
    """Run a command in a folder, and look at it and its children until it ends."""
    said = folder / "said"
    start = time.perf_counter()
    root = {"PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])}
    with said.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, stdout=out, stderr=out, env={**os.environ, **root, **(env or {})}
        )
        together: list[float] = []
        looking = threading.Thread(target=_look, args=(process.pid, together), daemon=True)
        looking.start()
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    looking.join()
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if used.ru_maxrss > own:  # a child begins with the most that this process ever held
        together.append(used.ru_maxrss * 1024.0)
    with said.open("rb") as file:
        file.seek(max(0, said.stat().st_size - 400))
        end = file.read().decode("utf-8", "replace")
    return Spent(process.returncode, wall, used.ru_utime + used.ru_stime, max(together), end)


def _look(pid: int, together: list[float]) -> None:
    """Note the most that a process held, and with its children what they hold together: shared pages count once."""
    try:
        process = psutil.Process(pid)
        while process.status() != psutil.STATUS_ZOMBIE:
            together.append(_most_held(pid))
            if children := process.children(recursive=True):
                together.append(float(sum(_held(each) for each in (process, *children))))
            time.sleep(0.1)
    except (psutil.NoSuchProcess, FileNotFoundError):
        return


def _most_held(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0.0)


def _held(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss
    except (psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError):
        return 0


def row(case: scale_cases.Case, took: Spent) -> str:
    """The result of a case as a line of Markdown."""
    more = case.more() if took.status == 0 else f"status {took.status}: {''.join(took.said.strip().splitlines()[-1:])}"
    return f"| {case.name} | {case.goal} | {took.wall:.1f} | {took.cpu:.1f} | {took.peak / MIB:,.0f} | {more} |"


if __name__ == "__main__":
    main()
