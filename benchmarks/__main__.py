"""Run all and write `benchmarks/results.md` and `.json`: `python -m benchmarks [PART OF A NAME]`."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.cases import CASES
from benchmarks.floor import measure_floor, measure_scheduler_cost
from benchmarks.measure import measure
from sigdask.execution.run import compute_task_seconds

HERE = Path(__file__).parent
SCHEDULER_PAGE = HERE / "results-scheduler.md"
"""What `benchmarks.scheduler` and `benchmarks.overhead` found, written by hand: it takes many minutes."""

PACKAGES = ("sigdask", "numpy", "scipy", "numba", "dask", "distributed", "evaluatio", "ranx", "sacrebleu")


def main() -> None:
    name_part = sys.argv[1] if len(sys.argv) > 1 else ""
    results: dict = {
        "machine": platform.processor() or platform.machine(),
        "versions": {p: _find_version(p) for p in PACKAGES},
    }
    results["floor"] = measure_floor()
    results["scheduler"] = measure_scheduler_cost()
    results["start"] = {name: _time_process(command) for name, command in _list_commands().items()}
    results["cases"] = {
        work: {tool: _measure_case(work, tool) for tool in tools} for work, tools in CASES.items() if name_part in work
    }
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    text = format_table(results) + "\n" + SCHEDULER_PAGE.read_text()
    (HERE / "results.md").write_text(text)
    print(text)


def _measure_case(work: str, tool: str) -> dict:
    print(f"{work}: {tool}", file=sys.stderr)
    return measure(work, tool)


def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _list_commands() -> dict[str, list[str]]:
    import sigdask

    example = Path(sigdask.__file__).parent / "examples" / "yeh2000.tsv"
    metrics = [argument for m in ("recall", "f1", "precision") for argument in ("--metric", m)]
    return {
        "import numpy, numba": [sys.executable, "-c", "import numpy, numba"],
        "sigdask compare, Yeh's example": [sys.executable, "-m", "sigdask", "compare", str(example), *metrics],
    }


def _time_process(command: list[str]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return sorted(times)[2]


def compute_floors(f: dict) -> dict[str, float]:
    """Return the single-thread seconds of the bare steps, for the cases where they can be counted."""
    return {
        "pair 1,000 items, 2^20 trials": 2**20 * (8 * f["philox"] + 125 * f["look-up 64"]),
        "pair 100,000 items, 10^4 trials": 10**4 * (782 * f["philox"] + 12_500 * f["look-up 64"]),
        "8,256 pairs of 129 x 50, 2^20 trials": 2**20
        * (f["philox"] + 128 * min(7 * f["look-up 32"], 2 * 15 * f["plane word 32"]) + 8256 * f["pair comparison"]),
        "1,225 pairs of 50 x 50, 10^5 trials": 10**5
        * (f["philox"] + 49 * min(7 * f["look-up 32"], 2 * 15 * f["plane word 32"]) + 1225 * f["pair comparison"]),
    }


def format_table(results: dict) -> str:
    """Format the results as Markdown."""
    lines = ["# Benchmarks", "", "`python -m benchmarks`; medians; peers are held to one thread."]
    lines += ["Scaled figures were timed on the share of the trials that is given.", ""]
    lines += [", ".join(f"{k} {v}" for k, v in results["versions"].items()), "", "| step | ns a trial |", "|---|---|"]
    lines += [f"| {name} | {1e9 * s:.3f} |" for name, s in results["floor"].items()]
    floor_seconds = compute_floors(results["floor"])
    lines += [
        "",
        "| work | tool | CPU s | wall s | ratio (CPU) | x floor | memory | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for work, tools in results["cases"].items():
        baseline_cpu = next(iter(tools.values())).get("cpu")
        for tool, r in tools.items():
            if "error" in r:
                lines.append(f"| {work} | {tool} | {r['error']} | | | | | |")
                continue
            times_floor = (
                f"{r['cpu'] / floor_seconds[work]:.2f}" if work in floor_seconds and tool.startswith("sigdask") else ""
            )
            note = "" if r["share"] == 1 else f"scaled from {r['share']:.3g} of the trials"
            ratio = f"{r['cpu'] / baseline_cpu:,.1f}"
            lines.append(
                f"| {work} | {tool} | {r['cpu']:.3f} | {r['wall']:.3f} | {ratio} | {times_floor} | {r['memory'] / 2**20:.0f} MiB | {note} |"
            )
    lines += ["", "| whole process | s |", "|---|---|", *(f"| {k} | {v:.3f} |" for k, v in results["start"].items())]
    lines += [
        "",
        *_describe_scaling(results["cases"].get("30 s of work on dask", {})),
        *_describe_scheduler(results["scheduler"]),
    ]
    return "\n".join(lines) + "\n"


def _describe_scaling(r: dict) -> list[str]:
    if not r or any("error" in v for v in r.values()):
        return []
    rate = {k: v["n_trials"] / v["wall"] for k, v in r.items()}
    cost = {k: v["cpu"] / v["n_trials"] for k, v in r.items()}
    scaling = (
        f"2 threads do {rate['2 threads'] / rate['1 thread']:.2f} times the trials of one; 2 workers "
        f"{rate['2 workers'] / rate['1 worker']:.2f} times those of 1 worker. CPU beyond the same trials in-process: "
        f"{100 * (cost['2 workers'] / cost['1 thread'] - 1):.1f} % with 2 workers."
    )
    return [scaling, ""]


def _describe_scheduler(cost: float) -> list[str]:
    model = (
        f"A task that does nothing costs {1e3 * cost:.2f} ms with 2 workers on this machine (scheduler, client and workers "
        "together). Model: a scheduler saturates when workers / task seconds exceeds 1 / cost."
    )
    lines = [
        model,
        "",
        "| workers | task seconds | tasks a second | share of the scheduler |",
        "|---|---|---|---|",
    ]
    for n in (2, 16, 100, 1000, 4000):
        seconds = compute_task_seconds(1e9, n)
        lines.append(f"| {n} | {seconds:g} | {n / seconds:g} | {100 * cost * n / seconds:.0f} % |")
    return lines


if __name__ == "__main__":
    main()
