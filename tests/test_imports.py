"""The rooms: imports go downwards, and heavy packages are imported when they are used."""

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
