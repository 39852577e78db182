"""The numba cache: damaged files are compiled again, and read-only homes get a temporary cache."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from conftest import ROOT

from sigdask.cli.progress import ProgressStep
from sigdask.io import caches as room

MODULE = """
from sigdask.io.caches import TEMPORARY_FOLDERS, cached_njit
import os, pathlib, numba

@cached_njit()
def twice(x):
    return 2 * x

print(twice(21), sum(twice.stats.cache_hits.values()), numba.config.CACHE_DIR)
if os.environ.get("FORK") and os.fork() == 0:
    raise SystemExit
"""


def run_module(folder, **environment):
    """Import a module that compiles; return its value, its cache hits and its temporary folder."""
    (folder / "doubles.py").write_text(MODULE)
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    process = subprocess.run(
        [sys.executable, "-c", "import doubles"], cwd=folder, capture_output=True, text=True, check=False,
        env={**inherited, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), **environment},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    value, hits, *rest = process.stdout.split()
    return int(value), int(hits), rest[0] if rest else ""


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_kept_code_that_is_damaged_is_made_anew(tmp_path, ending):
    cache = tmp_path / "cache"
    assert run_module(tmp_path, NUMBA_CACHE_DIR=str(cache))[:2] == (42, 0)
    [path] = cache.rglob(f"*.{ending}")
    content = path.read_bytes()
    for damaged in (b"", content[: len(content) // 2], b"\x80\x05K\x01.", b"what is this?"):
        path.write_bytes(damaged)
        assert run_module(tmp_path, NUMBA_CACHE_DIR=str(cache))[:2] == (42, 0)
        assert run_module(tmp_path, NUMBA_CACHE_DIR=str(cache))[:2] == (42, 1)
    path.unlink()
    path.mkdir()
    assert run_module(tmp_path, NUMBA_CACHE_DIR=str(cache))[0] == 42


CALLER = """
from sigdask.helper_kernel import add
from sigdask.io.caches import cached_njit

@cached_njit()
def add_twice(x):
    return add(add(x))

print(add_twice(1), sum(add_twice.stats.cache_hits.values()))
"""


def test_a_kernel_is_compiled_again_when_a_helper_in_another_file_changes(tmp_path):
    shutil.copytree(ROOT / "sigdask", tmp_path / "sigdask", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "sigdask" / "caller_kernel.py").write_text(CALLER)
    cache = tmp_path / "cache"

    def call_with_helper(increment):
        """Return the value of the caller, its cache hits, and its files in the cache."""
        helper = (
            f"from sigdask.io.caches import cached_njit\n\n@cached_njit()\ndef add(x):\n    return x + {increment}\n"
        )
        (tmp_path / "sigdask" / "helper_kernel.py").write_text(helper)
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(cache)}
        command = [sys.executable, "-c", "import sigdask.caller_kernel"]
        process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return *map(int, process.stdout.split()), {path.name for path in cache.rglob("caller_kernel.add_twice-*")}

    value, hits, files = call_with_helper(1)
    assert (value, hits, len(files)) == (3, 0, 2)
    assert call_with_helper(1) == (3, 1, files)
    value, hits, new_files = call_with_helper(10)
    assert (value, hits, len(new_files)) == (21, 0, 2)  # what was compiled with the old helper is removed
    assert not files & new_files


def test_what_kernels_take_from_other_modules_is_in_files_of_the_digest():
    files = dict(room.iter_kernel_files())
    known_modules = {f"sigdask.{name.removesuffix('.py').replace('/', '.')}" for name in files}
    n_kernels = 0
    for name, content in files.items():
        tree = ast.parse(content)
        imports = [
            node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "sigdask" in str(node.module)
        ]
        modules = {alias.asname or alias.name: node.module for node in imports for alias in node.names}
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and any("njit" in ast.unparse(d) for d in function.decorator_list):
                n_kernels += 1
                names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} & modules.keys()
                assert {modules[used] for used in names} <= known_modules, (name, function.name)
    assert n_kernels > 50


def test_nothing_is_kept_by_numba_itself_which_fails_where_nothing_can_be_written():
    pattern = re.compile(r"^ *@.*\bcache=True", re.MULTILINE)
    assert [path.name for path in (ROOT / "sigdask").rglob("*.py") if pattern.search(path.read_text())] == []


def test_where_no_folder_can_be_written_a_temporary_one_of_this_process_is_used_and_removed(tmp_path):
    for name in ("__pycache__", "file"):
        (tmp_path / name).touch()
    variables = {"XDG_CACHE_HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path), "FORK": "1"}
    value, _, folder = run_module(tmp_path, **variables)
    assert (value, Path(folder).parent) == (42, tmp_path)
    assert not list(tmp_path.glob("sigdask-compiled-*"))
    (tmp_path / "sigdask-compiled-").touch()
    missing = {**variables, "TMPDIR": str(tmp_path / "file")}
    if os.geteuid():  # root may write to all of the places that Python tries next
        assert run_module(tmp_path, **missing)[0] == 42


def test_a_folder_that_strangers_may_write_to_is_not_read(tmp_path, monkeypatch, caplog):
    folder = tmp_path / "open"
    folder.mkdir()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    monkeypatch.setenv(room.CACHE_VARIABLE, str(folder))
    room._check_folder_owner()
    assert str(folder) == numba.config.CACHE_DIR
    folder.chmod(0o777)
    room._check_folder_owner()
    assert (numba.config.CACHE_DIR, os.environ[room.CACHE_VARIABLE]) == ("", "")
    assert "another user can write to this folder" in caplog.text


def test_progress_says_that_a_function_is_being_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    labels = []
    save = room.CompiledCache.save_overload

    def record_label(cache, sig, data):
        labels.append(ProgressStep("preparing").label)
        save(cache, sig, data)

    monkeypatch.setattr(room.CompiledCache, "save_overload", record_label)

    def thrice(x):
        return 3 * x

    assert room.cached_njit()(thrice)(14) == 42
    assert labels == ["compiling for this processor (only once)"]
    assert str(ProgressStep("preparing")).endswith(" so far")
    assert ProgressStep("counting", "trials", 500, 2000).label == "500 of 2,000 trials"
