"""Tests of extraction on a cluster: the same arrays, whatever the cluster lacks or loses."""

import logging
import pickle

import numpy as np
import pytest
from counters import build_metric, build_texts, lengths

from sigdask.errors import ClusterLostError
from sigdask.execution import run
from sigdask.execution.clusters import Cluster, connect
from sigdask.execution.run import ClusterExtraction, count_packed
from sigdask.metrics import extraction, find_metric
from sigdask.metrics.extraction import (
    ExtractionPart,
    LocalExtraction,
    ProcessExtraction,
    StatisticsSource,
    extract_statistics,
)


@pytest.fixture(scope="module")
def counts():
    return build_texts(60, 3)


@pytest.fixture(scope="module")
def want(counts):
    return {name: find_metric(name).bind(counts).own for name in ("BLEU", "WER")}


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(run, "SHORT_SECONDS", 0.0)
    monkeypatch.setattr(extraction, "PART_SECONDS", 1e-3)


def extract_with(run, counts, want):
    [extracted] = extract_statistics([(counts, list(map(find_metric, want)))], StatisticsSource(run=run))
    return {name: find_metric(name).bind(extracted.counts).own for name in want}


def are_equal(arrays, want):
    return all(np.array_equal(arrays[m][field], want[m][field]) for m in want for field in want[m])


@pytest.mark.cluster
def test_workers_of_a_cluster_count_what_this_process_counts(counts, want, small_parts):
    with connect("local", workers=2) as cluster:
        assert are_equal(extract_with(ClusterExtraction(cluster), counts, want), want)
        ran = set(cluster.client.scheduler_info()["workers"])
        assert len(ran) == 2


def build_parts(n=6):
    return [ExtractionPart(build_metric().extraction, (["a" * k, "b"],), ["c", "dd"]) for k in range(n)]


def list_counts(numbered):
    return {number: [array.tolist() for array in arrays] for number, arrays in numbered}


EXPECTED = {k: [array.tolist() for array in lengths([["a" * k, "b"]], ["c", "dd"])] for k in range(6)}


class FailingCluster:
    """A cluster that counts some parts and then fails or stops."""

    def __init__(self, n, error=None):
        self.n, self.error = n, error

    def __call__(self, _cluster, listed):
        yield from ((k, part.count()) for k, part in enumerate(listed[: self.n]))
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize(("n", "error"), [(6, None), (2, ClusterLostError("the scheduler went away")), (0, None)])
@pytest.mark.slow
def test_what_a_cluster_does_not_count_is_counted_here(monkeypatch, caplog, n, error):
    monkeypatch.setattr(run, "_count_on_client", FailingCluster(n, error))
    with caplog.at_level(logging.WARNING, "sigdask.execution.clusters"):
        assert list_counts(ClusterExtraction(Cluster("dask", 2, client=object()))(build_parts(), 1e3)) == EXPECTED
    messages = [record.getMessage() for record in caplog.records]
    last_message = (
        [f"extraction: the cluster did not finish {6 - n} of 6 parts; this process computes them"] if n < 6 else []
    )
    assert messages == ([f"extraction: {error}"] if error else []) + last_message


def test_a_worker_with_other_versions_counts_nothing():
    part = build_parts()[1]
    assert count_packed(pickle.dumps((1, part.extraction.key, part)))[1][0].tolist() == EXPECTED[1][0]
    assert count_packed(pickle.dumps((1, "the key with the driver's versions", part))) == (1, None)


def test_threads_become_processes_and_short_work_stays_here(monkeypatch):
    used = []

    class Watched(ProcessExtraction):
        def __call__(self, listed, seconds):
            used.append(self.n)
            return LocalExtraction()(listed, seconds)

    monkeypatch.setattr(run, "ProcessExtraction", Watched)
    for cluster in ("auto", "threads", "local", "tls://far.away:8786"):
        assert list_counts(ClusterExtraction(cluster, 2)(build_parts(), 30.0)) == EXPECTED
    assert used == [2, 2, 2, 2]
    for cluster, seconds in (("auto", 0.1), ("none", 1e6)):
        assert list_counts(ClusterExtraction(cluster)(build_parts(), seconds)) == EXPECTED
    assert len(used) == 4


def test_a_cluster_that_must_be_reached_is_reached_for_long_work(monkeypatch):
    reached = []
    monkeypatch.setattr(run, "_count_on_client", FailingCluster(6))
    monkeypatch.setattr(run.clusters, "connect", lambda cluster: reached.append(cluster) or connect("none"))
    assert list_counts(ClusterExtraction("tls://far.away:8786", 2)(build_parts(), 1e4)) == EXPECTED
    assert reached == ["tls://far.away:8786"]
