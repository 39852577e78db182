"""Commands of `benchmarks.scale` with their data, in full or small size, and the goal of each.

A group shares its data. Every case is a name, its goal and the arguments of `sigdask`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import SHARED

EXAMPLE = Path(__file__).parent.parent / "sigdask" / "examples" / "yeh2000.tsv"
WMT = SHARED / "mt_wmt24_en-de"
TESTS = Path(__file__).parent.parent / "tests"
OUTPUT = "said"
"""The file in the folder of a group that gets what its commands print."""

BLOCK_ROWS = 100_000
"""Rows that are written at once."""


def describe_nothing(_usage: Any) -> str:
    """Return an empty description."""
    return ""


@dataclass(frozen=True, slots=True)
class Case:
    """A command and the goal for its time and memory.

    Attributes
    ----------
    name, goal : str
        In words.
    arguments : list of str
        Of `sigdask`, in the folder of its group.
    describe_result : callable
        What else there is to say of its usage once it has run.
    """

    name: str
    goal: str
    arguments: Sequence[str]
    describe_result: Callable[[Any], str] = describe_nothing


Cases = Generator[Case, Any, None]
"""Yields the cases of a group, and is sent the usage of each."""


def pairs_of_300(folder: Path, size: str) -> Cases:
    """300 systems x 1,000 items"""
    n_systems, n_items = (300, 1000) if size == "full" else (12, 50)
    write_table(folder / "scores.csv", draw_answers(n_systems, n_items))
    name = f"{n_systems} systems x {n_items:,} items of 0/1, all pairs, 2,000 trials, two runs"
    yield Case(name, "2.5 s beyond the start", ["compare", "scores.csv", "--trials", "2000"])
    yield Case(f"{name}, Holm", "likewise", ["compare", "scores.csv", "--trials", "2000", "--adjust", "holm"])


def pairs_of_1000(folder: Path, size: str) -> Cases:
    """1,000 systems x 1,000 items"""
    n_systems, n_items = (1000, 1000) if size == "full" else (12, 50)
    write_table(folder / "scores.csv", draw_answers(n_systems, n_items))
    name = f"{n_systems:,} systems x {n_items:,} items of 0/1, all pairs, 2,000 trials, JSON"
    arguments = ["compare", "scores.csv", "--trials", "2000", "--adjust", "holm", "--json", "out.json"]
    yield Case(name, "8 s, 400 MiB", arguments, partial(describe_file_size, folder / "out.json"))
    arguments = ["compare", "scores.csv", "--trials", "2000", "--json", "out.json"]
    yield Case(f"{name}, max-T", "likewise", arguments, partial(describe_file_size, folder / "out.json"))


def millions_of_items(folder: Path, size: str) -> Cases:
    """2 systems x 10^6 and 10^7 items, CSV"""
    for n_items, goal in ((10**6, "2 s"), (10**7, "15 s")) if size == "full" else ((1000, "none"),):
        write_table(folder / "scores.csv", draw_answers(2, n_items))
        arguments = ["compare", "scores.csv", "--trials", "10000"]
        yield Case(f"2 systems x {n_items:,} items, CSV, 10,000 trials", goal, arguments)


def documents(folder: Path, size: str) -> Cases:
    """10^6 items in 10^5 documents"""
    n_items, n_documents = (10**6, 10**5) if size == "full" else (1000, 100)
    document_numbers = np.sort(np.random.default_rng(1).integers(0, n_documents, n_items))
    write_table(folder / "scores.csv", draw_answers(2, n_items), document=[f"document-{k}" for k in document_numbers])
    arguments = ["compare", "scores.csv", "--trials", "10000", "--unit", "document"]
    yield Case(f"{n_items:,} items in {n_documents:,} documents, 10,000 trials", "6 s", arguments)


def parquet(folder: Path, size: str) -> Cases:
    """1,000 systems x 10^5 items, Parquet"""
    import pyarrow as pa
    from pyarrow import parquet as pq

    n_systems, n_items = (1000, 10**5) if size == "full" else (12, 1000)
    columns = {"item": [f"item-{k}" for k in range(n_items)]}
    rng = np.random.default_rng(0)
    columns |= {f"system-{k}": np.round(rng.beta(2, 3, n_items), 3) for k in range(n_systems)}
    pq.write_table(pa.table(columns), folder / "scores.parquet")
    arguments = ["compare", "scores.parquet", "--trials", "1000", "--adjust", "holm", "--no-second-run"]
    yield Case(
        f"{n_systems:,} systems x {n_items:,} items, Parquet, all pairs, 1,000 trials", "15 s, 1.2 GiB", arguments
    )


def plan(folder: Path, size: str) -> Cases:
    """plan of 100,128 comparisons"""
    n_systems, n_items, n_trials = (448, 1000, 10_000) if size == "full" else (12, 50, 1000)
    write_table(folder / "scores.csv", draw_answers(n_systems, n_items))
    write_plan(folder, [("scores", "scores.csv")], n_trials)
    n = n_systems * (n_systems - 1) // 2
    yield Case(f"plan of {n:,} comparisons: check", "3 s", ["check", "plan.toml"])
    describe_size = partial(describe_store_size, folder / "plan.sqlite", n)
    yield Case(f"plan of {n:,} comparisons: run", "15 s, 600 MB", ["run", "plan.toml"], describe_size)
    yield Case(f"plan of {n:,} comparisons: run again", "3 s", ["run", "plan.toml"])


def nights(folder: Path, size: str) -> Cases:
    """26 systems of mt_wmt24_en-de"""
    if not WMT.is_dir():
        return
    files = sorted((WMT / "systems").glob("*.txt"))[: 26 if size == "full" else 3]
    max_lines = None if size == "full" else 20
    (folder / "systems").mkdir()
    for path in (*files, WMT / "en-de.refA.txt"):
        text = path.read_text(encoding="utf-8").splitlines()[:max_lines]
        (folder / ("gold.txt" if path.parent == WMT else f"systems/{path.name}")).write_text(
            "\n".join(text) + "\n", encoding="utf-8"
        )
    trials = 10_000 if size == "full" else 100
    (folder / "plan.toml").write_text(
        f'trials = {trials}\nadjust = "holm"\n[[test_set]]\nname = "wmt"\nformat = "segments"\n'
        'systems = "systems/{system}.txt"\ngold = "gold.txt"\nmetrics = ["BLEU", "chrF"]\n'
    )
    night = ["run", "plan.toml", "--cluster", "local", "--workers", "2"] if size == "full" else ["run", "plan.toml"]
    name = f"{len(files)} systems of mt_wmt24_en-de, BLEU and chrF"
    yield Case(f"{name}: first night", "15 s", night)
    for changed, suffix, arguments in ((files[0], "", night), (files[1], ", without a cluster of its own", night[:2])):
        changed_file = folder / "systems" / changed.name
        changed_file.write_text(changed_file.read_text(encoding="utf-8").replace(".", "!", 5), encoding="utf-8")
        yield Case(f"{name}: another night, one changed file{suffix}", "2 s", arguments)


def few_units(folder: Path, size: str) -> Cases:
    """few units and many systems"""
    n_systems, n_items = (2000, 20) if size == "full" else (20, 8)
    write_table(folder / "scores.csv", draw_answers(n_systems, n_items))
    arguments = ["compare", "scores.csv", "--trials", "2000", "--adjust", "holm", "--json", "out.json"]
    yield Case(
        f"{n_systems:,} systems x {n_items} items, all pairs, JSON",
        "none",
        arguments,
        partial(describe_file_size, folder / "out.json"),
    )


def long_ids(folder: Path, size: str) -> Cases:
    """ids of 200 characters"""
    n_items = 10**6 if size == "full" else 1000
    write_table(folder / "scores.csv", draw_answers(2, n_items), stem="x" * 190)
    yield Case(
        f"2 systems x {n_items:,} items with ids of 200 characters",
        "none",
        ["compare", "scores.csv", "--trials", "10000"],
    )


def subsets(folder: Path, size: str) -> Cases:
    """many subsets"""
    n_items, n_subsets, n_systems = (50_000, 500, 20) if size == "full" else (200, 10, 3)
    topics = [f"topic-{k % n_subsets}" for k in range(n_items)]
    write_table(folder / "scores.csv", draw_answers(n_systems, n_items), topic=topics)
    arguments = ["compare", "scores.csv", "--by", "topic", "--trials", "2000", "--adjust", "holm"]
    yield Case(f"{n_systems} systems x {n_items:,} items in {n_subsets} subsets", "none", arguments)


def test_sets(folder: Path, size: str) -> Cases:
    """many test sets"""
    n_sets = 2000 if size == "full" else 5
    names = [f"set-{k}" for k in range(n_sets)]
    for k, name in enumerate(names):
        write_table(folder / f"{name}.csv", draw_answers(3, 50, seed=k))
    write_plan(folder, [(name, f"{name}.csv") for name in names], 2000)
    yield Case(f"plan of {n_sets:,} test sets of 3 systems: check", "none", ["check", "plan.toml"])
    yield Case(f"plan of {n_sets:,} test sets of 3 systems: run", "6 s", ["run", "plan.toml"])
    yield Case(f"plan of {n_sets:,} test sets of 3 systems: run again", "2 s", ["run", "plan.toml"])
    write_table(folder / "set-1.csv", draw_answers(3, 50, seed=n_sets))
    yield Case(f"plan of {n_sets:,} test sets of 3 systems: one changed file", "2 s", ["run", "plan.toml"])
    reread = ["run", "plan.toml", "--reread"]
    yield Case(f"plan of {n_sets:,} test sets of 3 systems: all read again", "none", reread)
    on_workers = ["run", "plan.toml", "--store", "other.sqlite", "--cluster", "local", "--workers", "2"]
    yield Case(f"plan of {n_sets:,} test sets of 3 systems: run on 2 dask workers", "none", on_workers)


def describe_lines(output: Path, _usage: Any) -> str:
    """Describe how many lines a command printed."""
    return f"{len(output.read_text(encoding='utf-8').splitlines()):,} lines printed"


def printed_lines(folder: Path, size: str) -> Cases:
    """lines printed by a run"""
    n_sets = 300 if size == "full" else 5
    names = [f"set-{k}" for k in range(n_sets)]
    for k, name in enumerate(names):
        write_table(folder / f"{name}.csv", draw_answers(3, 50, seed=k))
    write_plan(folder, [(name, f"{name}.csv") for name in names], 2000)
    describe = partial(describe_lines, folder / OUTPUT)
    yield Case(f"plan of {n_sets} test sets of 3 systems: lines printed", "60 lines", ["run", "plan.toml"], describe)


def on_clusters(folder: Path, size: str) -> Cases:
    """the same plan on Slurm and dask"""
    n_systems, n_items, n_trials = (
        (100, 5000, 10**6) if size == "full" else (5, 500, 1000)
    )  # no p is exact: trials count
    write_table(folder / "scores.csv", draw_answers(n_systems, n_items))
    write_plan(folder, [("scores", "scores.csv")], n_trials)
    name = f"plan of {n_systems} systems x {n_items:,} items, {n_trials:,} trials"
    run = ["run", "plan.toml", "--store"]
    alone = yield Case(f"{name}: one core", "none", [*run, "one.sqlite", "--cluster", "none"])
    again = yield Case(f"{name}: one core, again", "none", [*run, "one.sqlite", "--cluster", "none"])
    describe = partial(describe_overhead, max(alone.wall - again.wall, 0.0) / 2)
    workers = ["--cluster", "local", "--workers", "2"]
    yield Case(f"{name}: 2 dask workers", "none", [*run, "dask.sqlite", *workers], describe)
    if size != "full" or list_missing_slurm():
        return
    (folder / "slurm.toml").write_text(SLURM_CLUSTER, encoding="utf-8")
    with load_slurm().Slurm(folder / "slurm") as queue:
        os.environ.update(queue.environment)  # for the command
        yield Case(
            f"{name}: Slurm of 2 nodes (CPU and peak of the driver)",
            "none",
            [*run, "slurm.sqlite", "--cluster", "slurm.toml"],
            describe,
        )


SLURM_CLUSTER = """class = "slurm"
workers = 2
[options]
cores = 1
memory = "1GB"
worker_extra_args = ["--host", "127.0.0.1"]
[options.scheduler_options]
host = "127.0.0.1"
"""


def load_slurm() -> Any:
    """Return the module that starts a Slurm of two logical nodes on this machine."""
    sys.path.append(str(TESTS))  # its own helpers
    return SourceFileLoader("slurm", str(TESTS / "cluster" / "slurm.py")).load_module()


def list_missing_slurm() -> str:
    """Return what a Slurm of its own needs here and lacks; nothing where it can be started."""
    missing = ", ".join(load_slurm().list_missing_programs())
    return (
        f"Slurm is not installed ({missing})" if missing else "" if os.geteuid() == 0 else "slurmd is started as root"
    )


def describe_overhead(ideal: float, usage: Any) -> str:
    """Describe which share of a run's time is not counting, if two workers count in half the time of one core."""
    if usage.is_beside_others:
        return "the share of time that is not counting needs an idle machine"
    return f"{max(0.0, 1 - ideal / usage.wall):.0%} of the time is not counting"


def start(_folder: Path, size: str) -> Cases:
    """start"""
    yield Case("start: help", "0.1 s", ["--help"])
    yield Case("start: metrics", "none", ["list", "metrics"])
    arguments = ["compare", str(EXAMPLE)]
    describe = partial(describe_time_beyond_imports, arguments, 5 if size == "full" else 1)
    yield Case("start: Yeh's example", "0.35 s beyond import numpy, numba", arguments, describe)


def describe_time_beyond_imports(arguments: Sequence[str], n_runs: int, _usage: Any) -> str:
    """Describe how much longer a command takes than `import numpy, numba`, in alternating runs."""
    commands = (["-m", "sigdask", *arguments], ["-c", "import numpy, numba"])
    times = [[measure_python(command) for command in commands] for _ in range(n_runs)]
    return f"{np.subtract(*np.median(times, axis=0)):.2f} s beyond the imports (medians, n = {n_runs})"


def measure_python(arguments: Sequence[str]) -> float:
    """Return the seconds that Python takes with these arguments."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], cwd=TESTS.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - start


GROUPS = (
    pairs_of_300, pairs_of_1000, millions_of_items, documents, parquet, plan, nights, few_units, long_ids, subsets,
    test_sets, printed_lines, on_clusters, start,
)  # fmt: skip


def iter_skipped() -> Iterator[tuple[str, str]]:
    """Yield the groups that cannot be measured here, with the reason."""
    if not WMT.is_dir():
        yield nights.__doc__ or "", f"{WMT} is not there"
    if reason := list_missing_slurm():
        yield "Slurm of 2 nodes", reason


def draw_answers(n_systems: int, n_items: int, seed: int = 0) -> np.ndarray:
    """Draw 0/1 answers, shape (n_items, n_systems); items differ in difficulty, systems in skill."""
    rng = np.random.default_rng([n_systems, n_items, seed])
    skill = np.linspace(-0.1, 0.1, n_systems, dtype=np.float32)
    answers = np.empty((n_items, n_systems), np.int8)
    for first in range(0, n_items, BLOCK_ROWS):
        n = min(BLOCK_ROWS, n_items - first)
        noise = rng.normal(0, 0.3, (n, n_systems)).astype(np.float32)
        answers[first : first + n] = rng.random((n, 1), np.float32) + skill + noise > 0.5
    return answers


def write_table(path: Path, scores: np.ndarray, stem: str = "item", **columns: Sequence[str]) -> None:
    """Write a wide table of scores with ids and further columns."""
    with path.open("w", encoding="utf-8") as file:
        print("item", *columns, *(f"system-{k}" for k in range(scores.shape[1])), sep=",", file=file)
        for first in range(0, len(scores), BLOCK_ROWS):
            block = scores[first : first + BLOCK_ROWS]
            digits = np.empty((len(block), 2 * scores.shape[1]), np.uint8)
            digits[:, ::2], digits[:, 1::2] = block + ord("0"), ord(",")
            digits[:, -1] = ord("\n")
            for k, row in enumerate(digits):
                cells = [f"{stem}-{first + k}", *(column[first + k] for column in columns.values()), ""]
                file.write(",".join(cells) + row.tobytes().decode("ascii"))


def write_plan(folder: Path, sets: Sequence[tuple[str, str]], n_trials: int) -> None:
    """Write a plan with one test set for each table."""
    lines = [f"trials = {n_trials}", "seed = 1", 'adjust = "holm"']
    for name, systems in sets:
        lines += ["[[test_set]]", f'name = "{name}"', f'systems = "{systems}"', 'metrics = ["mean"]']
    (folder / "plan.toml").write_text("\n".join([*lines, ""]), encoding="utf-8")


def describe_store_size(store: Path, n: int, _usage: Any) -> str:
    """Describe the store's size per comparison."""
    return f"store {store.stat().st_size / n:.0f} bytes a comparison (goal 400)"


def describe_file_size(path: Path, _usage: Any) -> str:
    """Describe the size of a file."""
    return f"JSON {path.stat().st_size / 2**20:,.0f} MiB"
