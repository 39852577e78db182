"""What an install weighs, and how long a command takes to start: `python -m benchmarks.install` writes results-install.md.

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
EXTRAS = ("frame", "parquet", "mt", "ir", "asr", "report", "postgres", "s3", "clusters", "slurm", "ssh")
COUNTING = ("llvmlite", "numba", "numpy", "numpy.libs", "scipy", "scipy.libs")
PLANS = ("sqlalchemy", "greenlet", "pydantic", "pydantic_core")
NETWORK = ("dask", "distributed", "tornado", "msgpack", "cryptography", "cffi", "fsspec", "zict", "psutil")
METRICS = [part for metric in ("recall", "f1", "precision") for part in ("--metric", metric)]
ROUNDS = 7
PAGE = HERE.parent / "docs" / "install.md"
BEGIN, END = "<!-- weight: made by python -m benchmarks.install -->", "<!-- weight: end -->"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder))
    (HERE / "results-install.json").write_text(json.dumps(found, indent=1) + "\n")
    lines = text(found)
    (HERE / "results-install.md").write_text(lines)
    PAGE.write_text(with_weight(PAGE.read_text(), lines))
    print(lines)


def measured(folder: Path) -> dict:
    """Install what is built of this checkout, and look at it."""
    wheel, sdist = built(folder / "dist")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    before = weights(environment)
    _pip(environment, str(wheel))
    after = weights(environment)
    core = {name: size - before.get(name, 0) for name, size in after.items() if size != before.get(name, 0)}
    found = {
        "wheel": wheel.stat().st_size, "sdist": sdist.stat().st_size, "core": core,
        "bytecode": bytecode(environment), "seconds": seconds(environment, folder), "extras": {},
    }  # fmt: skip
    total = sum(after.values())
    for extra in EXTRAS:
        _pip(environment, f"{wheel}[{extra}]")
        now = sum(weights(environment).values())
        found["extras"][extra], total = now - total, now
    return found


def built(folder: Path) -> tuple[Path, Path]:
    """Build the wheel (of the sdist, as build does) and the sdist; return their paths."""
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, HERE.parent], check=True, capture_output=True)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def _pip(environment: Path, *what: str) -> None:
    subprocess.run([environment / "bin" / "pip", "install", "-q", *what], check=True)


def _packages(environment: Path) -> Path:
    [found] = (environment / "lib").glob("python*/site-packages")
    return found


def weights(environment: Path) -> dict[str, int]:
    """Bytes of each thing in an environment, as a disk holds them."""
    return {each.name: _bytes(each) for each in _packages(environment).iterdir()}


def bytecode(environment: Path) -> int:
    """Bytes of what pip compiles while it installs, which `--no-compile` leaves out."""
    return sum(_bytes(each) for each in _packages(environment).rglob("*.pyc"))


def _bytes(path: Path) -> int:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_blocks * 512 for each in files if not each.is_symlink())


def seconds(environment: Path, folder: Path) -> dict[str, float]:
    """Wall seconds of whole processes, the first comparison with nothing compiled yet."""
    example = HERE.parent / "sigdask" / "examples" / "yeh2000.tsv"
    python, sigdask = environment / "bin" / "python", environment / "bin" / "sigdask"
    compare = [sigdask, "compare", example, *METRICS]
    took([python, "-c", "import numpy, numba"], folder)
    return {
        "first": took(compare, folder),
        "verify": took([sigdask, "verify"], folder),
        "numba": _median([python, "-c", "import numpy, numba"], folder),
        "compare": _median(compare, folder),
        "help": _median([sigdask, "--help"], folder),
        "usage": _median([sigdask, "compare", "--no-such-option"], folder),
        "file": _median([sigdask, "compare", "no-such-file.csv"], folder),
    }


def _median(command: list, folder: Path) -> float:
    return median(took(command, folder) for _ in range(ROUNDS))


def took(command: list, folder: Path) -> float:
    """Wall seconds of a process."""
    quiet = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, env=quiet, capture_output=True, check=False)
    return time.perf_counter() - start


def text(found: dict) -> str:
    """The page of what was found."""
    core, s = found["core"], found["seconds"]
    whole = sum(core.values())
    parts = {
        "counting (numpy, scipy, numba with llvmlite)": _of(core, COUNTING),
        "clusters and remote files (dask, distributed, fsspec, cryptography, ...)": _of(core, NETWORK),
        "plans and their store (pydantic, SQLAlchemy)": _of(core, PLANS),
        "sigdask": _of(core, ("sigdask",)),
    }
    rest = whole - sum(parts.values())
    rows = [*parts.items(), ("the rest (click, rich, jinja2, narwhals, ...)", rest), ("**whole**", whole)]
    lines = [
        "# Install weight and start", "",
        f"`python -m benchmarks.install`. Wheel {_kb(found['wheel'])}, sdist {_kb(found['sdist'])}.", "",
        "| what `pip install` brings | MB |", "|---|---|", *(f"| {name} | {_mb(size)} |" for name, size in rows), "",
        f"Of it {_mb(found['bytecode'])} MB are bytecode, which `pip install --no-compile` leaves out.", "",
        "| extra, added in this order | MB more |", "|---|---|",
        *(f"| {name} | {_mb(size)} |" for name, size in found["extras"].items()), "",
        "| process | wall s |", "|---|---|",
        f"| `python -c 'import numpy, numba'` | {s['numba']:.2f} |",
        f"| `sigdask compare` on Yeh's example, three metrics | {s['compare']:.2f} ({s['compare'] - s['numba']:.2f} beyond) |",
        f"| the same, the first time after installing, with compiling | {s['first']:.2f} |",
        f"| `sigdask verify` after it, which compiles what is left and tries a cluster | {s['verify']:.2f} |",
        f"| `sigdask --help` | {s['help']:.2f} |",
        f"| an unknown option | {s['usage']:.2f} |",
        f"| a file that is not there | {s['file']:.2f} |", "",
    ]  # fmt: skip
    return "\n".join(lines)


def with_weight(page: str, lines: str) -> str:
    """The page of installing with what was found between its marks."""
    before, rest = page.split(BEGIN)
    tables = lines.partition("`.")[2].partition("\n\n")[2]
    return f"{before}{BEGIN}\n{tables.strip()}\n{END}{rest.partition(END)[2]}"


def _of(core: dict[str, int], names: tuple[str, ...]) -> int:
    return sum(core.get(name, 0) for name in names)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f}"


def _kb(size: int) -> str:
    return f"{size / 1e3:,.0f} kB"


if __name__ == "__main__":
    main()
