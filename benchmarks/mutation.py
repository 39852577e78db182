"""Mutation testing: how many small faults do the tests notice? `python -m benchmarks.mutation [MODULE ...]`.

Each mutant is the package with one change in one module (see `benchmarks.mutants`). The tests of that module run on it
in a process of their own. A mutant is killed if a test fails or the time limit passes. One that survives is either a
gap in the tests or a change that makes no difference.

The checkout is never edited. Each worker has a copy of it in a temporary folder.

After a module was moved or merged, change its row of `TARGETS`. A row whose module, name or test is gone is refused.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

import psutil

from benchmarks.mutants import Mutant, count_skipped, draw_mutants, list_names, list_places

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Target:
    """A module to mutate, and the tests that must notice.

    Attributes
    ----------
    module : str
        Path of the module. Its own doctests run as well.
    tests : tuple of str
        Test files or single tests, those that fail soonest first. Choose few and fast ones: a mutant that survives
        costs them all.
    names : tuple of str
        Functions, classes and constants at the module's top level; all of them if empty. For a merged module give
        each part its own row.
    """

    module: str
    tests: tuple[str, ...]
    names: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The module, with its names if they are not all."""
        return f"{self.module} ({', '.join(self.names)})" if self.names else self.module


STATISTICS, EXACT = "tests/statistics", "tests/statistics/exact"
RANDOMIZATION, STORE, GATE = "tests/randomization", "tests/nightly/store", "tests/nightly/gate"

TARGETS = (
    Target(
        "sigdask/statistics/bounds.py",
        (
            f"{STATISTICS}/test_whole_columns.py",
            f"{RANDOMIZATION}/test_count.py::test_the_interval_solves_the_equations_of_clopper_and_pearson",
            f"{RANDOMIZATION}/test_count.py::test_no_number_of_trials_decides_a_p_at_alpha",
            f"{RANDOMIZATION}/test_count.py::test_trials_to_decide_are_not_many_more_than_it_takes",
        ),
        names=("compute_p_value", "compute_bound", "clopper_pearson", "compute_beta_limits", "estimate_trials_to_decide"),
    ),
    Target(
        "sigdask/statistics/bounds.py",
        (f"{STATISTICS}/test_multiplicity.py",),
        names=("holm", "benjamini_hochberg", "enforce_step_down", "compute_penalty", "choose_trials"),
    ),
    Target(
        "sigdask/statistics/bounds.py",
        (f"{STATISTICS}/test_intervals.py",),
        names=("compute_level", "compute_bca_shares", "wilson", "count_rejected", "invert_test"),
    ),
    Target(
        "sigdask/statistics/classical.py",
        (f"{STATISTICS}/test_matched_proportions.py",),
        names=("MatchedProportions", "compute_score", "compute_exact_p", "compute_exact_margin", "estimate_design_effect"),
    ),
    Target(
        "sigdask/statistics/exact/sums.py",
        (f"{EXACT}/test_limits.py", f"{EXACT}/test_brute_force.py", f"{EXACT}/test_known_values.py"),
    ),
    Target(
        "sigdask/randomization/tallies.py",
        (f"{RANDOMIZATION}/test_tallies.py", "tests/execution/test_tasks.py"),
    ),
    Target("sigdask/randomization/families/__init__.py", (f"{RANDOMIZATION}/test_max_t.py", f"{RANDOMIZATION}/test_studentised.py")),
    Target(
        "sigdask/randomization/kernels/scored.py",
        (f"{RANDOMIZATION}/kernels/test_exceedances.py",),
        names=("compare_tails", "count_linear", "count_scored", "count_scores"),
    ),
    Target(
        "sigdask/randomization/kernels/sums.py",
        (f"{RANDOMIZATION}/kernels/test_sums.py",),
        names=(  # the rest are sizes of memory and measurements of speed, which change no sum
            "SumLayout", "_build_layout", "_pack_plane", "compute_moved_sums", "sum_fields",
            "add_plane", "add_blocks", "combine_columns", "add_tables",
        ),
    ),
    Target("sigdask/nightly/store/tallies.py", (f"{STORE}/test_store.py", f"{STORE}/test_damage.py")),
    Target("sigdask/nightly/store/database.py", (f"{STORE}/test_store.py",)),
    Target(
        "sigdask/nightly/gate/verdicts.py",
        (
            f"{GATE}/test_gate.py",
            "tests/nightly/run/test_false_alarms.py::test_a_score_that_is_undefined_does_not_pass",
        ),
    ),
    Target(
        "sigdask/analysis/comparison/margins.py",
        ("tests/analysis/comparison/test_margins.py", f"{GATE}/test_margin_tests.py"),
    ),
)  # fmt: skip

PACKAGE = "sigdask"
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "site", "dist", "build")
PYTEST_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0")
LIMITS = {"RLIMIT_AS": 12 * 2**30, "RLIMIT_CPU": 60}
"""Of a test process: bytes of memory, and seconds of CPU time, several times what a row's tests take. A mutant may ask
for any amount of memory or loop for ever."""

WALL_FACTOR, WALL_SECONDS = 5, 60
"""A mutant may wait for this many times the seconds of the tests without a mutation, and some more."""

Outcome = Literal["killed", "killed by the time limit", "survived"]
Job = tuple[Target, Mutant]


class Sandbox:
    """A copy of the checkout in which one mutant at a time is tested, and a process whose forks run the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkout = folder / "checkout"
        self.compiled, self.compiled_now = folder / "compiled", folder / "compiled-now"
        self.scratch, self.output = folder / "scratch", folder / "output"
        self.limits: dict[Target, float] = {}
        shutil.copytree(ROOT, self.checkout, ignore=LEFT_OUT, symlinks=True)
        self.compiled.mkdir()
        if (ROOT.parent / "shared").is_dir():  # the real data sets, which tests look for beside the checkout
            (folder / "shared").symlink_to(ROOT.parent / "shared")
        self.compiled_importers = read_compiled_importers(self.checkout)
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.checkout),
            "NUMBA_CACHE_DIR": str(self.compiled_now),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.scratch / "hypothesis"),
            "TMPDIR": str(self.scratch),
        }
        self.server = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.forked_pytest"], cwd=self.checkout, env=environment, bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def close(self) -> None:
        """End the process whose forks run the tests."""
        _kill_with_children(self.server.pid)
        self.server.wait()

    def test_baseline(self, target: Target) -> None:
        """Run a target's tests without a mutation: they must pass. It also compiles what all mutants share."""
        start = time.monotonic()
        code = self._run_tests(target, timeout=None, keep_compiled=True)
        if code != 0:
            output = self.output.read_text(errors="replace")
            raise SystemExit(f"{target.label}: its tests fail without a mutation:\n{output[-3000:]}")
        self.limits[target] = WALL_FACTOR * (time.monotonic() - start) + WALL_SECONDS

    def test_mutant(self, target: Target, mutant: Mutant) -> Outcome:
        """Run a target's tests on a mutant, after its baseline."""
        changes = {self.checkout / target.module: mutant.source}
        for path in self.compiled_importers[target.module]:
            source = (self.checkout / path).read_text("utf-8")
            changes[self.checkout / path] = f"{source}\n# compile this again\n"
        saved = {path: (path.read_bytes(), path.stat()) for path in changes}
        try:
            for path, source in changes.items():
                path.write_text(source, "utf-8")
            code = self._run_tests(target, timeout=self.limits[target])
        finally:
            for path, (data, info) in saved.items():
                path.write_bytes(data)
                os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
        return "killed by the time limit" if code is None else "killed" if code else "survived"

    def _run_tests(self, target: Target, *, timeout: float | None, keep_compiled: bool = False) -> int | None:
        """Return pytest's exit code, or None after the time limit."""
        self.scratch.mkdir()
        shutil.copytree(self.compiled, self.compiled_now)
        try:
            code = self._run_fork(
                arguments=[*PYTEST_OPTIONS, *target.tests, target.module], output=str(self.output),
                limits=LIMITS, write_bytecode=keep_compiled, timeout=timeout,
            )  # fmt: skip
            if keep_compiled:
                shutil.copytree(self.compiled_now, self.compiled, dirs_exist_ok=True)
        finally:
            shutil.rmtree(self.compiled_now)
            shutil.rmtree(self.scratch, ignore_errors=True)
        return None if code == -signal.SIGXCPU else code

    def _run_fork(self, *, timeout: float | None, **options: Any) -> int | None:
        """Let a fork of the server run pytest and return the exit code, or None after the time limit."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(options).encode() + b"\n")
        pid = int(self.server.stdout.readline())
        in_time = bool(select.select([self.server.stdout], [], [], timeout)[0])
        if not in_time:
            _kill_with_children(pid)
        code = int(self.server.stdout.readline())
        return code if in_time else None


def _kill_with_children(pid: int) -> None:
    """Kill a process and what it started, such as a database server."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for started in [*process.children(recursive=True), process]:
            with suppress(psutil.NoSuchProcess):
                started.kill()


def read_compiled_importers(checkout: Path) -> dict[str, list[str]]:
    """Return for each module of the package the modules with compiled functions that import it, perhaps through others.

    Compiled functions contain the functions that they call and the constants that they read. Numba compiles them again
    if their own file has changed, but not if one of the others has.
    """
    sources = {str(path.relative_to(checkout)): path.read_text("utf-8") for path in (checkout / PACKAGE).rglob("*.py")}
    importers: dict[str, set[str]] = {path: set() for path in sources}
    for path, source in sources.items():
        for imported in _list_imports(ast.parse(source)):
            for candidate in (f"{imported.replace('.', '/')}.py", f"{imported.replace('.', '/')}/__init__.py"):
                if candidate in sources:
                    importers[candidate].add(path)
    return {
        path: [importer for importer in sorted(_find_reachable(path, importers)) if "njit" in sources[importer]]
        for path in sources
    }


def _list_imports(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names |= {alias.name for alias in aliases}
            case ast.ImportFrom(module=str(module), names=aliases):
                names |= {module, *(f"{module}.{alias.name}" for alias in aliases)}
    return names


def _find_reachable(start: str, edges: dict[str, set[str]]) -> set[str]:
    reached, pending = set[str](), [start]
    while pending:
        new = edges[pending.pop()] - reached
        reached |= new
        pending.extend(new)
    return reached - {start}


def choose_targets(parts: Sequence[str]) -> list[Target]:
    """Return the targets whose paths contain one of some texts, or all; refuse rows that no longer hold."""
    chosen = [target for target in TARGETS if not parts or any(part in target.module for part in parts)]
    faults = [f"{part!r} is in no module of the table" for part in parts if not any(part in t.module for t in TARGETS)]
    for target in chosen:
        paths = dict.fromkeys(path.partition("::")[0] for path in (target.module, *target.tests))
        faults += [f"{path}: no such file" for path in paths if not (ROOT / path).is_file()]
        if target.names and (ROOT / target.module).is_file():
            missing = set(target.names) - list_names((ROOT / target.module).read_text("utf-8"))
            faults += [f"{target.module}: defines no {name}" for name in sorted(missing)]
    if faults:
        raise SystemExit("\n".join([*faults, "correct TARGETS in benchmarks/mutation.py, or the arguments"]))
    return chosen


def measure(targets: Sequence[Target], *, n_mutants: int, seed: int, n_workers: int) -> None:
    """Test mutants of all targets, print each target's results as they come, and print the totals."""
    jobs = []
    for target in targets:
        source = (ROOT / target.module).read_text("utf-8")
        jobs += [(target, m) for m in draw_mutants(source, target.names, n_mutants, Random(f"{seed} {target.module}"))]
    size = -(-len(jobs) // n_workers)
    shares = [jobs[start : start + size] for start in range(0, len(jobs), size)]
    outcomes: dict[Target, list[tuple[Mutant, Outcome]]] = {target: [] for target in targets}
    lock = threading.Lock()

    def test_baselines(sandbox: Sandbox, share: Sequence[Job]) -> None:
        for target in dict.fromkeys(target for target, _ in share):
            sandbox.test_baseline(target)

    def test_mutants(sandbox: Sandbox, share: Sequence[Job]) -> None:
        for target, mutant in share:
            outcome = sandbox.test_mutant(target, mutant)
            with lock:
                outcomes[target].append((mutant, outcome))
                if len(outcomes[target]) == sum(job[0] == target for job in jobs):
                    print(format_results(target, outcomes[target]), flush=True)

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sigdask-mutation-")))
        folder.chmod(0o755)  # a database server of the tests runs as another user
        pool = stack.enter_context(ThreadPoolExecutor(n_workers))
        sandboxes = [stack.enter_context(closing(Sandbox(folder / str(k)))) for k in range(len(shares))]
        list(pool.map(test_baselines, sandboxes, shares))
        list(pool.map(test_mutants, sandboxes, shares))
    print(f"\ntotal: {_format_counts([outcome for rows in outcomes.values() for _, outcome in rows])}")


def format_results(target: Target, rows: Sequence[tuple[Mutant, Outcome]]) -> str:
    """Format the outcomes of a target's mutants, with the changes of those that survived."""
    source = (ROOT / target.module).read_text("utf-8")
    n_places, n_skipped = len(list_places(source, target.names)), count_skipped(source, target.names)
    lines = [
        f"\n{target.label}: {_format_counts([outcome for _, outcome in rows])}",
        f"    {n_places} places can be changed; {n_skipped} in annotations, messages and text are skipped",
    ]
    for mutant, outcome in sorted(rows, key=lambda row: row[0].line):
        if outcome == "survived":
            lines += [f"    survived: line {mutant.line}, {mutant.name}", *(f"        {line}" for line in mutant.diff)]
    return "\n".join(lines)


def _format_counts(outcomes: Sequence[Outcome]) -> str:
    n_survived, n_slow = outcomes.count("survived"), outcomes.count("killed by the time limit")
    n_killed = len(outcomes) - n_survived
    share = f", {n_killed / len(outcomes):.0%}" if outcomes else ""
    slow = f" ({n_slow} by the time limit)" if n_slow else ""
    return f"{len(outcomes)} mutants: {n_killed} killed{slow}, {n_survived} survived{share}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="a part of a module's path; without any, all")
    parser.add_argument("--mutants", type=int, default=20, metavar="N", help="mutants of each module (default 20)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the draw (default 1)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="mutants tested at a time (default 2)")
    options = parser.parse_args()
    start = time.monotonic()
    targets = choose_targets(options.modules)
    measure(targets, n_mutants=options.mutants, seed=options.seed, n_workers=options.workers)
    print(f"{(time.monotonic() - start) / 60:.0f} minutes with {options.workers} workers, seed {options.seed}")


if __name__ == "__main__":
    main()
