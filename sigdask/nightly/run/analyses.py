"""The other analyses of a plan's run: candidate rankings, tests of independence, and details of comparisons.

Rankings and tests of independence are read, watched while they are counted, and evaluated. Details are made for the
comparisons that the page opens: gated and doubtful ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sigdask.analysis.candidate_rankings.evaluation import MeasureRankings
from sigdask.analysis.comparison.pairs import RUN_KINDS, CountedCells, join_cells
from sigdask.analysis.details import ComparisonDetails, compute_details, find_pair_rows, select_rows
from sigdask.analysis.independence import IndependenceTests
from sigdask.errors import InputError
from sigdask.execution.clusters import ClusterLike
from sigdask.execution.run import count_jobs
from sigdask.interface import spell
from sigdask.metrics.extraction import StatisticsSource
from sigdask.metrics.extraction.cache import get_user_cache
from sigdask.nightly.gate.rules import ComparisonKey, GateVerdict
from sigdask.nightly.plan import Plan
from sigdask.nightly.plan.model import RankedCandidates, TestedLabels
from sigdask.nightly.report.gate import list_findings
from sigdask.nightly.report.page import list_keys
from sigdask.nightly.run.ledger import Ledger
from sigdask.nightly.run.progress import ProgressWatch
from sigdask.nightly.run.work import Batch, build_provenance, read_batches
from sigdask.nightly.store.status import PlanReport
from sigdask.randomization.slabs import Job
from sigdask.report.analyses import Evaluation, Independences
from sigdask.report.presentable import convert_results
from sigdask.report.summary import headline
from sigdask.report.summary.standings import Standings
from sigdask.results.table import Table


@dataclass(frozen=True, eq=False)
class PlanRankings:
    """One candidate list of a plan, as read from its file.

    Attributes
    ----------
    entry : RankedCandidates
        The table [[rankings]] of the plan.
    lists : MeasureRankings
        The candidates as each measure ranks them.
    """

    entry: RankedCandidates
    lists: MeasureRankings

    @staticmethod
    def from_entry(entry: RankedCandidates) -> PlanRankings:
        """Read the candidates of a table [[rankings]] of a plan, and prepare their rankings."""
        return PlanRankings(entry, MeasureRankings(entry.read(), entry.spec))

    @property
    def jobs(self) -> list[Job]:
        """Jobs whose tallies the store keeps: trials that swap ranks between measures."""
        return self.lists.swap_jobs

    def build_watch(self, ledger: Ledger) -> ProgressWatch:
        """Return the ledger positions from which the progress of this candidate list is computed."""
        sizes = [job.panel.shape[0] for job in self.jobs]
        lists = zip(self.jobs, sizes, strict=True)
        cells = join_cells(([CountedCells.from_whole(job, np.arange(n), "first run")] for job, n in lists), sizes)
        return ProgressWatch.from_cells(ledger, self.entry.name, sum(sizes), [*cells])

    def evaluate(self, ledger: Ledger, cluster: ClusterLike, workers: int | None) -> Evaluation:
        """Return the evaluation from the counted trials. Its random samples are not stored but drawn anew."""
        jobs = self.lists.sample_jobs
        samples = count_jobs(jobs, cluster=cluster, workers=workers) if jobs else []
        return convert_results(
            self.lists.build_evaluation([*(ledger.build_tally(job) for job in self.jobs), *samples]), Evaluation
        )


@dataclass(frozen=True, eq=False)
class PlanIndependence:
    """One test of independence of a plan, as read from its files.

    Attributes
    ----------
    entry : TestedLabels
        The table [[rankings]] of the plan.
    tests : IndependenceTests
        The labellings under each metric, with their exact p if it is available.
    """

    entry: TestedLabels
    tests: IndependenceTests

    @staticmethod
    def from_entry(entry: TestedLabels) -> PlanIndependence:
        """Read the files."""
        return PlanIndependence(
            entry,
            IndependenceTests.from_counts(entry.read(), entry.metrics, entry.reference, entry.within, entry.settings),
        )

    @property
    def jobs(self) -> list[Job]:
        """Jobs whose tallies are stored: random permutations of labels, for tests without an exact p."""
        return self.tests.jobs

    def build_watch(self, ledger: Ledger) -> ProgressWatch:
        """Return the ledger positions from which the progress of the tests is computed."""
        n = len(self.tests.scores) * len(self.tests.metrics)
        rows, columns = np.divmod(np.arange(n), len(self.tests.metrics))
        cells = [CountedCells(RUN_KINDS[job.run], job, np.arange(n), rows, columns) for job in self.jobs]
        return ProgressWatch.from_cells(ledger, self.entry.name, n, cells)

    def evaluate(self, ledger: Ledger, _cluster: ClusterLike, _workers: int | None) -> Independences:
        """Return the results from the counted trials."""
        return convert_results(self.tests.build_results([ledger.build_tally(job) for job in self.jobs]), Independences)


def open_recorded(
    plan: Plan, report: PlanReport, open_pairs: Sequence[tuple[str, str]]
) -> tuple[ComparisonDetails, ...]:
    """Return the details of comparisons of a recorded run, as `open_details` does, from the plan's data read again.

    Raises
    ------
    InputError
        The data or settings differ from those of the run, or no test set compares the systems of a pair.
    """
    find_pair_rows(report.table, open_pairs)
    batches, _ = read_batches(plan, StatisticsSource(get_user_cache()), (), {})
    now = build_provenance(plan, {name: files for batch in batches for name, files in batch.files}, {})
    inputs, settings = (report.run.details.get(kind, {}) for kind in ("inputs", "settings"))
    changed = [
        *(f"the files of {n}" for n, own in now["inputs"].items() if [*own.values()] != [*inputs.get(n, {}).values()]),
        *(f"the plan's {n}" for n, value in now["settings"].items() if value != settings.get(n, value)),
    ]
    if changed:
        raise InputError(
            f"{changed[0]} changed after run {report.run.number}",
            option=spell("open_pairs"),
            remedy="run the plan again",
        )
    verdict = report.run.details.get("verdict") or {"rules": ()}
    findings = [finding for rule in verdict["rules"] for finding in list_findings(rule)]
    gated = [tuple(finding["key"]) for finding in sorted(findings, key=lambda finding: finding["passed"])]
    return open_details(batches, report, gated, open_pairs)


def list_gated_comparisons(gate: GateVerdict | None) -> list[ComparisonKey]:
    """Return the comparisons that the rules of a gate judge, failures first."""
    findings = [] if gate is None else [finding for rule in gate.rules for finding in rule.findings]
    return [finding.key for finding in sorted(findings, key=lambda finding: finding.passed)]


def open_details(
    batches: Sequence[Batch],
    report: PlanReport,
    gated: Sequence[ComparisonKey] = (),
    open_pairs: Sequence[tuple[str, str]] = (),
) -> tuple[ComparisonDetails, ...]:
    """Return the details of chosen, gated, leading and doubtful comparisons, with their rows among all results."""
    nonempty = [results for results in report.results.values() if len(results)]
    if not nonempty:
        return ()
    table = Table.join([results.table for results in nonempty])
    offsets = np.cumsum([0, *map(len, nonempty)])
    doubtful = [row + start for results, start in zip(nonempty, offsets.tolist(), strict=False)
             for row in headline.build_verdict(results).doubtful.tolist()]  # fmt: skip
    leading = Standings.from_table(table).list_leading_rows()
    chosen = find_pair_rows(table, open_pairs)
    rows = select_rows(len(table), doubtful, _iter_rows(table, gated), leading, chosen)
    studies = [study for batch in batches for study in batch.studies]
    details_by_row = {detail.row: detail for study in studies for detail in compute_details(study, table, rows)}
    return tuple(details_by_row[row] for row in rows.tolist() if row in details_by_row)


def _iter_rows(table: Table, keys: Sequence[ComparisonKey]) -> Iterator[int]:
    """Yield the rows of some comparisons, in their order."""
    rows_by_key = {key: row for row, key in enumerate(list_keys(table))}
    yield from (rows_by_key[key] for key in dict.fromkeys(keys) if key in rows_by_key)
