"""Tests of imports: no circles, and heavy packages only when they are used."""

import subprocess
import sys

import pytest
from conftest import ROOT, YEH

HEAVY = ("dask", "distributed", "pandas", "scipy.stats", "sacrebleu")
COMPARISON = f"""
from contextlib import suppress
from sigdask.cli import main

sys.argv = ["sigdask", "compare", "--cluster", "none", "-m", "recall", "-q", {str(YEH)!r}]
with suppress(SystemExit):
    main()
"""


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import sigdask", ("numpy", "numba", "scipy", "pyarrow", *HEAVY)),
        ("import sigdask.cli.compare", ("numba", "scipy.special", "scipy.fft", "scipy.sparse", *HEAVY)),
        ("from sigdask.api import compare; compare([1, 2], [0, 0])", (*HEAVY, "rich")),
        (COMPARISON, ("scipy.sparse", "pydantic", "sqlalchemy", *HEAVY)),
    ],
)
@pytest.mark.slow
def test_heavy_packages_are_imported_only_when_they_are_used(code, absent):
    script = f"import sys\n{code}\nprint([m for m in {absent!r} if m in sys.modules])"
    for _ in range(2):  # a first run that compiles kernels imports more
        output = subprocess.check_output([sys.executable, "-c", script], text=True, cwd=ROOT)
        if output.endswith("[]\n"):
            return
    pytest.fail(output)


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
