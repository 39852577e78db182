"""One word for each check: `nox -s lint`, `types`, `tests`, `everything`, `docs`, `benchmarks` or `build`.

`nox` alone runs the first three.
"""

import shutil
from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "tests"]
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True


@nox.session
def lint(session):
    """Check style, format, and which folder may import which."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def types(session):
    """Check types."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session
def tests(session):
    """Run the default tests; arguments after -- go to pytest."""
    session.install("-e", ".[test]")
    session.run("pytest", "-n", "3", "--dist", "loadfile", *session.posargs)  # as README has it


@nox.session
def everything(session):
    """Run all tests: simulations, kills, clusters, whole sets of real data."""
    session.install("-e", ".[dev]")
    session.run("pytest", "--all", *session.posargs)


@nox.session
def docs(session):
    """Build the site; a warning is an error."""
    session.install("-e", ".[docs]")
    session.run("python", "-m", "sphinx", "-W", "-n", "-c", "docs", ".", "site")


@nox.session
def benchmarks(session):
    """Compare speed and memory with other tools; arguments after -- choose the benchmarks."""
    session.install("-e", ".[benchmarks]")
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def build(session):
    """Build sdist and wheel into dist/, and check what an index would show of them."""
    session.install("build", "twine")
    shutil.rmtree("dist", ignore_errors=True)
    session.run("python", "-m", "build")
    session.run("twine", "check", "--strict", *map(str, sorted(Path("dist").iterdir())))
