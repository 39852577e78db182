"""Formats and metrics of another package, which `tests/plugin` is."""

import gzip
import json
import os
import subprocess
import sys
import tomllib

import pytest
from command import call_sigdask
from conftest import ROOT, YEH

from sigdask import compare_all, formats, metrics
from sigdask.formats import registry

PLUGIN = ROOT / "tests" / "plugin"
GOLD = {"a": "yes", "b": "no", "c": "yes", "d": "yes", "e": "no", "f": "yes"}
SYSTEMS = {"x": GOLD | {"b": "yes"}, "y": dict.fromkeys(GOLD, "no")}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install the package on Python's path, as pip does."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    info = tmp_path / "sigdask_arrows-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    sections = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    (info / "entry_points.txt").write_text("\n".join(sections))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(PLUGIN)
    caches = (registry.add_installed_formats, metrics.add_installed_metrics)
    for cache in caches:
        cache.cache_clear()
    before = dict(formats.FORMATS), dict(metrics.METRICS)
    yield tmp_path
    for table, old in zip((formats.FORMATS, metrics.METRICS), before, strict=True):
        table.clear()
        table.update(old)
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def files(tmp_path):
    for name, labels in {"gold": GOLD, **SYSTEMS}.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"{item} -> {label}\n" for item, label in labels.items()))
    return tmp_path


def test_an_installed_format_is_recognised_listed_and_compared(installed, files):
    result = call_sigdask("compare", "x.txt", "y.txt", "--gold", "gold.txt", "-m", "accuracy", "--json", "-", cwd=files)
    [comparison] = json.loads(result.stdout)["results"]
    assert (comparison["score_a"], comparison["score_b"]) == (5 / 6, 2 / 6)
    assert "arrows" in result.stderr
    assert "arrows" in call_sigdask("list", "formats", cwd=files).stdout
    assert "fowlkes-mallows" in call_sigdask("list", "metrics", cwd=files).stdout


def test_an_error_of_an_installed_format_names_file_and_line(installed, files):
    (files / "y.txt").write_text("a -> yes\nb no\n")
    result = call_sigdask("compare", "x.txt", "y.txt", "--gold", "gold.txt", "--format", "arrows", cwd=files)
    assert result.returncode == 2
    assert "y.txt, line 2" in result.stderr


def test_installed_metrics_score_installed_formats_and_others(installed, files):
    counts = formats.read(files / "x.txt", files / "y.txt", gold=files / "gold.txt")
    [result] = compare_all(counts, metrics=["longest"], trials=9, interval="none")
    assert (counts.format, result.score_a, result.score_b) == ("arrows", 4 / 6, 1 / 6)
    [result] = compare_all(
        formats.read(YEH, format="responses"), metrics=["fowlkes-mallows"], trials=9, interval="none"
    )
    assert result.score_a == pytest.approx((47 / 103 * 47 / 95) ** 0.5)


@pytest.mark.slow
def test_a_package_that_pip_installs_is_used_by_a_new_process(files):
    target = files / "site"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(target), str(PLUGIN)], check=True, cwd=files)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), str(ROOT)])}
    (files / "x.txt.gz").write_bytes(gzip.compress((files / "x.txt").read_bytes()))
    command = [sys.executable, "-m", "sigdask", "compare", "x.txt.gz", "y.txt", "--gold", "gold.txt", "-m", "longest"]
    result = subprocess.run(
        [*command, "--cluster", "none"], cwd=files, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "0.6667" in result.stdout
