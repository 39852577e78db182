"""Tests of imports: only downwards between folders, and heavy packages only when they are used."""

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter

import grimp
import pytest
from conftest import ROOT


def test_imports_only_go_downwards():
    result = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


def test_comparing_in_process_imports_nothing_heavy():
    code = (
        "import sys; from sigdask.api import compare; import sigdask.cli, sigdask.formats; compare([1, 2], [0, 0]);"
        "print([m for m in ('dask', 'distributed', 'scipy.stats', 'pandas', 'pyarrow', 'sklearn', 'rich') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def list_imported(code, *heavy):
    script = f"import sys; {code}; print([m for m in {heavy!r} if m in sys.modules])"
    return subprocess.check_output([sys.executable, "-c", script], text=True).strip()


def test_importing_sigdask_imports_no_numpy():
    assert list_imported("import sigdask", "numpy", "numba", "scipy", "dask", "distributed", "pandas") == "[]"


def test_importing_the_api_imports_no_dask_and_no_statistics_of_scipy():
    heavy = ("dask", "distributed", "dask.distributed", "scipy.stats", "pandas", "sacrebleu")
    assert list_imported("import sigdask.api, sigdask.cli", *heavy) == "[]"


def test_commands_that_compute_nothing_import_neither_numba_nor_functions_of_scipy():
    sniffing = "[FORMATS[name].load(FORMATS[name].sniffer) for name in SNIFFING_ORDER]"
    code = f"import sigdask.cli.compare; from sigdask.formats import FORMATS, SNIFFING_ORDER; {sniffing}"
    heavy = ("numba", "scipy.special", "scipy.fft", "scipy.sparse", "dask", "pandas")
    assert list_imported(code, *heavy) == "[]"


def test_special_functions_do_not_load_the_slowest_modules_of_numpy():
    code = (
        "import sys, sigdask.statistics.bounds as bounds; bounds.clopper_pearson(1, 10);"
        "print([m for m in sys.modules if m.startswith(('numpy.f2py.', 'numpy.testing.'))]);"
        "import numpy as np; np.testing.assert_equal(1, 1); print('numpy.testing._private' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["[]", "True"]


def test_modules_of_numpy_that_are_imported_late_can_be_used_by_threads_and_pickled():
    """importlib.util.LazyLoader fails at both under Python 3.11."""
    code = (
        "import threading, cloudpickle, numpy as np, sigdask.statistics\n"
        "assert cloudpickle.dumps(lambda: np.testing.assert_equal(1, 1))\n"
        "barrier, found = threading.Barrier(8), []\n"
        "def use(): barrier.wait(); found.append(np.testing.assert_equal)\n"
        "threads = [threading.Thread(target=use) for _ in range(8)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]; print(len(found))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["8"]


COUNT_ENTERED = """
import sys
from sigdask.cli import main

entered, n_importing = set(), 0

def note_call(frame, event, _):
    global n_importing
    if frame.f_code.co_name == "<module>":
        n_importing += {"call": 1, "return": -1}.get(event, 0)
    elif event == "call" and not n_importing:
        entered.add(frame.f_globals.get("__name__", ""))

sys.argv = ["sigdask", "compare", "t.tsv"]
sys.setprofile(note_call)
try:
    main()
finally:
    sys.setprofile(None)
    print(sum(module.split(".")[0] == "sigdask" for module in entered), file=sys.stderr)
"""


def test_a_comparison_of_8_items_runs_functions_of_120_modules_at_most(tmp_path):
    """Count the modules that run a function; what an import runs, such as bodies of classes, is not counted."""
    (tmp_path / "t.tsv").write_text(
        "item\tgold\ta\tb\n" + "".join(f"{k}\tN\t{'NV'[k > 5]}\t{'NV'[k > 3]}\n" for k in range(8))
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", COUNT_ENTERED], cwd=tmp_path, capture_output=True, text=True, check=True, env=environment
    )
    assert "not significantly different" in run.stdout
    assert 80 < int(run.stderr.split()[-1]) <= 120


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
    *("scipy.linalg", "scipy.stats", "scipy.sparse", "scipy.fft", "numba.np.arraymath", "numba.np.arrayobj"),
    *("dask", "pandas", "pyarrow", "pydantic", "sqlalchemy"),
    *(f"sigdask.analysis.{name}" for name in ("candidate_rankings", "independence", "power")),
    "sigdask.report.analyses",
}
"""What a comparison does without: parts of SciPy and numba that some kernels need, and what other commands need."""


def test_a_comparison_imports_nothing_that_only_others_need():
    """A first run that compiles kernels, as they are not cached, imports more for that: a second one tells."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", LIST_IMPORTED, str(ROOT / "sigdask" / "examples" / "yeh2000.tsv")]
    for _ in range(2):
        run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        imported = {*run.stderr.splitlines()[-1].split()}
        if not imported & OF_OTHER_COMMANDS:
            break
    assert json.loads(run.stdout)["results"][0]["n_extreme"] == 198
    assert {"numba", "sigdask.api"} <= imported
    assert imported & OF_OTHER_COMMANDS == set()
    assert sum(name.split(".")[0] == "sigdask" for name in imported) <= 230


def test_only_execution_names_dask():
    naming = {
        path.relative_to(ROOT / "sigdask").as_posix()
        for path in (ROOT / "sigdask").rglob("*.py")
        if re.search(r"^\s*(from|import) (dask|distributed)\b", path.read_text(), re.MULTILINE)
    }
    outside = {name for name in naming if not name.startswith("execution/clusters/")}
    assert outside <= {
        "execution/run.py",
        "execution/task_window.py",
        "execution/tasks.py",
    }


def test_no_modules_import_each_other_in_a_circle():
    """Imports inside functions and for type checkers count as well."""
    graph = grimp.build_graph("sigdask", include_external_packages=False, exclude_type_checking_imports=False)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules - {"sigdask"}}
    while ends := [module for module, imported in imports.items() if not imported & imports.keys()]:
        for module in ends:
            del imports[module]
    assert imports == {}


SLOW_MODULES = {
    "sigdask.execution.clusters.hung_workers": "distributed",
    "sigdask.nightly.plan": "pydantic",
    "sigdask.nightly.store": "sqlalchemy",
    "sigdask.cli.status": "sqlalchemy",
}
"""Modules that functions may import, and the slow package that each one loads."""


@pytest.fixture(scope="module")
def statements():
    """Return all statements of each module of the package, and whether they are inside a function."""
    paths = sorted((ROOT / "sigdask").rglob("*.py"))
    return {path: [*iter_statements(ast.parse(path.read_text()), in_function=False)] for path in paths}


def iter_statements(parent, *, in_function):
    in_function |= isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef))
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield node, in_function
            yield from iter_statements(node, in_function=in_function)


def test_modules_import_what_they_need_at_their_top(statements):
    """Only slow modules are imported in functions, and public names by the package itself."""
    local_imports = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, nodes in statements.items()
        for node, in_function in nodes
        if in_function and isinstance(node, ast.ImportFrom) and path != ROOT / "sigdask" / "__init__.py"
        if node.module.startswith("sigdask") and node.module not in SLOW_MODULES
    ]
    assert local_imports == []


@pytest.mark.parametrize(("module", "package"), SLOW_MODULES.items())
def test_modules_that_functions_import_are_slow(module, package):
    assert list_imported(f"import {module}", package) == f"['{package}']"


def test_each_class_name_stands_for_one_thing(statements):
    names = Counter(node.name for nodes in statements.values() for node, _ in nodes if isinstance(node, ast.ClassDef))
    assert len(names) > 100
    assert [name for name, n in names.items() if n > 1] == []


LIMIT_AT_THE_TOP, LIMIT_IN_A_FOLDER = 21, 15


def test_the_package_stays_small_enough_to_know():
    package = ROOT / "sigdask"
    folders = [package, *(path for path in package.rglob("*") if (path / "__init__.py").is_file())]
    sizes = {
        folder.relative_to(package).as_posix(): len([*folder.glob("*.py")])
        + sum((inner / "__init__.py").is_file() for inner in folder.iterdir()) * (folder == package)
        for folder in folders
    }
    assert sizes.pop(".") <= LIMIT_AT_THE_TOP
    assert {name: n for name, n in sizes.items() if n > LIMIT_IN_A_FOLDER} == {}
