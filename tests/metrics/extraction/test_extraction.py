"""Extracted statistics are the same bit by bit, cached or computed, whole or in parts."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from counters import build_metric, build_texts, deadly, lengths

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import to_object_array
from sigdask.errors import InputError, UnfinishedError
from sigdask.metrics import extraction, find_metric
from sigdask.metrics.extraction import (
    ExtractionProgress,
    FolderCache,
    LocalExtraction,
    ProcessExtraction,
    StatisticsSource,
    extract_statistics,
    hash_items,
    pack_statistics,
    unpack_statistics,
)

TEXT = ("BLEU", "BLEU:tokenize=char,lowercase=1", "chrF++", "TER", "WER", "CER")
RANKED = ("AP", "nDCG@10", "Bpref", "num_rel_ret")


@pytest.fixture(scope="module")
def texts():
    return build_texts(40, 4)


@pytest.fixture(scope="module")
def rankings():
    rng = np.random.default_rng(3)
    pool = [f"d{k}" for k in range(40)]
    ones = np.ones((25, 1), np.int64)
    runs = [
        to_object_array([tuple(rng.permutation(pool)[: rng.integers(1, 30)].tolist()) for _ in range(25)])
        for _ in range(3)
    ]
    gold = to_object_array(
        [{d: int(rng.integers(0, 3)) for d in rng.permutation(pool)[:15].tolist()} for _ in range(25)]
    )
    return Counts(("x", "y", "z"), {"topics": ones, "items": ones}, 25, outputs=Outputs(tuple(runs), gold))


def extract_fields(metric, counts):
    bound_metric = metric.bind(counts)
    return {name: bound_metric.get_field(name, counts) for name in bound_metric.fields}


def are_equal(a, b):
    return a.keys() == b.keys() and all(a[f].dtype == b[f].dtype and np.array_equal(a[f], b[f]) for f in a)


def build_cases(texts, rankings):
    """Return metrics and counts; the block size does not divide the number of items."""
    pairs = [(find_metric(name), texts) for name in TEXT] + [(find_metric(name, rankings), rankings) for name in RANKED]
    return [(replace(metric, extraction=replace(metric.extraction, block=16)), counts) for metric, counts in pairs]


def small_parts(monkeypatch):
    """Make parts of one system."""
    monkeypatch.setattr(extraction, "PART_SECONDS", 1e-5)


class _Unsendable:
    def __reduce__(self):
        raise IndexError("a fault of its own")


def test_a_part_that_cannot_be_sent_is_an_error():
    with pytest.raises(IndexError, match="a fault of its own"):
        list(ProcessExtraction(1)([_Unsendable()], 0.0))


@pytest.mark.slow
def test_in_one_go_in_parts_on_processes_and_from_what_is_kept_the_arrays_are_the_same(
    texts, rankings, tmp_path, monkeypatch
):
    pairs = build_cases(texts, rankings)
    in_one_go = [extract_fields(metric, counts) for metric, counts in pairs]
    asking = [(texts, [m for m, c in pairs if c is texts]), (rankings, [m for m, c in pairs if c is rankings])]
    small_parts(monkeypatch)
    for source in (
        StatisticsSource(),
        StatisticsSource(FolderCache(tmp_path), ProcessExtraction(2)),
        StatisticsSource(FolderCache(tmp_path)),
    ):
        results = extract_statistics(asking, source)
        fields = [extract_fields(metric, results[counts is rankings].counts) for metric, counts in pairs]
        assert all(map(are_equal, fields, in_one_go))
    assert [(result.made, result.n_kept) for result in results] == [({}, 4 * len(TEXT)), ({}, 3 * len(RANKED))]


def test_a_damaged_entry_is_made_anew_without_a_word(texts, tmp_path):
    metric = find_metric("chrF")
    source = StatisticsSource(FolderCache(tmp_path))
    extract_statistics([(texts, [metric])], source)
    spoilt, *_ = files = sorted(tmp_path.glob("extracted/*/*"))
    content = spoilt.read_bytes()
    spoilt.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    [result] = extract_statistics([(texts, [metric])], source)
    assert (len(result.made["chrF"]), result.n_kept, len(files)) == (1, 3, 4)
    assert are_equal(extract_fields(metric, result.counts), extract_fields(metric, texts))
    assert spoilt.read_bytes() == content


def test_every_flipped_byte_and_every_length_is_told():
    packed = pack_statistics("k", np.arange(-3, 9).reshape(4, 3))
    assert unpack_statistics("k", packed).tolist() == np.arange(-3, 9).reshape(4, 3).tolist()
    for k in range(len(packed)):
        assert unpack_statistics("k", packed[:k] + bytes([packed[k] ^ 1]) + packed[k + 1 :]) is None
        assert unpack_statistics("k", packed[:k]) is None


@pytest.mark.parametrize(
    "array",
    [np.array([[0, 255]]), np.array([[-1, 2**40]]), np.array([[-(2**63), 2**63 - 1]]), np.array([[0.1, np.nan, -0.0]]), np.zeros((0, 3), np.int64)],
)  # fmt: skip
def test_arrays_come_back_as_they_were(array):
    unpacked = unpack_statistics("k", pack_statistics("k", array))
    assert (unpacked.dtype, unpacked.shape, unpacked.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize(
    ("first", "then"),
    [("BLEU", "BLEU:lowercase=1"), ("BLEU", "chrF"), ("chrF", "chrF++"), ("chrF", "chrF:beta=1"), ("WER", "CER")],
)  # fmt: skip
def test_another_option_finds_nothing(texts, tmp_path, first, then):
    extract_statistics([(texts, [find_metric(first)])], StatisticsSource(FolderCache(tmp_path)))
    assert extract_statistics([(texts, [find_metric(then)])], StatisticsSource(FolderCache(tmp_path)))[0].n_kept == 0


@pytest.mark.parametrize("package", ["python", "sacrebleu", "regex", "mecab-ko"])
def test_another_version_of_a_library_finds_nothing(texts, tmp_path, monkeypatch, package):
    source = StatisticsSource(FolderCache(tmp_path))
    extract_statistics([(texts, [find_metric("BLEU")])], source)
    installed = extraction.get_version
    monkeypatch.setattr(extraction, "get_version", lambda p: "9.9" if p == package else installed(p))
    assert extract_statistics([(texts, [find_metric("BLEU")])], source)[0].n_kept == 0


def test_what_two_test_sets_and_two_systems_share_is_made_once(texts):
    reports, (first, *rest) = [], texts.outputs.systems
    twice = replace(texts, outputs=replace(texts.outputs, systems=(first, *rest[:2], first)))
    metric = build_metric()
    results = extract_statistics([(texts, [metric]), (twice, [metric])], StatisticsSource(tell=reports.append))
    assert [result.counts.extracted[metric.extraction.key].shape for result in results] == [(40, 4, 2)] * 2
    assert reports[0].total == 4 * 40


def test_of_a_changed_system_the_blocks_that_changed_are_made(texts, tmp_path):
    metric, reports = build_metric(block=7), []
    extract_statistics([(texts, [metric])], StatisticsSource(FolderCache(tmp_path)))
    assert len([*tmp_path.glob("extracted/*/*")]) == 4 * 6
    outputs = [column.copy() for column in texts.outputs.systems]
    outputs[1][[8, 39]] = "other"
    changed = replace(texts, outputs=replace(texts.outputs, systems=tuple(outputs)))
    [result] = extract_statistics([(changed, [metric])], StatisticsSource(FolderCache(tmp_path), tell=reports.append))
    assert (result.made, result.n_kept, reports[0].total) == ({"lengths": ("s1",)}, 3, 7 + 5)
    expected = lengths([column.tolist() for column in outputs], texts.outputs.gold.tolist())
    assert np.array_equal(result.counts.extracted[metric.extraction.key], np.stack(expected, axis=1))


def test_data_that_a_metric_does_not_suit_are_left_to_its_own_words(tmp_path):
    labels = Counts.from_labels(["A"], {"x": ["A"], "y": ["B"]})
    [result] = extract_statistics(
        [(labels, [find_metric("BLEU"), find_metric("accuracy")])], StatisticsSource(FolderCache(tmp_path))
    )
    assert (result.counts.extracted, result.made) == ({}, {})
    with pytest.raises(InputError, match="needs texts and references"):
        find_metric("BLEU").bind(result.counts)


def test_items_in_another_order_take_their_statistics_along(texts):
    with_ids = replace(texts, ids=tuple(f"i{k:02}" for k in range(40)))
    [result] = extract_statistics([(with_ids, [find_metric("BLEU")])])
    backwards = tuple(reversed(with_ids.ids))
    assert are_equal(
        extract_fields(find_metric("BLEU"), result.counts.in_order(backwards)),
        extract_fields(find_metric("BLEU"), with_ids.in_order(backwards)),
    )


def test_replicates_are_extracted_each(texts, tmp_path):
    second = build_texts(40, 4, seed=5)
    second = replace(second, outputs=replace(second.outputs, gold=texts.outputs.gold))
    replicates = Counts.of_replicates([texts, second])
    [result] = extract_statistics([(replicates, [find_metric("BLEU")])], StatisticsSource(FolderCache(tmp_path)))
    assert result.made == {"BLEU": ("s0", "s1", "s2", "s3")}
    assert len([*tmp_path.glob("extracted/*/*")]) == 8
    for replicate, original in zip(result.counts.replicates, replicates.replicates, strict=True):
        assert are_equal(extract_fields(find_metric("BLEU"), replicate), extract_fields(find_metric("BLEU"), original))


KILLED = """
import os, signal, sys
from pathlib import Path
from counters import build_texts
from sigdask.metrics import find_metric
from sigdask.metrics import extraction
from sigdask.metrics.extraction import StatisticsSource, extract_statistics
from sigdask.metrics.extraction import FolderCache
from sigdask.metrics.extraction import ProcessExtraction

extraction.PART_SECONDS, extraction.PUT_SECONDS = 1e-5, 0.0

class Dying(FolderCache):
    def put(self, entries):
        super().put(entries)
        if len(list(self.path.glob("*/*"))) >= 2:
            os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    extract_statistics([(build_texts(40, 4), [find_metric("chrF")])], StatisticsSource(Dying(Path(sys.argv[1])), ProcessExtraction(2)))
"""


@pytest.mark.slow
def test_after_a_kill_in_the_middle_only_the_rest_is_made(texts, tmp_path):
    path = os.pathsep.join(filter(None, sys.path))
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    [result] = extract_statistics([(texts, [find_metric("chrF")])], StatisticsSource(FolderCache(tmp_path)))
    assert 2 <= result.n_kept < 4
    assert len(result.made["chrF"]) == 4 - result.n_kept
    assert are_equal(extract_fields(find_metric("chrF"), result.counts), extract_fields(find_metric("chrF"), texts))


def test_what_is_finished_is_kept_when_another_part_fails(tmp_path, monkeypatch):
    counts = build_texts(90, 3)
    outputs = list(counts.outputs.systems)
    outputs[2] = outputs[2].copy()
    outputs[2][60] = "poison"
    counts = replace(counts, outputs=replace(counts.outputs, systems=tuple(outputs)))
    monkeypatch.setattr(extraction, "PART_SECONDS", 1e-9)
    monkeypatch.setattr(extraction, "PROBED", (5,))  # the probe does not meet it
    for run in (LocalExtraction(), ProcessExtraction(1)):
        with pytest.raises(InputError, match="'poison' is refused"):
            extract_statistics(
                [(counts, [build_metric(refuses="poison")])], StatisticsSource(FolderCache(tmp_path), run)
            )
    assert len([*tmp_path.glob("extracted/*/*")]) == 2


@pytest.mark.slow
def test_a_part_that_ends_its_process_is_an_error(monkeypatch):
    monkeypatch.setattr(extraction, "PROBED", (1,))
    monkeypatch.setattr(extraction, "PART_SECONDS", 1e6)
    with pytest.raises(UnfinishedError, match="was ended while it scored segments"):
        extract_statistics(
            [(build_texts(200, 2), [build_metric(counter=deadly)])], StatisticsSource(run=ProcessExtraction(2))
        )


@pytest.mark.slow
def test_processes_need_no_guard_and_run_no_module_of_the_folder_of_a_plan(tmp_path):
    for name in ("numpy", "random", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('executed')\n")
    script = (
        "from counters import build_metric, build_texts\nfrom sigdask.io.addresses import add_folder\nadd_folder('.')\n"
        "from sigdask.metrics.extraction import StatisticsSource, extract_statistics\n"
        "from sigdask.metrics.extraction import ProcessExtraction\n"
        "print(len(extract_statistics([(build_texts(90, 2), [build_metric()])], StatisticsSource(run=ProcessExtraction(2)))))\n"
    )
    options = {"env": {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}, "cwd": tmp_path}
    for words, said in ((["-P", "-c", script], "1\n"), (["-m", "sigdask", "--version"], "sigdask")):
        process = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, **options)
        assert (process.stdout.startswith(said), process.stderr) == (True, "")


@pytest.mark.parametrize(
    ("one", "other"),
    [(["ab", "c"], ["a", "bc"]), (["", None], [None, ""]), ([("a", "b"), ()], [("a",), ("b",)]), ([{"a": 1}], [{"a": 2}]),
     ([("ab",)], [("a", "b")]), ([{"a": 1, "b": 2}], [{"a": 1}]), (["a"], ["a", ""]), (["ä"], ["a\u0308"])],
)  # fmt: skip
def test_what_differs_has_another_digest(one, other):
    assert hash_items(to_object_array(one)) != hash_items(to_object_array(other))
    assert hash_items(to_object_array(one)) == hash_items(to_object_array(list(one)))


@pytest.mark.parametrize("strange", [[b"ab", b"c"], ["a", "\ud800"], [{"a"}, {"b"}]])
def test_what_else_a_reader_of_ones_own_gives_is_counted_as_before(strange, tmp_path):
    assert hash_items(to_object_array(strange)) is None
    counts = build_texts(2, 2)
    counts = replace(counts, outputs=replace(counts.outputs, gold=to_object_array(strange)))
    [result] = extract_statistics([(counts, [build_metric()])], StatisticsSource(FolderCache(tmp_path)))
    assert (result.made, result.n_kept) == ({}, 0)


def test_progress_is_told_from_the_start_and_to_the_end(monkeypatch):
    monkeypatch.setattr(extraction, "PART_SECONDS", 1e-5)
    reports: list[ExtractionProgress] = []
    extract_statistics(
        [(build_texts(90, 3), [build_metric("first", block=9), build_metric("second", block=9, times=2)])],
        StatisticsSource(tell=reports.append),
    )
    assert (reports[0].what, reports[0].done, reports[0].total, reports[-1].done) == ("first, second", 0, 540, 540)
    assert [report.done for report in reports] == sorted(report.done for report in reports)
    assert len(reports) > 10
