"""The keys of a plan file: declarations that validate, document and hold the defaults.

Pydantic reads these declarations; what is made of them is in `sigdask.nightly.plan.model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, StrictBool, StrictInt, StrictStr, Tag

from sigdask.nightly.gate import Fdr
from sigdask.nightly.plan.model import Family
from sigdask.options import (
    CANDIDATE_OPTIONS,
    OPTIONS,
    PERMUTATION_OPTIONS,
    PRINT_OPTIONS,
    RANKING_OPTIONS,
    READING_OPTIONS,
    Adjust,
    AdjustTests,
    Align,
    Alternative,
    Decimal,
    IntervalKind,
    Layout,
    Method,
    Missing,
    Option,
    Ties,
)

CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)
LARGEST_SEED = 2**63 - 1

Text = Annotated[StrictStr, Field(min_length=1, max_length=4096, pattern=r"\S")]
Seconds = Annotated[float, Field(strict=True)]
Share = Annotated[float, Field(strict=True, gt=0, lt=1)]
Names = Annotated[tuple[Text, ...], Field(min_length=1)]
Pair = tuple[Text, Text]


def _find_shape(value: Any) -> str | None:
    """Return whether a plan's value is a text, a list or a table, which decides by which type it is validated."""
    for shape, kinds in (("text", str), ("list", (list, tuple)), ("table", Mapping)):
        if isinstance(value, kinds):
            return shape
    return None


SHAPE = Discriminator(_find_shape)
TextShape = Annotated[Text, Tag("text")]

TextOrTexts = Annotated[TextShape | Annotated[Names, Tag("list")], SHAPE]
Systems = Annotated[
    TextShape | Annotated[Names, Tag("list")]
    | Annotated[Annotated[dict[Text, TextOrTexts], Field(min_length=1)], Tag("table")],
    SHAPE,
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class BaselineKeys:
    """Pairs of every other system with one."""

    __pydantic_config__ = CLOSED

    baseline: Annotated[Text, Field(description="Compare every other system with this one, which becomes B.")]


Pairs = Annotated[
    Annotated[Literal["all"], Tag("text")]
    | Annotated[Annotated[tuple[Pair, ...], Field(min_length=1)], Tag("list")]
    | Annotated[BaselineKeys, Tag("table")],
    SHAPE,
]

_PAIRS = '"all", { baseline = NAME }, or a list of [A, B].'
DECLARED = {**OPTIONS, **READING_OPTIONS, **PRINT_OPTIONS}
DEFAULT: dict[str, Any] = {name: said.default for name, said in DECLARED.items()}


def declare_field(name: str, note: str = "", declared: Mapping[str, Option] = DECLARED) -> Any:
    """Return the help and the bounds of an option as a pydantic field."""
    option = declared[name]
    default = f" By default {option.otherwise}." if option.otherwise else ""
    text = f"{option.help}{default}{f' {note}' if note else ''}"
    return Field(description=text, ge=option.least, le=option.most, gt=option.above, lt=option.below)


@dataclass(frozen=True, slots=True)
class TestSetKeys:
    """One test set."""

    __pydantic_config__ = CLOSED

    name: Annotated[Text, Field(description="Unique; part of the address of its shuffles.")]
    systems: Annotated[
        Systems,
        Field(
            description="A table NAME = PATH, a list of paths, or a path with wildcards or {system} for the name; "
            "several files under one name are replicates, logs of samples that a pattern or folder holds are not."
        ),
    ]
    gold: Annotated[Text | None, Field(description="File of what is right.")] = None
    format: Annotated[Text, Field(description="As `sigdask formats` lists them, own options after the name.")] = "auto"
    unit: Annotated[Text, Field(description="What is exchanged as a whole: item or a column.")] = "item"
    by: Annotated[Text | None, declare_field("by")] = None
    missing: Annotated[Missing, declare_field("missing")] = "error"
    min_items: Annotated[StrictInt | None, declare_field("min_items")] = None
    id: Annotated[Text | None, declare_field("id_column")] = None
    gold_column: Annotated[Text | None, declare_field("gold_column")] = None
    prediction_column: Annotated[Text | None, declare_field("prediction_column")] = None
    system_column: Annotated[Text | None, declare_field("system_column")] = None
    score_column: Annotated[Text | None, declare_field("score_column")] = None
    ignore: Annotated[Names | None, declare_field("ignore")] = None
    map: Annotated[dict[Text, Names] | None, declare_field("label_map", "TARGET = [LABEL, LABEL].")] = None
    align: Annotated[Align, declare_field("align")] = DEFAULT["align"]
    decimal: Annotated[Decimal | None, declare_field("decimal")] = None
    references: Annotated[TextOrTexts | None, declare_field("references")] = None
    documents: Annotated[Text | None, declare_field("documents")] = None
    groups: Annotated[Text | None, declare_field("group_file")] = None
    most_unpacked: Annotated[StrictInt | None, declare_field("most_unpacked")] = None
    metrics: Annotated[Names | None, declare_field("metrics")] = None
    pairs: Annotated[Pairs | None, declare_field("pairs", _PAIRS)] = None
    alternative: Annotated[Alternative | None, declare_field("alternative")] = None
    method: Annotated[Method | None, declare_field("method")] = None
    exact_limit: Annotated[Seconds | None, declare_field("exact_limit")] = None
    trials: Annotated[StrictInt | None, declare_field("trials")] = None
    tests: Annotated[TextOrTexts | None, declare_field("tests")] = None
    interval: Annotated[IntervalKind | None, declare_field("interval", "In plans by default none.")] = None
    confidence: Annotated[Share | None, declare_field("confidence")] = None
    resamples: Annotated[StrictInt | None, declare_field("resamples")] = None


Cutoffs = Annotated[TextShape | Annotated[Annotated[tuple[StrictInt, ...], Field(min_length=1)], Tag("list")], SHAPE]


def declare_ranking_field(name: str, note: str = "") -> Any:
    """Return the help and the bounds of an option for rankings as a pydantic field."""
    return declare_field(name, note, {**RANKING_OPTIONS, **CANDIDATE_OPTIONS})


@dataclass(frozen=True, slots=True)
class RankingsKeys:
    """Candidates that measures of association rank."""

    __pydantic_config__ = CLOSED

    name: Annotated[Text, Field(description="Unique, also among test sets; part of the address of what is drawn.")]
    candidates: Annotated[Text, Field(description="Table of candidates, data set of UCS, or XML of mwetoolkit.")]
    gold_column: Annotated[Text | None, declare_ranking_field("gold_column")] = None
    positive: Annotated[Names | None, declare_ranking_field("positive")] = None
    id: Annotated[TextOrTexts | None, declare_ranking_field("ids")] = None
    measures: Annotated[Names | None, declare_ranking_field("measures")] = None
    smaller: Annotated[Names | None, declare_ranking_field("smaller")] = None
    ignore: Annotated[Names | None, declare_ranking_field("ignore")] = None
    partial: Annotated[StrictBool, declare_ranking_field("partial")] = False
    decimal: Annotated[Decimal | None, declare_ranking_field("decimal")] = None
    most_unpacked: Annotated[StrictInt | None, declare_ranking_field("most_unpacked")] = None
    n: Annotated[Cutoffs | None, declare_ranking_field("n")] = None
    pairs: Annotated[Pairs, declare_ranking_field("pairs", _PAIRS)] = "all"
    ties: Annotated[Ties, declare_ranking_field("ties")] = "expected"
    trials: Annotated[StrictInt | None, declare_ranking_field("trials")] = None
    confidence: Annotated[Share, declare_ranking_field("confidence")] = 0.95
    samples: Annotated[StrictInt | None, declare_ranking_field("samples")] = None
    sample_size: Annotated[StrictInt | None, declare_ranking_field("sample_size")] = None


def declare_independence_field(name: str) -> Any:
    """Return the help and the bounds of an option for tests of independence as a pydantic field."""
    return declare_field(name, "", PERMUTATION_OPTIONS)


@dataclass(frozen=True, slots=True)
class IndependenceKeys:
    """Labellings that are tested for independence of another."""

    __pydantic_config__ = CLOSED

    name: Annotated[Text, Field(description="Unique, also among test sets; part of the address of its permutations.")]
    labels: Annotated[Systems, Field(description="Files of labels, a labelling each, as `systems` of a test set.")]
    gold: Annotated[Text | None, Field(description="What all are held against; None is a column gold.")] = None
    format: Annotated[Text, Field(description="As `sigdask formats` lists them, own options after the name.")] = (
        "labels"
    )
    id: Annotated[Text | None, declare_field("id_column")] = None
    gold_column: Annotated[Text | None, declare_field("gold_column")] = None
    prediction_column: Annotated[Text | None, declare_field("prediction_column")] = None
    ignore: Annotated[Names | None, declare_field("ignore")] = None
    map: Annotated[dict[Text, Names] | None, declare_field("label_map", "TARGET = [LABEL, LABEL].")] = None
    align: Annotated[Align, declare_field("align")] = DEFAULT["align"]
    groups: Annotated[Text | None, declare_field("group_file")] = None
    most_unpacked: Annotated[StrictInt | None, declare_field("most_unpacked")] = None
    metrics: Annotated[Names, Field(description="Scores of labels.")] = ("accuracy",)
    within: Annotated[Text | None, Field(description="Permute labels within each value of a column alone.")] = None
    alternative: Annotated[Alternative, declare_independence_field("alternative")] = "greater"
    method: Annotated[Method, declare_independence_field("method")] = "auto"
    adjust: Annotated[AdjustTests | None, declare_independence_field("adjust")] = None
    trials: Annotated[StrictInt | None, declare_independence_field("trials")] = None


@dataclass(frozen=True, slots=True)
class BesagCliffordKeys:
    """Stop at the h-th exceedance: a valid p."""

    __pydantic_config__ = CLOSED

    rule: Literal["besag-clifford"]
    h: Annotated[StrictInt, Field(ge=1, le=2**31, description="Exceedances to wait for.")] = 10


@dataclass(frozen=True, slots=True)
class ConfidenceSequenceKeys:
    """Stop when the confidence sequence leaves alpha: a decision, no p."""

    __pydantic_config__ = CLOSED

    rule: Literal["confidence-sequence"]
    epsilon: Annotated[Share, Field(description="Resampling risk.")] = 1e-3


StoppingKeys = Annotated[BesagCliffordKeys | ConfidenceSequenceKeys, Discriminator("rule")]


@dataclass(frozen=True, slots=True)
class ReportKeys:
    """Files to write at the end; {date} and {time} stand for the start of the run."""

    __pydantic_config__ = CLOSED

    json: Annotated[Text | None, Field(description="All results as JSON.")] = None
    csv: Annotated[Text | None, Field(description="A CSV table, one row a comparison.")] = None
    parquet: Annotated[Text | None, Field(description="The same table as Parquet.")] = None
    markdown: Annotated[Text | None, Field(description="Tables for papers as Markdown, one a test set.")] = None
    latex: Annotated[Text | None, Field(description="The same as LaTeX, which needs booktabs.")] = None
    layout: Annotated[Layout | None, declare_field("layout")] = None
    digits: Annotated[int | None, declare_field("digits")] = None
    percent: Annotated[StrictBool, declare_field("percent")] = False
    text: Annotated[Text | None, Field(description="The tables of the terminal.")] = None
    html: Annotated[Text | None, Field(description="A page that needs nothing else.")] = None
    figures: Annotated[Text | None, Field(description="A folder for figures: sigdask[report].")] = None
    figure_format: Annotated[
        tuple[Literal["svg", "pdf", "png"], ...], Field(description="What figures are written as.", min_length=1)
    ] = ("svg", "pdf")


@dataclass(frozen=True, slots=True)
class NotWorseKeys:
    """No system is significantly worse than the baseline."""

    __pydantic_config__ = CLOSED

    rule: Literal["not-worse"]
    alpha: Annotated[
        Share | None,
        Field(
            description="Level of the rule in each run. By default the gate's false_alarms_per_year gives the level; "
            "with fdr it is the plan's alpha."
        ),
    ] = None
    adjust: Annotated[
        Literal["holm", "plan", "none"] | None,
        Field(description="By Holm over all its comparisons, as the plan, or not; by default as the plan if it does."),
    ] = None
    baseline: Annotated[Text | None, Field(description="By default that of each test set.")] = None
    test_sets: Annotated[Names | None, Field(description="By default all.")] = None
    metrics: Annotated[Names | None, Field(description="By default all.")] = None
    detectable: Annotated[
        Literal["normal", "simulated"],
        Field(
            description="How the smallest loss that would be detected is found: by the normal approximation, or by "
            "samples of the observed units, each judged by the test."
        ),
    ] = "normal"


@dataclass(frozen=True, slots=True)
class NonInferiorKeys:
    """Every system is shown to be worse by less than a margin, if at all."""

    __pydantic_config__ = CLOSED

    rule: Literal["non-inferior"]
    margin: Annotated[float, Field(strict=True, gt=0, description="On the metric's own scale.")]
    alpha: Annotated[Share | None, Field(description="By default the plan's.")] = None
    baseline: Annotated[Text | None, Field(description="By default that of each test set.")] = None
    test_sets: Annotated[Names | None, Field(description="By default all.")] = None
    metrics: Annotated[Names | None, Field(description="By default all.")] = None


@dataclass(frozen=True, slots=True)
class EquivalentKeys:
    """Every system is shown to differ by less than a margin, whichever is better."""

    __pydantic_config__ = CLOSED

    rule: Literal["equivalent"]
    margin: Annotated[float, Field(strict=True, gt=0, description="On the metric's own scale.")]
    alpha: Annotated[Share | None, Field(description="Of each one-sided test; by default the plan's.")] = None
    baseline: Annotated[Text | None, Field(description="By default that of each test set.")] = None
    test_sets: Annotated[Names | None, Field(description="By default all.")] = None
    metrics: Annotated[Names | None, Field(description="By default all.")] = None


RuleKeys = Annotated[NotWorseKeys | NonInferiorKeys | EquivalentKeys, Discriminator("rule")]


@dataclass(frozen=True, slots=True)
class GateKeys:
    """What must hold of the results for `sigdask run` to exit with 0."""

    __pydantic_config__ = CLOSED

    rules: Annotated[tuple[RuleKeys, ...], Field(min_length=1, description="All must hold.")]
    runs_per_year: Annotated[
        float, Field(strict=True, gt=0, le=1e6, description="For the expected number of false alarms.")
    ] = 365
    false_alarms_per_year: Annotated[
        float | None,
        Field(
            strict=True,
            gt=0,
            le=1e6,
            description="Runs a year in which not-worse rules may fail though nothing is worse, in expectation. "
            "Divided by runs_per_year it is each run's level over all comparisons of these rules, at most alpha. "
            "By default 4 for rules without an alpha of their own, unless fdr is given.",
        ),
    ] = None
    fdr: Annotated[
        Fdr,
        Field(
            description="Online false-discovery rule over the history of runs. Its level falls with every quiet run; "
            "false_alarms_per_year keeps it."
        ),
    ] = "none"
    junit: Annotated[Text | None, Field(description="JUnit XML to write, for CI.")] = None
    json: Annotated[Text | None, Field(description="JSON to write.")] = None
    command: Annotated[Names | None, Field(description="Program and arguments to run at the end, no shell.")] = None
    webhook: Annotated[
        Text | None,
        Field(
            description="http(s) URL that the gate's JSON is posted to at the end; $NAME takes it from the environment."
        ),
    ] = None
    webhook_body: Annotated[
        Text | None, Field(description="File of a Jinja template of the JSON to post instead, for chat programs.")
    ] = None
    when: Annotated[
        Literal["always", "failed", "new"],
        Field(description="Which ends are told; new: failures for other outputs than those that failed before."),
    ] = "failed"
    timeout: Annotated[
        float, Field(strict=True, gt=0, le=3600, description="Seconds to wait for command or webhook.")
    ] = 30


Cluster = Annotated[TextShape | Annotated[dict[StrictStr, Any], Tag("table")], SHAPE]


@dataclass(frozen=True, slots=True)
class PlanKeys:
    """A sigdask plan: what a night evaluates."""

    __pydantic_config__ = CLOSED

    test_set: Annotated[tuple[TestSetKeys, ...], Field(min_length=1, description="The test sets.")] = ()
    rankings: Annotated[tuple[RankingsKeys, ...], Field(description="Lists of candidates that measures rank.")] = ()
    independence: Annotated[
        tuple[IndependenceKeys, ...], Field(description="Labellings that are tested for independence of another.")
    ] = ()
    name: Annotated[Text | None, Field(description="By default the file's name.")] = None
    metrics: Annotated[Names | None, declare_field("metrics")] = None
    pairs: Annotated[Pairs, declare_field("pairs", _PAIRS)] = "all"
    alternative: Annotated[Alternative, declare_field("alternative")] = DEFAULT["alternative"]
    method: Annotated[Method, declare_field("method")] = DEFAULT["method"]
    exact_limit: Annotated[Seconds | None, declare_field("exact_limit")] = None
    trials: Annotated[StrictInt | None, declare_field("trials")] = None
    tests: Annotated[TextOrTexts | None, declare_field("tests")] = None
    interval: Annotated[IntervalKind, declare_field("interval", "In plans by default none.")] = "none"
    confidence: Annotated[Share, declare_field("confidence")] = DEFAULT["confidence"]
    resamples: Annotated[StrictInt | None, declare_field("resamples")] = None
    seed: Annotated[StrictInt, declare_field("seed"), Field(le=LARGEST_SEED)] = DEFAULT["seed"]
    alpha: Annotated[Share, declare_field("alpha")] = DEFAULT["alpha"]
    second_run: Annotated[StrictBool, declare_field("second_run")] = DEFAULT["second_run"]
    adjust: Annotated[
        Adjust | None,
        declare_field("adjust", "With besag-clifford by default holm, with confidence-sequence none."),
    ] = None
    family: Annotated[Family, Field(description="What is adjusted together.")] = "test-set"
    stopping: Annotated[StoppingKeys | None, Field(description="Stop counting early.")] = None
    cluster: Annotated[
        Cluster, Field(description="As --cluster takes it, or a table: `class` and its options, or `file`.")
    ] = "auto"
    workers: Annotated[StrictInt | None, declare_field("workers")] = None
    store: Annotated[Text | None, Field(description="Path or URL of the database; by default beside the plan.")] = None
    report: Annotated[ReportKeys, Field(description="Files to write at the end.")] = ReportKeys()
    gate: Annotated[GateKeys | None, Field(description="What must hold.")] = None
