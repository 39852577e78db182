"""Measure whole commands beside those of other tools: `python -m benchmarks.commands` writes results-commands.md.

Each tool reads the same files and has its own defaults. Wall and CPU seconds are of whole processes with all their children,
medians of ROUNDS runs after one that fills the caches ("warm"), and of one run with empty caches ("cold"). The tools take
turns, on a machine that does nothing else. Ratios are sigdask's share of the other tool's wall time.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import data

HERE = Path(__file__).parent
ROUNDS = 3
SIGDASK = (sys.executable, "-m", "sigdask", "compare")

RANX = """
import sys
from ranx import Qrels, Run, compare
qrels = Qrels.from_file(sys.argv[1], kind="trec")
runs = [Run.from_file(path, kind="trec") for path in sys.argv[2:]]
report = compare(qrels, runs, metrics=["map", "ndcg@10"], stat_test="fisher")
print(report.to_dict())  # its table has no letters for more than 26 runs
"""

SCIPY = """
import sys
import numpy as np
from scipy import stats
a, b = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1, usecols=(1, 2)).T
print(stats.permutation_test((a, b), lambda a, b, axis: np.mean(a - b, axis=axis), permutation_type="samples", vectorized=True))
"""


@dataclass(frozen=True)
class Times:
    """Wall and CPU seconds of one process with its children."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Task:
    """One question, with the command of each tool that answers it."""

    name: str
    sigdask: tuple[str, ...]
    other: tuple[str, ...]
    tool: str


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = [measure_task(task, Path(folder)) for task in list_tasks(Path(folder))]
    (HERE / "results-commands.json").write_text(json.dumps(results, indent=1) + "\n")
    page = render_page(results)
    (HERE / "results-commands.md").write_text(page)
    print(page)


def list_tasks(folder: Path) -> list[Task]:
    """Write the data of all tasks, and return these."""
    systems, reference = write_texts(folder)
    qrels, runs = write_runs(folder)
    table = write_scores(folder)
    tasks = []
    for n, metrics in ((2, ("BLEU",)), (2, ("BLEU", "chrF")), (5, ("BLEU", "chrF"))):
        options = [word for metric in metrics for word in ("-m", metric)]
        name = f"{n} translation systems, {' and '.join(metrics)}"
        paired = (sys.executable, "-m", "sacrebleu", reference, "-i", *systems[:n], "-m", *(m.lower() for m in metrics))
        tasks.append(
            Task(name, (*SIGDASK, *systems[:n], "--gold", reference, *options), (*paired, "--paired-ar"), "sacrebleu")
        )
    options = ("--gold", qrels, "-m", "AP", "-m", "nDCG@10")
    ranx = (sys.executable, "-c", RANX, qrels, *runs)
    tasks.append(Task("30 retrieval runs, AP and nDCG@10", (*SIGDASK, *runs, *options), ranx, "ranx"))
    tasks.append(Task("1,000 pairs of scores", (*SIGDASK, table), (sys.executable, "-c", SCIPY, table), "scipy"))
    return tasks


def write_texts(folder: Path) -> tuple[list[str], str]:
    """Return the files of five systems of WMT24 and their reference, or of as many drawn ones."""
    real = data.SHARED / "mt_wmt24_en-de"
    if real.is_dir():
        return [*map(str, sorted((real / "systems").glob("*.txt"))[:5])], str(real / "en-de.refA.txt")
    systems, reference = data.draw_texts(997, 5)
    paths = [folder / f"s{k}.txt" for k in range(5)]
    for path, lines in zip([*paths, folder / "reference.txt"], [*systems, reference], strict=True):
        path.write_text("\n".join(lines) + "\n")
    return [*map(str, paths)], str(folder / "reference.txt")


def write_runs(folder: Path, n_topics: int = 50, n_documents: int = 100, n_runs: int = 30) -> tuple[str, list[str]]:
    """Write judgements and runs of better and worse retrieval systems, and return their paths."""
    rng = np.random.default_rng(1)
    relevant = rng.random((n_topics, n_documents)) < 0.1
    topics, documents = np.divmod(np.arange(n_topics * n_documents), n_documents)
    judged = "".join(
        f"{t} 0 d{d} {r}\n" for t, d, r in zip(topics, documents, relevant.astype(int).ravel(), strict=True)
    )
    (folder / "qrels.txt").write_text(judged)
    paths = []
    for k in range(n_runs):
        scores = np.round(rng.random((n_topics, n_documents)) + relevant * (0.3 + k / 100), 4)
        ranks = np.argsort(np.argsort(-scores, axis=1), axis=1).ravel()
        rows = zip(topics, documents, ranks, scores.ravel(), strict=True)
        path = folder / f"run{k}.txt"
        path.write_text("".join(f"{t} Q0 d{d} {rank + 1} {score} run{k}\n" for t, d, rank, score in rows))
        paths.append(str(path))
    return str(folder / "qrels.txt"), paths


def write_scores(folder: Path) -> str:
    """Write a table of the scores of two systems, and return its path."""
    rows = "".join(f"{k},{a!r},{b!r}\n" for k, (a, b) in enumerate(data.draw_scores(1000).tolist()))
    (folder / "scores.csv").write_text("item,a,b\n" + rows)
    return str(folder / "scores.csv")


def measure_task(task: Task, folder: Path) -> dict:
    """Return the times of both tools, cold and warm, taking turns."""
    commands = {"sigdask": task.sigdask, task.tool: task.other}
    caches = {tool: Path(tempfile.mkdtemp(dir=folder)) for tool in commands}
    cold = {tool: run(command, caches[tool]) for tool, command in commands.items()}
    rounds = [{tool: run(command, caches[tool]) for tool, command in commands.items()} for _ in range(ROUNDS)]
    warm = {
        tool: Times(*(median(getattr(times[tool], kind) for times in rounds) for kind in ("wall", "cpu")))
        for tool in commands
    }
    print(task.name, warm, flush=True)
    return {
        "name": task.name, "tool": task.tool,
        **{f"{state}_{tool}": asdict(times) for state, all_times in (("cold", cold), ("warm", warm)) for tool, times in
           zip(("sigdask", "other"), all_times.values(), strict=True)},
    }  # fmt: skip


def run(command: tuple[str, ...], cache: Path) -> Times:
    """Run a command with its caches in a folder, and return its seconds."""
    places = {"NUMBA_CACHE_DIR": str(cache / "numba"), "SIGDASK_CACHE": str(cache / "sigdask")}
    environment = {**os.environ, **places}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed, where each module is compiled once
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Times(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def render_page(results: list[dict]) -> str:
    """Return the page of the results."""
    text = (
        "`python -m benchmarks.commands` measures sigdask and other tools on the same files, each with its defaults. "
        f"Warm: wall (CPU) seconds, medians of {ROUNDS} runs. Cold: wall seconds with empty caches of compiled functions "
        "and of statistics. The ratio is sigdask's share of the other tool's wall time."
    )
    head = "| task | tool | sigdask warm | tool warm | ratio | sigdask cold | tool cold |"
    lines = ["# Whole commands", "", text, "", head, f"|{'---|' * 7}"]
    for row in results:
        sigdask, other = row["warm_sigdask"], row["warm_other"]
        cold = f"{row['cold_sigdask']['wall']:.1f} | {row['cold_other']['wall']:.1f}"
        warm = " | ".join(f"{times['wall']:.2f} ({times['cpu']:.2f})" for times in (sigdask, other))
        lines.append(f"| {row['name']} | {row['tool']} | {warm} | {sigdask['wall'] / other['wall']:.2f} | {cold} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
