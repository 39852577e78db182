"""`sigdask reproduce` connects to a cluster once, although it compares twice: to find the data, and to repeat the test."""

import pytest
from click.testing import CliRunner

from sigdask.cli import commands
from sigdask.execution import clusters


@pytest.mark.cluster
def test_reproduce_starts_one_cluster(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("id,a,b\n" + "".join(f"q{k},{k % 7 / 7},{k % 5 / 5}\n" for k in range(60)))
    monkeypatch.chdir(tmp_path)
    started = []
    connect = clusters.connect

    def count_connections(cluster, **options):
        started.append(cluster)
        return connect(cluster, **options)

    runner = CliRunner()
    assert runner.invoke(commands, ["compare", "t.csv", "--trials", "1000", "-q", "-o", "r.json"]).exit_code == 0
    monkeypatch.setattr(clusters, "connect", count_connections)
    arguments = ["reproduce", "r.json", "t.csv", "--cluster", "local", "--workers", "1"]
    assert runner.invoke(commands, arguments).exit_code == 0
    assert started.count("local") == 1
