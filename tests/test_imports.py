"""Tests of imports: no circles, and heavy packages only when they are used."""

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT, YEH

HEAVY = ("dask", "distributed", "pandas", "pyarrow", "scipy.stats", "sacrebleu")


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import sigdask", ("numpy", "numba", "scipy", *HEAVY)),
        ("import sigdask.api, sigdask.cli, sigdask.formats", HEAVY),
        ("import sigdask.cli.compare", ("numba", "scipy.special", "scipy.fft", "scipy.sparse", *HEAVY)),
        ("from sigdask.api import compare; compare([1, 2], [0, 0])", (*HEAVY, "rich")),
    ],
)
def test_heavy_packages_are_imported_only_when_they_are_used(code, absent):
    script = f"import sys; {code}; print([m for m in {absent!r} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"


LIST_IMPORTED = """
import sys
from sigdask.cli import main

sys.argv = ["sigdask", "compare", "--cluster", "none", "--metric", "recall", "--json", "-", sys.argv[1]]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""

OF_OTHER_COMMANDS = {
    "scipy.stats",
    "scipy.sparse",
    "dask",
    "pandas",
    "pyarrow",
    "pydantic",
    "sqlalchemy",
}


def test_a_comparison_imports_nothing_that_only_other_commands_need():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", LIST_IMPORTED, str(YEH)]
    for _ in range(2):  # a first run that compiles kernels imports more
        run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(run.stdout)["results"][0]["n_extreme"] == 198
    assert {*run.stderr.splitlines()[-1].split()} & OF_OTHER_COMMANDS == set()


@pytest.mark.parametrize("package", ["sigdask", "benchmarks"])
def test_no_modules_import_each_other_in_a_circle(package):
    """Imports inside functions and for type checkers count as well."""
    grimp = pytest.importorskip("grimp", reason="pip install import-linter")
    graph = grimp.build_graph(package, include_external_packages=False, exclude_type_checking_imports=False)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules - {package}}
    while ends := [module for module, imported in imports.items() if not imported & imports.keys()]:
        for module in ends:
            del imports[module]
    assert imports == {}
