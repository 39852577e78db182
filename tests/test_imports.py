"""The rooms: imports go downwards, and heavy packages are imported when they are used."""

import re
import subprocess
import sys

from conftest import ROOT


def test_imports_only_go_downwards():
    found = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr


def test_comparing_in_process_imports_nothing_heavy():
    code = (
        "import sys; from sigdask.api import compare; import sigdask.cli, sigdask.formats; compare([1, 2], [0, 0]);"
        "print([m for m in ('dask', 'distributed', 'scipy.stats', 'pandas', 'pyarrow', 'sklearn', 'rich') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def imported_by(code, *heavy):
    listed = f"import sys; {code}; print([m for m in {heavy!r} if m in sys.modules])"
    return subprocess.check_output([sys.executable, "-c", listed], text=True).strip()


def test_importing_sigdask_imports_no_numpy():
    assert imported_by("import sigdask", "numpy", "numba", "scipy", "dask", "distributed", "pandas") == "[]"


def test_importing_the_api_imports_no_dask_and_no_statistics_of_scipy():
    heavy = ("dask", "distributed", "dask.distributed", "scipy.stats", "pandas", "sacrebleu")
    assert imported_by("import sigdask.api, sigdask.cli", *heavy) == "[]"


def test_only_the_engine_and_clusters_name_dask():
    naming = {
        path.relative_to(ROOT / "sigdask").as_posix()
        for path in (ROOT / "sigdask").rglob("*.py")
        if re.search(r"^\s*(from|import) (dask|distributed)\b", path.read_text(), re.MULTILINE)
    }
    outside = {name for name in naming if not name.startswith("clusters/")}
    assert outside <= {"engine/__init__.py", "engine/flight.py", "engine/packing.py"}


LIMIT_AT_THE_TOP, LIMIT_IN_A_FOLDER = 26, 15


def test_the_house_stays_small_enough_to_know():
    package = ROOT / "sigdask"
    folders = [package, *(path for path in package.rglob("*") if (path / "__init__.py").is_file())]
    sizes = {
        folder.relative_to(package).as_posix(): len([*folder.glob("*.py")])
        + sum((inner / "__init__.py").is_file() for inner in folder.iterdir()) * (folder == package)
        for folder in folders
    }
    assert sizes.pop(".") <= LIMIT_AT_THE_TOP
    assert {name: n for name, n in sizes.items() if n > LIMIT_IN_A_FOLDER and name != "clusters"} == {}
