"""Preparation of a plan's work: read its test sets, and list the jobs to count.

The record of a run also gets its provenance: versions, settings, and a digest of each file.
"""

from __future__ import annotations

import hashlib
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.analysis.comparison.pairs import CompareSpec, CountedCells, join_cells, list_left_out, list_pairs
from sigdask.analysis.comparison.study import Study
from sigdask.analysis.details import ComparisonDetails, compute_details, select_rows
from sigdask.counts import Counts
from sigdask.errors import InputError, SeveralError
from sigdask.io import addresses
from sigdask.metrics import is_address
from sigdask.metrics.extraction import StatisticsSource, extract_statistics
from sigdask.nightly.gate.rules import ComparisonKey, GateVerdict
from sigdask.nightly.plan import Plan, TestSet
from sigdask.nightly.report.text import list_keys
from sigdask.nightly.store import Store
from sigdask.nightly.store.results import fetch_results
from sigdask.nightly.store.runs import find_previous_run
from sigdask.nightly.store.status import PlanReport
from sigdask.nightly.test_sets import build_spec, build_study, prepare_set
from sigdask.randomization.slabs import Job
from sigdask.report.page.frame import get_versions, hash_paths
from sigdask.report.sentences import build_verdict
from sigdask.report.standings import Standings
from sigdask.results.table import Table
from sigdask.statistics.numbering import group_rows


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Test sets whose results are in one table, in studies with the same layout.

    Attributes
    ----------
    counts : dict of str to Counts
        The data of the test sets, by name.
    studies : list of Study
        The studies.
    cells : list of CountedCells
        All counts of the results.
    """

    counts: dict[str, Counts]
    studies: list[Study]
    cells: list[CountedCells]

    @property
    def jobs(self) -> list[Job]:
        """Jobs of all studies."""
        return [*dict.fromkeys(part.job for part in self.cells)]

    @property
    def files(self) -> list[tuple[str, tuple[Path, ...]]]:
        """Paths that each test set was read from, by its name."""
        analyses = [analysis for study in self.studies for analysis in study.analyses]
        return [(name, entry.main.counts.files) for name, entry in zip(self.counts, analyses, strict=True)]

    @staticmethod
    def from_prepared(prepared: Mapping[str, tuple[Counts, Study]]) -> Batch:
        """Build a batch of the counts and the study of each test set, by name."""
        studies = [study for _, study in prepared.values()]
        cells = [*join_cells((study.cells for study in studies), (study.n_results for study in studies))]
        return Batch({name: counts for name, (counts, _) in prepared.items()}, studies, cells)

    def __len__(self) -> int:
        return sum(study.n_results for study in self.studies)


def read_batches(
    plan: Plan, test_sets: Sequence[TestSet], source: StatisticsSource
) -> tuple[list[Batch], dict[str, Any]]:
    """Read test sets of a plan; return them in batches, and what was extracted.

    Parameters
    ----------
    plan : Plan
        The plan.
    test_sets : sequence of TestSet
        Those to read.
    source : StatisticsSource
        Source of statistics extracted from outputs.

    Returns
    -------
    (list of Batch, dict)
        The batches, and for the run's record the extracted statistics by test set.
    """
    addresses.add_folder(plan.path.parent)
    prepared: dict[str, Any] = {}
    for t in test_sets:
        with _naming(t):
            prepared[t.name] = prepare_set(plan.comparison, t)
    incomplete = [test_set for test_set in test_sets if prepared[test_set.name][1] is None]
    wanted = [(prepared[t.name][0], t) for t in incomplete]
    extractions = extract_statistics([(c, build_spec(t, c, ()).find_metrics(c)) for c, t in wanted], source)
    for t, extraction in zip(incomplete, extractions, strict=True):
        with _naming(t):
            prepared[t.name] = extraction.counts, build_study(plan.comparison, t, extraction.counts)
    return [*_iter_batches(prepared)], {
        t.name: {"made": {m: list(systems) for m, systems in extraction.made.items()}, "kept": extraction.n_kept}
        for t, extraction in zip(incomplete, extractions, strict=True)
        if extraction.made or extraction.n_kept
    }


@contextmanager
def _naming(test_set: TestSet) -> Iterator[None]:
    """Let errors name the test set."""
    try:
        yield
    except InputError as error:
        raise SeveralError(*f"test set {test_set.name!r}: {error}".splitlines()) from error


MAX_RESULTS = 10_000
"""Number of results after which another batch begins."""


def _iter_batches(prepared: Mapping[str, tuple[Counts, Study]]) -> Iterator[Batch]:
    """Yield batches of consecutive test sets whose studies have the same layout."""
    for _, group in groupby(prepared.items(), lambda entry: entry[1][1].layout):
        alike = [*group]
        n_before = np.cumsum([0, *(study.n_results for _, (_, study) in alike)])[:-1]
        for rows in filter(len, group_rows(n_before // MAX_RESULTS)):
            yield Batch.from_prepared(dict(alike[k] for k in rows.tolist()))


SETTLED_NS = 2 * 10**9
"""Age of a file in nanoseconds from which its times reveal each change. File systems round them to at most 2 seconds.
"""


def digest_inputs(plan: Plan) -> dict[str, str]:
    """Return a digest of all inputs of each test set's results, without the test sets of which it is unknown.

    It covers versions, settings, and the size, inode, time of change and time of modification of each file.
    Unknown are folders, URLs, the user's own metrics, and files that changed just now.
    """
    now, shared = time.time_ns(), repr((_get_versions(), plan.comparison))
    digests = {test_set.name: _digest_test_set(test_set, shared, now) for test_set in plan.test_sets}
    return {name: digest for name, digest in digests.items() if digest}


def _digest_test_set(test_set: TestSet, shared: str, now: int) -> str:
    if ":" in test_set.format.partition("=")[0] or any(map(is_address, test_set.metrics)):
        return ""  # options of a format may name files, and metrics code of the user's own
    texts = [shared, repr(test_set)]
    for path in test_set.list_files():
        try:
            state = path.stat()
        except OSError:
            return ""
        if not stat.S_ISREG(state.st_mode) or max(state.st_mtime_ns, state.st_ctime_ns) > now - SETTLED_NS:
            return ""
        texts.append(f"{path!r} {state.st_size} {state.st_ino} {state.st_mtime_ns} {state.st_ctime_ns}")
    return hashlib.sha256("\n".join(texts).encode(errors="surrogateescape")).hexdigest()[:32]


@cache
def _get_versions() -> dict[str, str]:
    """Return the versions of relevant packages, cached because parsing their metadata takes milliseconds."""
    return get_versions("dask", "distributed")


@dataclass(frozen=True, slots=True, eq=False)
class KeptSets:
    """Test sets that need not be read, because the latest run has the results of the same inputs.

    Attributes
    ----------
    table : Table
        Their results, as stored.
    inputs, frames : dict of str to dict
        What the run's record says of each, by name.
    """

    table: Table
    inputs: dict[str, Any]
    frames: dict[str, Any]


def find_kept_sets(plan: Plan, store: Store, states: Mapping[str, str]) -> KeptSets:
    """Return the test sets whose digests the plan's latest run had, if it counted all trials.

    A gate and a table of units need the data of all test sets, so they keep none.
    """
    run = store.read(find_previous_run, store.run)
    if run is None or run.state != "finished" or plan.gate is not None or "items" in plan.report.files:
        states = {}
    details = {} if run is None else run.details
    before, inputs, frames = (details.get(key, {}) for key in ("states", "inputs", "frames"))
    names = {name for name, state in states.items() if before.get(name) == state and name in frames}  # judged, too
    if run is None or not names:
        return KeptSets(Table.build_empty(plan.comparison["alpha"]), {}, {})
    table = store.read(fetch_results, plan.name, run.number, plan.comparison["alpha"])
    table = table.take(np.flatnonzero(table.test_set.find(names.__contains__)))
    names &= {*table.test_set.levels}  # a store without the results of some makes them again
    return KeptSets(table, *({name: part[name] for name in names} for part in (inputs, frames)))


def iter_missing(counts: Counts, spec: CompareSpec) -> Iterator[ComparisonKey]:
    """Yield the requested comparisons that cannot be made because the systems have no item in common."""
    pairs = list_pairs(counts, spec.pairs, spec.baseline)
    for subset, a, b, metric in list_left_out(counts, pairs, spec.find_metrics(counts), spec.by):
        yield counts.name, subset, a, b, metric


def build_provenance(plan: Plan) -> dict[str, Any]:
    """Return the versions and settings of a run."""
    settings: dict[str, Any] = {name: plan.comparison[name] for name in ("seed", "alpha", "adjust", "second_run")}
    settings["trials"] = {t.name: t.comparison["trials"] for t in plan.test_sets}
    return {"versions": _get_versions(), "settings": settings}


def hash_inputs(plan: Plan, batches: Sequence[Batch], kept_inputs: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the digest of each file of each test set; `kept_inputs` are those of test sets that were not read."""
    read_paths = {name: files for batch in batches for name, files in batch.files}
    return {
        t.name: kept_inputs.get(t.name) or hash_paths(t.list_files(read_paths.get(t.name, ()))) for t in plan.test_sets
    }


def open_details(
    plan: Plan, batches: Sequence[Batch], report: PlanReport, gate: GateVerdict | None
) -> tuple[ComparisonDetails, ...]:
    """Return the details of gated, leading and doubtful comparisons, with their rows among all results.

    Test sets that were kept and have such comparisons are read now.
    """
    findings = [] if gate is None else [finding for rule in gate.rules for finding in rule.findings]
    gated = [finding.key for finding in sorted(findings, key=lambda finding: finding.passed)]  # failures first
    nonempty = [results for results in report.results.values() if len(results)]
    if not nonempty:
        return ()
    table = Table.join([results.table for results in nonempty])
    offsets = np.cumsum([0, *map(len, nonempty)])
    doubtful = [row + start for results, start in zip(nonempty, offsets.tolist(), strict=False)
             for row in build_verdict(results).doubtful.tolist()]  # fmt: skip
    leading = Standings(table).list_leading_rows()
    rows_by_key = {key: row for row, key in enumerate(list_keys(table))}
    gated_rows = (rows_by_key[key] for key in dict.fromkeys(gated) if key in rows_by_key)
    rows = select_rows(len(table), doubtful, gated_rows, leading)
    studies = {name: study for batch in batches for name, study in zip(batch.counts, batch.studies, strict=True)}
    names, sets = table.test_set.tolist(), {test_set.name: test_set for test_set in plan.test_sets}
    details_by_row: dict[int, ComparisonDetails] = {}
    for name in dict.fromkeys(names[row] for row in rows.tolist()):
        study = studies.get(name) or prepare_set(plan.comparison, sets[name])[1]
        assert study is not None  # only test sets without extracted metrics are kept
        own_rows = np.array([row for row in rows.tolist() if names[row] == name])
        details_by_row |= {detail.row: detail for detail in compute_details(study, table, own_rows)}
    return tuple(details_by_row[row] for row in rows.tolist() if row in details_by_row)
