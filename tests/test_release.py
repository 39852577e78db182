"""Tests of the release: wheel and sdist install without the checkout and describe themselves correctly."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import ROOT

needs_build = pytest.mark.skipif(find_spec("build") is None, reason="needs build (pip install build)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Build the sdist, and the wheel from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def list_tracked(*folders):
    """Return the project's files that git tracks; without git, all but bytecode."""
    result = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return {name for name in result.stdout.splitlines() if (ROOT / name).is_file()}
    files = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}


@needs_build
@pytest.mark.slow
def test_the_wheel_holds_the_package_whole_and_nothing_compiled(made):
    names = {name for name in zipfile.ZipFile(made[0]).namelist() if ".dist-info/" not in name}
    assert names == list_tracked("sigdask")
    assert "sigdask/py.typed" in names
    assert not [name for name in names if re.search(r"__pycache__|\.(pyc|nbi|nbc)$", name)]


@needs_build
@pytest.mark.slow
def test_the_sdist_holds_what_tests_and_documents_need(made):
    with tarfile.open(made[1]) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert list_tracked("sigdask", "tests", "docs", "deploy", "benchmarks") <= names
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", ".ci/run"} <= names


@needs_build
@pytest.mark.slow
def test_the_wheel_runs_in_an_environment_of_its_own_with_its_core_alone(made, tmp_path):
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    command = [python, "-m", "pip", "install", "-q", "--no-compile", made[0]]
    installed = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    if re.search("connection|network|resolve host", installed.stderr, re.IGNORECASE):
        pytest.skip("no package index can be reached")
    assert installed.returncode == 0, installed.stderr

    def said(*arguments):
        command = [environment / "bin" / "sigdask", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    code = "import sigdask, pathlib; print(pathlib.Path(sigdask.__file__).resolve())"
    location = subprocess.check_output([python, "-c", code], cwd=tmp_path, text=True).strip()
    assert Path(location).is_relative_to(environment.resolve())
    assert said("--version").strip().endswith(PROJECT["version"])
    example = Path(location).parent / "examples" / "yeh2000.tsv"
    output = said("compare", str(example), "--metric", "recall", "-q")
    assert "0.000196" in output  # Yeh's example, exactly
    (tmp_path / "night.toml").write_text(
        f'[[test_set]]\nname = "yeh"\nsystems = {{ all = "{example}" }}\nmetrics = ["recall"]\n'
    )
    assert "1 comparison" in said("check", "night.toml")
