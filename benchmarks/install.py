"""Measure installed size and start-up time: `python -m benchmarks.install` writes results-install.md.

The wheel is built and installed into a new environment, as a user would; each extra is then added to the same one and what
comes with it is counted. Seconds are medians of whole processes, on a machine that does nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
EXTRAS = ("frame", "mt", "ir", "asr", "report", "postgres", "s3", "clusters", "slurm", "ssh")
COUNTING_PACKAGES = ("llvmlite", "numba", "numpy", "numpy.libs", "scipy", "scipy.libs")
PLAN_PACKAGES = ("sqlalchemy", "greenlet", "pydantic", "pydantic_core")
NETWORK_PACKAGES = ("dask", "distributed", "tornado", "msgpack", "cryptography", "cffi", "fsspec", "zict", "psutil")
METRIC_OPTIONS = [part for metric in ("recall", "f1", "precision") for part in ("--metric", metric)]
ROUNDS = 7


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = measure_install(Path(folder))
    (HERE / "results-install.json").write_text(json.dumps(results, indent=1) + "\n")
    page_text = render_page(results)
    (HERE / "results-install.md").write_text(page_text)
    print(page_text)


def measure_install(folder: Path) -> dict:
    """Build this checkout, install it and measure its sizes and times."""
    wheel, sdist = build_packages(folder / "dist")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    before = measure_sizes(environment)
    _install(environment, str(wheel))
    after = measure_sizes(environment)
    core = {name: size - before.get(name, 0) for name, size in after.items() if size != before.get(name, 0)}
    results = {
        "wheel": wheel.stat().st_size, "sdist": sdist.stat().st_size, "core": core,
        "bytecode": measure_bytecode(environment), "seconds": time_commands(environment, folder), "extras": {},
    }  # fmt: skip
    total = sum(after.values())
    for extra in EXTRAS:
        _install(environment, f"{wheel}[{extra}]")
        size_now = sum(measure_sizes(environment).values())
        results["extras"][extra], total = size_now - total, size_now
    return results


def build_packages(folder: Path) -> tuple[Path, Path]:
    """Build the sdist and, from it, the wheel; return the paths of wheel and sdist."""
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, HERE.parent], check=True, capture_output=True)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def _install(environment: Path, *requirements: str) -> None:
    subprocess.run([environment / "bin" / "pip", "install", "-q", *requirements], check=True)


def _find_site_packages(environment: Path) -> Path:
    [site_packages] = (environment / "lib").glob("python*/site-packages")
    return site_packages


def measure_sizes(environment: Path) -> dict[str, int]:
    """Return the disk usage in bytes of each installed package."""
    return {path.name: _count_bytes(path) for path in _find_site_packages(environment).iterdir()}


def measure_bytecode(environment: Path) -> int:
    """Return the bytes of bytecode that pip compiles unless given `--no-compile`."""
    return sum(_count_bytes(path) for path in _find_site_packages(environment).rglob("*.pyc"))


def _count_bytes(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_blocks * 512 for file in files if not file.is_symlink())


def time_commands(environment: Path, folder: Path) -> dict[str, float]:
    """Return wall seconds of whole processes; the first comparison compiles its kernels."""
    example = HERE.parent / "sigdask" / "examples" / "yeh2000.tsv"
    python, sigdask = environment / "bin" / "python", environment / "bin" / "sigdask"
    compare = [sigdask, "compare", example, *METRIC_OPTIONS]
    time_command([python, "-c", "import numpy, numba"], folder)
    return {
        "first": time_command(compare, folder),
        "verify": time_command([sigdask, "verify"], folder),
        "numba": _time_median([python, "-c", "import numpy, numba"], folder),
        "compare": _time_median(compare, folder),
        "help": _time_median([sigdask, "--help"], folder),
        "usage": _time_median([sigdask, "compare", "--no-such-option"], folder),
        "file": _time_median([sigdask, "compare", "no-such-file.csv"], folder),
    }


def _time_median(command: list, folder: Path) -> float:
    return median(time_command(command, folder) for _ in range(ROUNDS))


def time_command(command: list, folder: Path) -> float:
    """Return the wall seconds of a process."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    return time.perf_counter() - start


def render_page(results: dict) -> str:
    """Render the page of results."""
    core, s = results["core"], results["seconds"]
    total = sum(core.values())
    parts = {
        "counting (numpy, scipy, numba with llvmlite)": _sum_sizes(core, COUNTING_PACKAGES),
        "clusters and remote files (dask, distributed, fsspec, cryptography, ...)": _sum_sizes(core, NETWORK_PACKAGES),
        "plans and their store (pydantic, SQLAlchemy)": _sum_sizes(core, PLAN_PACKAGES),
        "tables (pyarrow)": _sum_sizes(core, ("pyarrow",)),
        "sigdask": _sum_sizes(core, ("sigdask",)),
    }
    rest = total - sum(parts.values())
    rows = [*parts.items(), ("the rest (click, rich, jinja2, ...)", rest), ("**whole**", total)]
    lines = [
        "# Install weight and start", "",
        f"`python -m benchmarks.install`. Wheel {_format_kb(results['wheel'])}, sdist {_format_kb(results['sdist'])}.", "",
        "| what `pip install` brings | MB |", "|---|---|", *(f"| {name} | {_format_mb(size)} |" for name, size in rows), "",
        f"Of these, {_format_mb(results['bytecode'])} MB are bytecode, which `pip install --no-compile` leaves out.", "",
        "| extra, added in this order | MB more |", "|---|---|",
        *(f"| {name} | {_format_mb(size)} |" for name, size in results["extras"].items()), "",
        "| process | wall s |", "|---|---|",
        f"| `python -c 'import numpy, numba'` | {s['numba']:.2f} |",
        f"| `sigdask compare` on Yeh's example, three metrics | {s['compare']:.2f} ({s['compare'] - s['numba']:.2f} more than the imports above) |",
        f"| the same, the first time after installing, with compiling | {s['first']:.2f} |",
        f"| then `sigdask verify`, which compiles the other kernels and tries a cluster | {s['verify']:.2f} |",
        f"| `sigdask --help` | {s['help']:.2f} |",
        f"| an unknown option | {s['usage']:.2f} |",
        f"| a file that is not there | {s['file']:.2f} |", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _sum_sizes(core: dict[str, int], names: tuple[str, ...]) -> int:
    return sum(core.get(name, 0) for name in names)


def _format_mb(size: int) -> str:
    return f"{size / 1e6:,.0f}"


def _format_kb(size: int) -> str:
    return f"{size / 1e3:,.0f} kB"


if __name__ == "__main__":
    main()
