"""Options of comparisons: each is declared once, with its type, default, help and bounds.

The command line, Python and plans all take them from here. A declaration is part of the annotation:
`alpha: Annotated[float, Option("Significance level.", 0.05, above=0, below=1)]`. No large library is
imported, so that commands print their help at once.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from numbers import Real
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    ParamSpec,
    TypedDict,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from sigdask.errors import InputError, SeveralError, SigdaskError
from sigdask.text import suggest_name

Alternative = Literal["two-sided", "greater", "less"]
Method = Literal["auto", "randomization", "exact", "both"]
Adjust = Literal["none", "holm", "bh", "max-t", "tukey"]
AdjustTests = Literal["none", "holm", "bh"]
AdjustPower = Literal["none", "holm"]
Missing = Literal["error", "pairwise", "zero"]
Align = Literal["auto", "id", "position"]
Decimal = Literal[".", ","]
Ties = Literal["expected", "random", "given"]
NEEDS_TABLE = "without --markdown or --latex"
TANGO_IS_AUTO = ". auto uses Tango's interval if items are scored 0 or 1"
IntervalKind = Literal["auto", "bootstrap", "inversion", "conditional-exact", "none"]
Layout = Literal["systems", "pairs"]
Statistic = Literal["pearson", "spearman", "kendall", "accuracy", "spa", "acc-eq"]
Level = Literal["segment", "system"]
AgreementGroup = Literal["none", "item", "system"]
Permute = Literal["scores", "pairs", "segments", "systems"]
Grouping = Literal["auto", "letters", "clusters", "tied", "ranks"]

MAX_STREAM_TRIALS = 2**48
"""Number of trials of the random stream."""

MAX_SEED = 2**63 - 1
"""Largest seed of a comparison. Results store it in 64 bits."""


@dataclass(frozen=True, slots=True)
class Option:
    """Help, default and bounds of an option; its name and type are in the annotation.

    Attributes
    ----------
    help : str
        Description of the option in a sentence or more.
    default : object
        Value of the option if none is given.
    otherwise : str
        Description of the default if it depends on the data.
    least, most : float or None
        Smallest and largest value of a number.
    above, below : float or None
        Bounds that a number must not reach.
    why : str
        Reason for the upper bound, as the end of an error message.
    metavar : str
        Metavariables of its values on the command line.
    flag : str
        Its flag on the command line, if this is not its name. A short flag follows after a comma.
    repeats : bool
        Whether it takes several values, each with its flag.
    more : str or None
        A further sentence in the help of the command line.
    negative : str
        The help of the flag `--no-…` of an option that is on by default.
    idle : str
        When it has no effect, such as "with --interval none" or "without --json".
    name, choices : str and tuple of str
        Its name, and the values that it accepts. Both are inferred from its annotation.
    kind : type
        bool, int or float if its value has only this type, otherwise object.
    """

    help: str
    default: Any = None
    otherwise: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    why: str = ""
    metavar: str = ""
    flag: str = ""
    repeats: bool = False
    more: str | None = None
    negative: str = ""
    idle: str = ""
    name: str = ""
    choices: tuple[str, ...] = ()
    kind: type = object

    @property
    def long_flag(self) -> str:
        """The first flag of the option on the command line, such as "--exact-limit" or "--no-second-run"."""
        first = re.split("[,/]", self.flag)[0]
        return first or f"--{'no-' * bool(self.negative)}{self.name.replace('_', '-')}"

    def is_idle(self, values: Mapping[str, Any]) -> bool:
        """Return whether the option has no effect together with the values of all options."""
        named = re.findall(r"--([\w-]+)(?: (?!or )([\w-]+))?", self.idle)
        given = [(values.get(name.replace("-", "_")), word) for name, word in named]
        holds = any(value == word if word else value is not None for value, word in given)
        return bool(named) and holds == self.idle.startswith("with ")

    def check(self, name: str, value: Any) -> None:
        """Raise if a value is not one of the choices or is out of bounds. None is always allowed.

        Raises
        ------
        InputError
            The value is not allowed. The message says which values are.
        """
        if value is None:
            return
        if self.kind in {int, float} and not isinstance(value, Real):
            raise InputError(f"{name} = {value!r}: must be a number")
        if self.kind is int and value != int(value):
            raise InputError(f"{name} = {value!r}: must be a whole number")
        if self.choices and value not in self.choices:
            hint = suggest_choice(str(value), self.choices)
            raise InputError(f"{name} = {value!r}: must be one of {', '.join(self.choices)}{hint or self.why}")
        if self.above is not None and self.below is not None and not self.above < value < self.below:
            share = f"; write {value / 100:g} for {value:g} %" if self.below == 1 < value < 100 else ""
            raise InputError(f"{name} = {value}: must lie between {self.above:g} and {self.below:g}{share}")
        if self.least is not None and not value >= self.least:
            raise InputError(f"{name} = {value}: must be at least {self.least:,}")
        if self.most is not None and value > self.most:
            raise InputError(f"{name} = {value}: must be at most {self.most:,}{self.why}")


VALUE_GUESSES = {
    "bonferroni": "holm", "sidak": "holm", "fdr_bh": "bh", "fdr": "bh", "benjamini-hochberg": "bh", "hochberg": "holm",
    "larger": "greater", "smaller": "less", "two_sided": "two-sided", "bca": "bootstrap", "percentile": "bootstrap",
    "permutation": "randomization", "monte-carlo": "randomization",
}  # fmt: skip
"""Values that other libraries use, and the nearest ones of sigdask."""


def suggest_choice(value: str, choices: Sequence[str]) -> str:
    """Return the end of an error message about a wrong value: the nearest choice, or the option that has this value."""
    if (nearest := VALUE_GUESSES.get(value.lower())) in choices:
        return f"; write {nearest!r}" + (", which is never less powerful" if value.lower() == "bonferroni" else "")
    owner = next((name for name, option in list_all_options().items() if value in option.choices), None)
    return f"; it is a value of {owner}" if owner else suggest_name(value, choices)


@cache
def list_options(declaration: Any) -> Mapping[str, Option]:
    """Return the options that a typed dictionary declares, by name.

    Examples
    --------
    >>> list_options(ComparisonOptions)["alternative"].choices
    ('two-sided', 'greater', 'less')
    """
    hints = get_type_hints(declaration, include_extras=True)
    return {
        name: replace(option, name=name, choices=_list_choices(hint), kind=_find_kind(hint))
        for name, hint in hints.items()
        for option in getattr(hint, "__metadata__", ())
    }


def _find_kind(hint: Any) -> type:
    """Return the numeric or Boolean type that an annotation allows in addition to None, or object for other types."""
    kinds = {*get_args(get_args(hint)[0])} - {type(None)} or {get_args(hint)[0]}
    return next((kind for kind in (bool, int, float) if kinds == {kind}), object)


def _list_choices(hint: Any) -> tuple[str, ...]:
    """Return the values that a type annotation with a Literal allows; empty if it contains no Literal."""
    origin = get_origin(hint)
    if origin is Literal:
        return get_args(hint)
    if origin is Annotated:
        return _list_choices(get_args(hint)[0])
    if origin in {Union, types.UnionType}:
        return tuple(word for part in get_args(hint) for word in _list_choices(part))
    return ()


MATCHED_TESTS = {
    "t": "the matched-pair t-test [[student1908]]",
    "sign": "the sign test",
    "wilcoxon": "Wilcoxon's signed-rank test [[wilcoxon1945]]",
    "mcnemar": "McNemar's test [[mcnemar1947]]",
}
"""Tests of matched pairs, in which both systems answer each unit, with the words for them in a methods paragraph.
[[key]] cites a source of `sigdask.report.methods.sources`.
"""

INDEPENDENT_TESTS = {
    "two-sample-t": "the two-sample t-test",
    "binomial": "the test of a difference of proportions",
}
"""Tests that assume independent systems, as if each had its own test set. They are shown for contrast."""


TrialsOption = partial(Option, least=1, most=MAX_STREAM_TRIALS, why=" (the stream has 2**48)", metavar="N")
FigureOption = partial(Option, idle="without --figures")

Seed = Annotated[int, Option("Seed of the random trials.", 0, least=0)]
Alpha = Annotated[float, Option("Significance level.", 0.05, above=0, below=1)]
AlternativeOption = Annotated[Alternative, Option("Alternative hypothesis on score A - score B.", "two-sided")]
SecondRun = Annotated[
    bool,
    Option(
        "Cross-check p by a second, independent run with the same number of trials.",
        True,
        negative="Skip the second, independent run of trials, which checks p.",
        idle="with --method exact",
    ),
]
Metrics = Annotated[
    str | Sequence[Any] | None,
    Option(
        "A metric that `sigdask metrics` lists, or MODULE:ATTRIBUTE.",
        otherwise="metrics that fit the data",
        flag="--metric,-m",
        metavar="M",
        repeats=True,
    ),
]
Pairs = Annotated[
    Sequence[tuple[str, str]] | None,
    Option("Compare only A with B.", otherwise="all pairs", flag="--pair", metavar="A B", repeats=True),
]
Baseline = Annotated[str | None, Option("Compare all others only with this one, which becomes B.", metavar="NAME")]
Unit = Annotated[
    str | Sequence[str] | None,
    Option(
        "Column of the unit that is swapped as a whole, such as document. Of several nested units, the "
        "coarsest is swapped.",
        otherwise="item",
        metavar="COLUMN",
        repeats=True,
        more="",
    ),
]
Progress = Annotated[
    Callable[[int, int], None] | None,
    Option("Function that is called with the numbers of trials done and of all trials."),
]
Cache = Annotated[
    bool,
    Option(
        "Cache statistics extracted from outputs, in $SIGDASK_CACHE or ~/.cache/sigdask.",
        True,
        negative="Do not use the cache of statistics of outputs, such as matching n-grams.",
    ),
]
BlocksPerTask = Annotated[
    int | None, Option("Size of tasks in blocks of 4,096 trials, instead of by measured speed.", least=1)
]
DecimalOption = Annotated[
    Decimal | None,
    Option("Decimal separator of scores.", otherwise="recognised where it is unambiguous", metavar=".|,"),
]
Ignore = Annotated[Sequence[str], Option("Column to leave out.", (), metavar="COLUMN", repeats=True)]
Sheet = Annotated[
    str | None, Option("Sheet of an Excel workbook.", otherwise="the only one that holds data", metavar="NAME")
]
MostUnpacked = Annotated[
    int | None,
    Option(
        "Largest size of a decompressed file, in bytes.",
        otherwise="100 times its compressed size, at least 32 MB",
        least=1,
        metavar="BYTES",
    ),
]


class RunOptions(TypedDict, total=False):
    """Where trials are counted."""

    cluster: Annotated[
        str | Any,
        Option(
            "Where to compute. none: this process. threads: its threads. local: worker processes (local+tcp: "
            "without TLS). current: dask's active client. tls://…, tcp://…, SCHEDULER.json: a running scheduler. "
            "FILE.toml: a cluster file. auto: what suits the work.",
            "auto",
        ),
    ]
    workers: Annotated[
        int | None,
        Option(
            "Threads or processes to start.",
            otherwise="one per core",
            least=1,
            most=1_000_000,
            metavar="N",
            idle="with --cluster none",
        ),
    ]


class TestOptions(TypedDict, total=False):
    """The test of each comparison, and the results shown with its p."""

    alternative: AlternativeOption
    method: Annotated[
        Method,
        Option(
            "auto: random trials, and exact p-values where these are cheap. exact: no random trials. both: "
            "exact p-values and trials.",
            "auto",
        ),
    ]
    exact_limit: Annotated[
        float | None,
        Option(
            "Limit of the estimated time of all exact p-values of a test set and metric, in seconds of one core.",
            otherwise="exact: 60; auto: 0.2; both: 100 for each comparison, or about an hour if "
            "the work can be divided",
            least=0,
            metavar="SECONDS",
            idle="with --method randomization",
        ),
    ]
    trials: Annotated[
        int | None,
        TrialsOption(
            "Number of random trials.",
            otherwise="1048576; 131072 for rank metrics such as AUC, 20000 for agreement with people, 10000 for "
            "metrics computed by a function",
        ),
    ]
    seed: Annotated[int, Option("Seed of the random trials.", 0, least=0, most=MAX_SEED)]
    alpha: Alpha
    tests: Annotated[
        str | Sequence[str] | None,
        Option(
            f"Classical tests to show as well as p: {', '.join(MATCHED_TESTS)}, and for contrast "
            f"{', '.join(INDEPENDENT_TESTS)}, which treat the systems as independent.",
            otherwise="none",
            metavar="NAME,...|all",
        ),
    ]
    interval: Annotated[
        IntervalKind | None,
        Option(
            "Interval of differences and scores. auto: Tango's for items scored 0 or 1, inversion for other means, "
            "bootstrap for the rest. bootstrap: BCa. inversion: all differences of means that the test does not "
            "reject. conditional-exact: agrees with the exact test of 0/1 scores. none: no intervals.",
            otherwise="auto for 100 comparisons or fewer, else none",
            why=TANGO_IS_AUTO,
        ),
    ]
    confidence: Annotated[
        float, Option("Confidence level of the intervals.", 0.95, above=0, below=1, idle="with --interval none")
    ]
    resamples: Annotated[
        int | None,
        TrialsOption(
            "Number of resamples for intervals.",
            otherwise="10000; 1000 for metrics computed by a function; for inversion the number of trials",
            idle="with --interval none",
        ),
    ]
    second_run: SecondRun


class FamilyOptions(TypedDict, total=False):
    """Options of many comparisons."""

    adjust: Annotated[
        Adjust | None,
        Option(
            "Adjustment of p for many comparisons. holm: family-wise error, from the p-values alone. bh: false "
            "discovery rate. max-t: family-wise error from shared trials, with more power. tukey: Tukey's HSD. none: "
            "p as it is.",
            otherwise="max-t for three or more systems, else none. holm instead of max-t if the method is exact, or if "
            "a metric is computed by a function, from ranks or from sets",
        ),
    ]
    grouping: Annotated[
        Grouping,
        Option(
            "How rankings mark systems that are not significantly different. letters: they share a letter. clusters: "
            "clusters of ranks that do not overlap. tied: = for ties with the best. ranks: ranges of ranks. auto: "
            "letters if eight are enough, else ranks.",
            "auto",
        ),
    ]


NOTED_OPTIONS = {**list_options(TestOptions), **list_options(FamilyOptions)}
"""Options that notes on results name if they have no effect."""


def find_unused_options(values: Mapping[str, Any]) -> list[Option]:
    """Return the options of a comparison that are set, but have no effect together with the others.

    Examples
    --------
    >>> [option.name for option in find_unused_options({"interval": "none", "resamples": 99})]
    ['resamples']
    """
    return [o for o in NOTED_OPTIONS.values() if values.get(o.name) not in (None, o.default) and o.is_idle(values)]


class ComparisonOptions(TestOptions, FamilyOptions, RunOptions, total=False):
    """Options of all comparisons, as typed keyword arguments of `compare`."""

    beside: Annotated[
        bool,
        Option(
            "Also show p with finer units swapped, and with coarser ones if differences are correlated within them.",
            True,
        ),
    ]
    progress: Progress
    cache: Cache
    blocks_per_task: BlocksPerTask


class ChoiceOptions(TypedDict, total=False):
    """What is compared."""

    metrics: Metrics
    pairs: Pairs
    baseline: Baseline
    by: Annotated[str | None, Option("Compare within each value of a column.", metavar="COLUMN")]


class SelectionOptions(ComparisonOptions, ChoiceOptions, total=False):
    """Options of comparisons and of what is compared, as keyword arguments of `compare_all` and `compare_sets`."""

    unit: Unit
    together: Annotated[
        bool, Option("Also test each pair over all subsets or test sets, by the mean of its differences.", False)
    ]


class FrameOptions(SelectionOptions, total=False):
    """Options of `compare` for a data frame: those of comparisons, and how the frame is read."""

    ids: str | Sequence[str] | None
    groups: str | Sequence[str] | Mapping[str, Sequence[str]] | None
    format: str
    system_column: str | None
    score_column: str | None
    gold_column: str | None
    ignore: Sequence[str]
    missing: Missing | None
    min_items: int | None
    name: str


FRAME_READING = (
    "ids", "groups", "format", "system_column", "score_column", "gold_column", "ignore", "missing", "min_items", "name",
)  # fmt: skip
"""Options of `compare` for reading a data frame."""


class AgreementOptions(TypedDict, total=False):
    """How metrics are compared by their agreement with people: options of `sigdask meta`."""

    statistic: Annotated[
        Statistic,
        Option(
            "Agreement with people: a correlation, the accuracy of pairs (acc-eq calibrates ties), or soft pairwise "
            "accuracy (spa).",
            "pearson",
        ),
    ]
    level: Annotated[
        Level | None, Option("Correlate scores of segments, or means of systems.", otherwise="segment; system for spa")
    ]
    group: Annotated[
        AgreementGroup,
        Option(
            "item: correlate within each segment, and average. system: correlate within each system, and average. "
            "none: correlate all scores together.",
            "none",
        ),
    ]
    undefined: Annotated[
        Literal["omit", "zero"],
        Option("Whether groups with an undefined correlation are left out of the average, or count as 0.", "omit"),
    ]
    permute: Annotated[
        Permute,
        Option(
            "What two metrics swap, after standardisation. scores: single scores (with --level system, except for spa, "
            "those of systems). segments, systems: all scores of a segment or of a system. pairs: decisions on pairs.",
            "scores",
        ),
    ]
    threshold: Annotated[
        float | None,
        Option(
            "Differences of metrics up to this size are ties, for accuracy with --permute pairs.",
            otherwise="0",
            least=0,
        ),
    ]
    signs: Annotated[
        int, Option("Number of random sign flips for each p-value of spa.", 1000, least=1, most=10**6, metavar="N")
    ]


class LabelTestOptions(TypedDict, total=False):
    """The tests of labellings."""

    alternative: Annotated[
        Alternative,
        Option("Alternative hypothesis on the score. two-sided: at least as far from the expected score.", "greater"),
    ]
    method: Annotated[Method, Option("auto: the exact p where it takes seconds, else random permutations.", "auto")]
    adjust: Annotated[
        AdjustTests | None,
        Option(
            "Adjustment of p over all labellings and metrics.",
            otherwise="holm for several labellings, else none",
        ),
    ]
    trials: Annotated[int | None, TrialsOption("Number of random permutations.", otherwise="1048576")]
    seed: Seed
    alpha: Alpha
    second_run: SecondRun


class IndependenceOptions(LabelTestOptions, RunOptions, total=False):
    """Options of tests of independence, as typed keyword arguments of `independence`."""

    progress: Progress
    blocks_per_task: BlocksPerTask


class TableLayoutOptions(TypedDict, total=False):
    """Options of the layout of tables for papers."""

    layout: Annotated[
        Layout | None,
        Option(
            "Layout of tables for papers. systems: one row per system, one column per metric. pairs: one "
            "row per comparison.",
            otherwise="systems if all pairs of three or more systems were compared, or all with one baseline",
            idle=NEEDS_TABLE,
        ),
    ]
    digits: Annotated[
        int | None,
        Option(
            "Decimals of scores in tables for papers.",
            otherwise="1 for BLEU, chrF and TER, 2 for per cent, 4 for others",
            least=0,
            most=15,
            metavar="N",
            idle=NEEDS_TABLE,
        ),
    ]
    percent: Annotated[
        bool,
        Option(
            "Write accuracy, F1 and other shares in per cent in tables for papers.",
            True,
            flag="--percent/--no-percent",
            idle=NEEDS_TABLE,
        ),
    ]


class FigureKindOptions(TypedDict, total=False):
    """Which figures are drawn."""

    figure_kinds: Annotated[
        str | None,
        FigureOption(
            "Kinds of figures to draw, as their files are named: forest, cd (critical-difference), matrix, "
            "differences and others.",
            otherwise="all that fit",
            metavar="KIND,...",
        ),
    ]


class CanvasOptions(TypedDict, total=False):
    """Size and type of figures."""

    figure_width: Annotated[
        str | None,
        FigureOption("Width of figures, as 3.3in, 84mm or 8.4cm.", otherwise="what their labels need", metavar="WIDTH"),
    ]
    font: Annotated[str | None, FigureOption("Font family of figures.", otherwise="DejaVu Sans", metavar="NAME")]
    font_size: Annotated[
        float, FigureOption("Font size of figures in points.", 8.0, least=4, most=24, metavar="POINTS")
    ]
    dpi: Annotated[int, FigureOption("Dots per inch of PNG figures.", 200, least=50, most=1200, metavar="N")]


class GroupFigureOptions(CanvasOptions, total=False):
    """Which comparisons a figure shows, and its size and type."""

    test_set: str | None
    subset: str | None
    metric: str | None


class FigureStyleOptions(FigureKindOptions, CanvasOptions, total=False):
    """Which figures are drawn, and their size and type."""


JsonLayout = Literal["objects", "columns"]


class JsonOptions(TypedDict, total=False):
    """How JSON files of results are written."""

    json_layout: Annotated[
        JsonLayout,
        Option(
            "Layout of JSON files. objects: one object per comparison. columns: one list per key, in a file a "
            "tenth as large.",
            "objects",
            idle="without --json",
        ),
    ]


class CsvOptions(TypedDict, total=False):
    """How CSV files of results are written."""

    csv_safe: Annotated[
        bool,
        Option(
            "In CSV, write a quotation mark before names that spreadsheets would run as formulas. By default, names "
            "are as they are.",
            False,
            flag="--csv-safe/--no-csv-safe",
            idle="without --csv",
        ),
    ]


class PageOptions(TypedDict, total=False):
    """What the page of results (`--html`) shows."""

    open_pairs: Annotated[
        Sequence[tuple[str, str]],
        Option(
            "Show the details of this pair's comparisons on the page.",
            (),
            flag="--open",
            metavar="A B",
            repeats=True,
        ),
    ]


class PowerQuestionOptions(TypedDict, total=False):
    """What a power analysis is asked."""

    difference: Annotated[
        float | None, Option("Find the number of units that detect a difference in score of this size.", metavar="D")
    ]
    units: Annotated[
        int | None,
        Option(
            "Find the difference that this number of units detects.",
            otherwise="the units of the data",
            least=2,
            metavar="N",
        ),
    ]
    power: Annotated[float, Option("Probability of detecting the difference.", 0.8, above=0, below=1, metavar="P")]


class PowerTestOptions(TypedDict, total=False):
    """The test whose power is found."""

    unit: Unit
    alternative: AlternativeOption
    alpha: Alpha
    adjust: Annotated[
        AdjustPower,
        Option("Adjustment for many comparisons. holm: the level of Holm's first step, alpha / comparisons.", "none"),
    ]
    samples: Annotated[
        int | None,
        Option(
            "Number of simulated samples for each power.",
            otherwise="2,000; 500 for more than 100 comparisons",
            least=100,
            metavar="K",
        ),
    ]
    seed: Seed


class PowerOptions(PowerQuestionOptions, PowerTestOptions, RunOptions, total=False):
    """Options of power analyses, as typed keyword arguments of `power`."""

    metrics: Metrics
    pairs: Pairs
    baseline: Baseline
    progress: Progress
    cache: Cache


class ReadingOptions(TypedDict, total=False):
    """Options for reading the files of a test set."""

    id_column: Annotated[str | None, Option("Column of item ids.", flag="--id", metavar="COLUMN")]
    gold_column: Annotated[str | None, Option("Column of the gold standard.", metavar="COLUMN")]
    prediction_column: Annotated[
        str | None, Option("Column of the prediction, in files of one system.", metavar="COLUMN")
    ]
    system_column: Annotated[str | None, Option("Column of the system, in long tables.", metavar="COLUMN")]
    score_column: Annotated[str | None, Option("Column of the score, in long tables.", metavar="COLUMN")]
    label_map: Annotated[
        Sequence[tuple[str, tuple[str, ...]]],
        Option("Replace the labels FROM by TO.", (), flag="--map", metavar="TO=FROM,FROM", repeats=True),
    ]
    ignore: Ignore
    align: Annotated[
        Align, Option("How rows of several files are matched. auto: by id if there are ids, else by position.", "auto")
    ]
    decimal: DecimalOption
    missing: Annotated[
        Missing | None,
        Option(
            "What to do with items that a system lacks. error: stop. pairwise: compare each pair on the items that "
            "both have. zero: score them 0.",
            otherwise="error; zero for TREC runs, SQuAD 1.1, and lists of spans or terms",
        ),
    ]
    min_items: Annotated[
        int | None,
        Option(
            "Smallest number of items that two systems must have in common.",
            otherwise="5 % of all items of the two",
            least=0,
            metavar="N",
        ),
    ]
    references: Annotated[
        Sequence[Any],
        Option("Further file of reference segments.", (), flag="--reference", metavar="FILE", repeats=True),
    ]
    documents: Annotated[
        Any,
        Option(
            "File with the document of each segment, one per line, or a table of item and document.",
            metavar="FILE",
            more="Swap whole documents with --unit document.",
        ),
    ]
    group_file: Annotated[
        Any,
        Option(
            "Table of item and groups, in any format, with one column for each kind of group.",
            flag="--groups",
            metavar="FILE",
            more="Swap whole groups with --unit COLUMN, or --unit group if the column has no name.",
        ),
    ]
    sheet: Sheet
    most_unpacked: MostUnpacked


LABEL_READING = (
    "id_column", "gold_column", "prediction_column", "label_map", "ignore", "align", "group_file", "sheet",
    "most_unpacked",
)  # fmt: skip
"""Reading options that also exist for files of labels in tests of independence."""

OPTIONS = list_options(SelectionOptions)
"""Options of a comparison, by name."""

PRINT_OPTIONS = list_options(TableLayoutOptions)
JSON_OPTIONS = list_options(JsonOptions)
FIGURE_STYLE = list_options(FigureStyleOptions)

READING_OPTIONS = list_options(ReadingOptions)
"""Options for reading files."""


RANKING_TRIALS = 10_000


class RankingChoiceOptions(TypedDict, total=False):
    """Which candidates and measures are compared."""

    n: Annotated[
        int | Sequence[int] | str | None,
        Option(
            "Numbers of best candidates: 50,100,200 or a curve 50:2000:50.",
            otherwise="1, 2 and 5 times powers of ten",
            metavar="N,N|START:STOP:STEP",
        ),
    ]
    pairs: Annotated[
        Sequence[tuple[str, str]] | None,
        Option("Measures to compare.", otherwise="all pairs", flag="--pair", metavar="A B", repeats=True),
    ]
    baseline: Annotated[
        str | None, Option("Compare every other measure only with this one, which becomes B.", metavar="MEASURE")
    ]


class RankingTestOptions(TypedDict, total=False):
    """The tests of differences between measures."""

    ties: Annotated[
        Ties,
        Option(
            "Order of candidates with equal scores. expected: the mean over all orders. random: one random order. "
            "given: the order of the file.",
            "expected",
        ),
    ]
    trials: Annotated[
        int, Option("Number of random swaps of ranks.", RANKING_TRIALS, least=1, most=MAX_STREAM_TRIALS, metavar="N")
    ]
    seed: Seed
    alpha: Alpha
    confidence: Annotated[float, Option("Confidence level of the intervals.", 0.95, above=0, below=1)]


class RankingSampleOptions(TypedDict, total=False):
    """Random samples of candidates."""

    samples: Annotated[
        int | None,
        Option(
            "Number of random samples to draw, as if only the sample had been judged.",
            least=1,
            most=100_000,
            metavar="K",
        ),
    ]
    sample_size: Annotated[int | None, Option("Number of candidates in each sample.", least=1, most=2**31, metavar="N")]


class RankingOptions(RankingChoiceOptions, RankingTestOptions, RankingSampleOptions, RunOptions, total=False):
    """Options of rankings of candidates, as keyword arguments of `sigdask.analysis.candidate_rankings.evaluate`."""

    progress: Progress


class CandidateFileOptions(TypedDict, total=False):
    """Options for reading a file of candidates."""

    gold_column: Annotated[
        str | None,
        Option(
            "Column of the gold standard: 1/0, true/false, or labels.", otherwise="gold; b.*; tpclass", metavar="COLUMN"
        ),
    ]
    positive: Annotated[
        Sequence[str], Option("Label in the gold column that counts as true.", (), metavar="LABEL", repeats=True)
    ]
    ids: Annotated[
        Sequence[str],
        Option(
            "Column of ids. Several columns together identify a candidate.",
            (),
            flag="--id",
            metavar="COLUMN",
            repeats=True,
        ),
    ]
    measures: Annotated[
        Sequence[str],
        Option(
            "Column of a measure.",
            (),
            otherwise="every column of numbers; in UCS am.*, in XML real features",
            flag="--measure",
            metavar="COLUMN",
            repeats=True,
        ),
    ]
    smaller: Annotated[
        Sequence[str], Option("Measure for which lower scores are better.", (), metavar="MEASURE", repeats=True)
    ]
    ignore: Ignore
    partial: Annotated[bool, Option("Gold is empty except for a random sample of the candidates.", False)]
    decimal: DecimalOption
    sheet: Sheet
    most_unpacked: MostUnpacked


@cache
def list_all_options() -> Mapping[str, Option]:
    """Return every option of the program by name. One that several commands declare is that of comparisons."""
    declarations = (
        CandidateFileOptions, RankingOptions, PowerOptions, IndependenceOptions, TableLayoutOptions, JsonOptions,
        CsvOptions, PageOptions, FigureStyleOptions, ReadingOptions, SelectionOptions,
    )  # fmt: skip
    return {name: option for declaration in declarations for name, option in list_options(declaration).items()}


Declaration = TypeVar("Declaration")

GUESSES = {
    (owner, name): instead
    for owner, names_by_remedy in {
        "option": {
            "adjust": "correction p_adjust padjust padj multitest fwer",
            "baseline": "control reference_system",
            "by": "groupby group_by stratify",
            "gold": "references reference refs ref r y_true labels",
            "interval": "ci",
            "metric or metrics": "score scorer measure measures statistic",
            "seed": "random_state rng random_seed",
            "trials": "n_permutations permutations n_perm num_permutations n_trials iterations n_iter reps",
            "trials (of the test) or resamples (of bootstrap intervals)": "n_resamples n_boot",
            "units, the document of each item; for a data frame unit, the name of a column": "documents",
            "workers": "n_jobs n_workers num_workers jobs threads",
            "nothing: outputs of one item are always compared as a pair": "paired",
            "a metric made by sigdask.metric(..., higher_is_better=False)": "higher_is_better lower_is_better",
        },
        "Results": {
            "print(results)": "summary show print describe",
            "to_frame()": "to_pandas to_dataframe to_df df dataframe frame head tail sort_values columns shape query",
            "to_frame('polars')": "to_polars pl",
            "to_frame('pyarrow')": "to_arrow to_pyarrow arrow",
            "to_frame(index=True).loc": "loc iloc",
            "to_frame().to_excel(path)": "to_excel",
            "to_markdown() or print(results)": "to_string to_text",
            "rankings()": "ranking rank best winner letters clusters",
            "results['new', 'old']": "get pair filter select",
            "results[0].p_value, or to_frame()['p_value']": "p_value p_values pvalue pvalues pval pvals p",
            "results[0].p_adjusted, or to_frame()['p_adjusted']": "p_adjusted padj p_adj p_corr pvals_corrected",
            "results[0].difference, or to_frame()['difference']": "difference differences diff delta statistic effect",
            "results[0].interval, or to_frame()[['interval_low', 'interval_high']]": "interval ci conf_int "
            "confidence_interval confidence_intervals",
            "results[0].paired_d, or to_frame()['paired_d']": "effect_size cohen_d cohens_d d",
            "results[0].decision(results.alpha)": "significant is_significant reject rejected verdict decision",
            "results[0].test_signature": "signature signatures test_signature",
            "write('results.json'), or another ending": "save export dump to_file",
            "cite().bibtex": "bibtex to_bibtex references",
            "cite().text": "methods",
            "plot_forest()": "plot forest",
            "unit_table('new', 'old')": "items per_item",
        },
        "Result": {
            "p_value": "pvalue p pval p_val p_unc",
            "p_adjusted": "padj p_adj p_corr p_corrected pvalue_adjusted",
            "difference": "diff delta statistic effect mean_difference",
            "interval.low and interval.high": "ci ci95 conf_int confidence_interval interval_low interval_high ci_low",
            "paired_d": "effect_size cohen_d cohens_d d",
            "decision(0.05)": "significant is_significant reject rejected",
            "better()": "winner best",
            "n_items": "n nobs",
            "score_a and score_b": "mean_a mean_b scores score",
            "dataclasses.asdict(result)": "to_dict asdict",
            "results.to_frame()": "to_frame to_pandas df summary",
            "results.plot_null": "null_distribution plot",
        },
        "sigdask": {
            **{f"sigdask {name} in a terminal": name for name in ("check", "init", "meta", "reproduce", "verify")},
            "compare": "permutation_test approximate_randomization randomization_test bootstrap paired_bootstrap test",
            "compare(a, b, tests='t,wilcoxon')": "ttest ttest_rel wilcoxon sign_test mcnemar",
            "compare_all": "compare_systems compare_many pairwise",
            "compare_all(sigdask.read('new.txt', 'old.txt', gold='ref.txt'))": "compare_files",
            "read": "load read_csv read_files load_files",
            "results.cite()": "cite",
        },
    }.items()
    for instead, names in names_by_remedy.items()
    for name in names.split()
}
"""What to write instead of names that users of SciPy, pandas, statsmodels and other libraries try first."""


def suggest_instead(owner: str, name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of an error message about an unknown name: what to write instead, or a similar known name.

    Examples
    --------
    >>> suggest_instead("option", "random_state", ["seed"]), suggest_instead("option", "sede", ["seed"])
    ('; write seed', "; did you mean 'seed'?")
    """
    remedy = GUESSES.get((owner, name))
    return f"; write {remedy}" if remedy else suggest_name(name, known, otherwise)


def suggest_flag(flag: str) -> str:
    """Return the flag to write instead of one that other programs have, or "".

    Examples
    --------
    >>> suggest_flag("--n-permutations"), suggest_flag("--colour")
    ('--trials', '')
    """
    remedy = GUESSES.get(("option", flag.lstrip("-").replace("-", "_")), "").partition(" ")[0]
    flags = {name: flag for flag, name in list_flag_names().items()} | {"gold": "gold"}
    return f"--{flags.get(remedy, remedy)}" if remedy in {*list_all_options(), "gold"} else ""


def refuse_attribute(self: Any, name: str) -> NoReturn:
    """Raise that an object has no such attribute, and name the right one: `__getattr__` of results."""
    owner = type(self).__name__
    known = [] if name.startswith("_") else [word for word in dir(type(self)) if not word.startswith("_")]
    hint = suggest_instead(owner, name, known) if known else ""
    raise AttributeError(f"{owner!r} object has no attribute {name!r}{hint}")


def fill_options(declaration: type[Declaration], values: Mapping[str, Any]) -> Declaration:
    """Return all options of a declaration, with defaults for options that are not given.

    Raises
    ------
    InputError
        A value is not one of the choices, or is out of bounds.
    TypeError
        There is no such option.

    Examples
    --------
    >>> fill_options(TableLayoutOptions, {"digits": 3})
    {'layout': None, 'digits': 3, 'percent': True}
    """
    check_options(declaration, values)
    defaults = {name: option.default for name, option in list_options(cast("Any", declaration)).items()}
    given = {name: value for name, value in values.items() if value is not None}
    return cast("Declaration", {**defaults, **given})


def check_options(declaration: Any, values: Mapping[str, Any]) -> None:
    """Raise if there is no such option in a declaration, or a value is not allowed."""
    options = list_options(declaration)
    for name, value in values.items():
        if name not in options and name in READING_OPTIONS:
            raise TypeError(
                f"no option {name!r} here: it says how data are read. Give it to sigdask.as_counts(data, {name}=...) "
                "or sigdask.read, and compare what that returns"
            )
        if name not in options:
            hint = suggest_instead("option", name, options)
            raise TypeError(
                f"no option {name!r}{hint}{' Options' if hint[-1:] == '?' else '; options'}: {', '.join(options)}"
            )
        options[name].check(name, value)


def select_options(declaration: type[Declaration], given: Mapping[str, Any]) -> Declaration:
    """Return those options of a declaration that a command line or a plan gave, by their names.

    Parameters
    ----------
    declaration : type
        A typed dictionary.
    given : mapping
        Given options. An option `second_run` that is on by default has the flag `no_second_run`. Options that are not
        given are None or empty.

    Examples
    --------
    >>> select_options(ComparisonOptions, {"alpha": 0.01, "stop": None, "no_cache": True, "json_file": "-"})
    {'alpha': 0.01, 'cache': False}
    """
    names = list_options(cast("Any", declaration))
    values = {name: given[name] for name in names if given.get(name) not in {None, ()}}
    return cast("Declaration", values | {name: not given[f"no_{name}"] for name in names if f"no_{name}" in given})


Interface = Literal["python", "plan"]
Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


@cache
def list_flag_names() -> Mapping[str, str]:
    """Map flags without dashes to names of options, for flags that differ from the names."""
    flags = {option.long_flag[2:]: name for name, option in list_all_options().items() if option.flag}
    return {"ref": "gold", "qrels": "gold", **flags}


PLAN_NAMES = {"open_pairs": "open", "id_column": "id", "ids": "id", "label_map": "map", "group_file": "groups"}
"""Plan keys of options that plans name as the command line does, by their Python names."""

UNDECLARED_OPTIONS = ("gold", "format", "within")
"""Options of the command line that Python and plans have as well but that are not declared here."""

VALUE = (
    r"'[^']*'|\"[^\"]*\"|[A-Z][A-Z_]*(?:[+=:,][A-Z_]+)*(?![a-z])|[\w.+-]+(?:[:+=][\w.+=,|-]*\w)+|[\d.]+\b|[,.](?=\s|$)"
)
"""Pattern of an option's value in a sentence: quoted, NAME, a:b, a number, a mark."""

FLAG = rf"--([a-z][a-z-]*[a-z])(?![\w-])(?:[ =]({VALUE}|[\w./~-]*\w))?"

PROSE = (
    "a|all|also|an|and|are|as|asks?|at|averages?|be|below|beside|brings?|by|choose|chooses|compares?|cannot|did|do|does|"
    "each|else|for|from|gives?|has|have|holds?|if|in|instead|is|it|its|judges?|keeps?|leaves?|may|means?|must|names?|no|"
    "not|of|on|or|otherwise|reads?|said|says?|shows?|takes?|tells?|than|that|the|their|then|there|they|this|to|together|"
    "was|where|which|while|with|without|writes?|you"
)
"""Words that continue a sentence after an option. `re` compiles this pattern, and `FLAG`, when a message needs them."""


@contextmanager
def rename_error_options(interface: Interface) -> Iterator[None]:
    """Rewrite command-line options (`--unit document`) in the messages of errors as Python or plans spell them.

    Examples
    --------
    >>> with rename_error_options("python"):
    ...     raise InputError("choose --missing pairwise, or name ids with --id")
    Traceback (most recent call last):
    sigdask.errors.InputError: choose missing='pairwise', or name ids with id_column=
    """
    try:
        yield
    except SigdaskError as error:
        error.args = tuple(rename_options(text, interface) if isinstance(text, str) else text for text in error.args)
        if isinstance(error, SeveralError):
            error.parts = tuple(rename_options(text, interface) for text in error.parts)
        raise


def take_positions(n: int, remedy: str) -> Callable[[Callable[Parameters, Answer]], Callable[Parameters, Answer]]:
    """Return a decorator for functions of `n` positional arguments: with more, the error says what to write instead."""

    def decorate(function: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
        @wraps(function)
        def call(*args: Parameters.args, **options: Parameters.kwargs) -> Answer:
            if len(args) > n:
                raise TypeError(f"{function.__name__}: an argument too many without a name; {remedy}")
            return function(*args, **options)

        return call

    return decorate


def name_arguments(function: Callable[Parameters, Answer], interface: Interface) -> Callable[Parameters, Answer]:
    """Return a function whose errors and notes call options by their Python or plan names."""
    checked = rename_error_options(interface)(function)

    @wraps(function)
    def call(*arguments: Parameters.args, **options: Parameters.kwargs) -> Answer:
        return rename_notes(checked(*arguments, **options), interface)

    return call


def rename_notes(answer: Answer, interface: Interface) -> Answer:
    """Return results with options in their notes, which are texts or have one, as Python or a plan spells them."""

    def rename(note: Any) -> Any:
        if isinstance(note, str):
            return type(note)(rename_options(note, interface))
        return replace(note, text=rename_options(note.text, interface))

    named: Any = answer
    return replace(named, notes=tuple(map(rename, notes))) if (notes := getattr(answer, "notes", ())) else answer


def rename_options(message: str, interface: Interface) -> str:
    """Return a message with its command-line options spelled as in Python or in a plan.

    Examples
    --------
    >>> rename_options("say --align position, or --id task+id", "plan")
    'say align = "position", or id = "task+id"'
    """
    return re.sub(FLAG, partial(_format_option, interface), message)


def _format_option(interface: Interface, match: re.Match[str]) -> str:
    flag, value = match[1], match[2]
    name = list_flag_names().get(flag, flag.replace("-", "_"))
    options = list_all_options()
    if (positive := name.removeprefix("no_")) in options and positive != name:
        spelled = f"`{positive} = false`" if interface == "plan" else f"{positive}=False"
        return spelled + match[0].removeprefix(f"--{flag}")
    if name not in options and name not in UNDECLARED_OPTIONS:
        return match[0]  # an option of another tool, or of the command line alone
    choices = options[name].choices if name in options else ()
    is_word = value is not None and re.fullmatch(r"[\w-]+", value) and not value.isupper() and not value.isdigit()
    rest = ""
    if is_word and value not in choices and (choices or re.fullmatch(PROSE, value)):
        value, rest = None, f"{match[0][match.start(2) - match.start() - 1 :]}"
    if interface == "plan":
        name, sign, quote = PLAN_NAMES.get(name, name), " = ", '"'
    else:
        sign, quote = "=", "'"
    if value is None:
        return (f"`{name}`" if interface == "plan" else f"{name}=") + rest
    plain = value.strip("'\"")
    bare = plain.isupper() or plain.replace(".", "", 1).isdigit()
    return f"{name}{sign}{plain if bare else f'{quote}{plain}{quote}'}"
