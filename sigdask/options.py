"""Options of comparisons: each is declared once, with its type, default, help and bounds.

The command line, Python and plans all take them from here. A declaration is part of the annotation:
`alpha: Annotated[float, Option("Significance level.", 0.05, above=0, below=1)]`. No large library is
imported, so that commands print their help at once.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from numbers import Real
from typing import Annotated, Any, Literal, TypedDict, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from sigdask.errors import InputError
from sigdask.interface import spell
from sigdask.text import suggest_name

Alternative = Literal["two-sided", "greater", "less"]
Method = Literal["auto", "randomization", "exact", "both"]
Adjust = Literal["none", "holm", "bh", "max-t", "tukey"]
AdjustTests = Literal["none", "holm", "bh"]
AdjustPower = Literal["none", "holm"]
Missing = Literal["error", "pairwise", "zero"]
Align = Literal["auto", "id", "position"]
IntervalKind = Literal["auto", "bootstrap", "inversion", "none"]
Layout = Literal["systems", "pairs"]
Statistic = Literal["pearson", "spearman", "kendall", "accuracy", "spa", "acc-eq"]
Grouping = Literal["auto", "letters", "clusters", "tied", "ranks"]

MAX_STREAM_TRIALS = 2**48
"""Number of trials of the random stream."""


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
    short : str
        Its short flag on the command line. `sigdask.interface` has the long one.
    repeats : bool
        Whether it takes several values, each with its flag.
    more : str or None
        A further sentence in the help of the command line.
    negative : str
        The help of the flag `--no-…` of an option that is on by default.
    idle_with : (str, str), optional
        Another option and its value with which this one has no effect.
    name, choices : str and tuple of str
        Its name, and the values that it accepts. Both are inferred from its annotation.
    kind : type
        bool, int, float or str if its value has only this type, otherwise object.
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
    short: str = ""
    repeats: bool = False
    more: str | None = None
    negative: str = ""
    idle_with: tuple[str, str] | None = None
    name: str = ""
    choices: tuple[str, ...] = ()
    kind: type = object

    def check(self, name: str, value: Any) -> None:
        """Raise if a value is not one of the choices or is out of bounds. None is always allowed.

        Raises
        ------
        InputError
            The value is not allowed. The message says which values are.
        """
        if value is None:
            return
        if self.kind is str and not isinstance(value, str):
            raise InputError(f"{name} = {value!r}: must be one name")
        if self.kind in {int, float} and not isinstance(value, Real):
            raise InputError(f"{name} = {value!r}: must be a number")
        if self.kind is int and value != int(value):
            raise InputError(f"{name} = {value!r}: must be a whole number")
        if self.choices and value not in self.choices:
            hint = suggest_name(str(value), self.choices)
            raise InputError(f"{name} = {value!r}: must be one of {', '.join(self.choices)}{hint or self.why}")
        if self.above is not None and self.below is not None and not self.above < value < self.below:
            share = f"; write {value / 100:g} for {value:g} %" if self.below == 1 < value < 100 else ""
            raise InputError(f"{name} = {value}: must lie between {self.above:g} and {self.below:g}{share}")
        if self.above is not None and self.below is None and not self.above < value < math.inf:
            raise InputError(f"{name} = {value}: must be above {self.above:g}")
        if self.least is not None and not value >= self.least:
            raise InputError(f"{name} = {value}: must be at least {self.least:,}")
        if self.most is not None and value > self.most:
            raise InputError(f"{name} = {value}: must be at most {self.most:,}{self.why}")


@cache
def list_options(declaration: Any) -> Mapping[str, Option]:
    """Return the options that a typed dictionary declares, by name.

    Examples
    --------
    >>> list_options(ComparisonOptions)["alternative"].choices
    ('two-sided', 'greater', 'less')
    """
    hints = get_type_hints(declaration, include_extras=True)
    return {name: _complete_option(name, *get_args(hint)) for name, hint in hints.items()}


def _complete_option(name: str, hint: Any, option: Option) -> Option:
    """Return an option with its name, and with its choices and the kind of its value by its type annotation."""
    members = get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)
    kinds = [kind for kind in members if kind is not type(None)]
    choices = tuple(chain.from_iterable(get_args(kind) for kind in kinds if get_origin(kind) is Literal))
    return replace(
        option, name=name, choices=choices, kind=kinds[0] if kinds in ([bool], [int], [float], [str]) else object
    )


MATCHED_TESTS = {
    "t": "the matched-pair t-test [[student1908]]",
    "sign": "the sign test",
    "wilcoxon": "Wilcoxon's signed-rank test [[wilcoxon1945]]",
    "mcnemar": "McNemar's test [[mcnemar1947]]",
}
"""Tests of matched pairs, in which both systems answer each unit, with the words for them in a methods paragraph.
[[key]] cites a source of `sigdask.report.methods`.
"""

INDEPENDENT_TESTS = {
    "two-sample-t": "the two-sample t-test",
    "binomial": "the test of a difference of proportions",
}
"""Tests that assume independent systems, as if each had its own test set. They are shown for contrast."""


TrialsOption = partial(Option, least=1, most=MAX_STREAM_TRIALS, why=" (the stream has 2**48)", metavar="N")

Seed = Annotated[int, Option("Seed of the random trials.", 0, least=0, most=2**63 - 1)]  # stored in 64 bits
Alpha = Annotated[float, Option("Significance level.", 0.05, above=0, below=1)]
AlternativeOption = Annotated[Alternative, Option("Alternative hypothesis on score A - score B.", "two-sided")]
SecondRun = Annotated[
    bool,
    Option(
        "Cross-check p by a second, independent run of a quarter as many trials.",
        True,
        negative="Skip the second, independent run of trials, which checks p.",
        idle_with=("method", "exact"),
    ),
]
Metrics = Annotated[
    str | Sequence[Any] | None,
    Option(
        "A metric that `sigdask list metrics` lists, or MODULE:ATTRIBUTE.",
        otherwise="metrics that fit the data",
        short="-m",
        metavar="M",
        repeats=True,
    ),
]
Pairs = Annotated[
    Sequence[tuple[str, str]] | None,
    Option("Compare only A with B.", otherwise="all pairs", metavar="A B", repeats=True),
]
Baseline = Annotated[str | None, Option("Compare all others only with this one, which becomes B.", metavar="NAME")]
Unit = Annotated[
    str | None,
    Option("Column of the unit that is swapped as a whole, such as document.", otherwise="item", metavar="COLUMN"),
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
Ignore = Annotated[Sequence[str], Option("Column to leave out.", (), metavar="COLUMN", repeats=True)]
Columns = Annotated[
    Mapping[str, str] | Sequence[str],
    Option(
        "Roles of columns: item, system, score (A+B for several), gold, prediction, unit, run, subset, text, metric. "
        "A comma ends a column's name only before another ROLE=.",
        (),
        otherwise="recognised by their names",
        metavar="ROLE=COLUMN,...",
        repeats=True,
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
            idle_with=("cluster", "none"),
        ),
    ]


class RandomizationOptions(TypedDict, total=False):
    """The test of each comparison."""

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
            otherwise="exact: 60; auto: 0.2; both: 100 for each comparison",
            least=0,
            metavar="SECONDS",
            idle_with=("method", "randomization"),
        ),
    ]
    trials: Annotated[
        int | None,
        TrialsOption(
            "Number of random trials.",
            otherwise="1048576; 131072 for several comparisons (more where their adjustment needs more) and for rank "
            "metrics such as AUC, 20000 for agreement with people, 10000 for metrics computed by a function",
        ),
    ]
    seed: Seed
    alpha: Alpha
    second_run: SecondRun


class TestOptions(RandomizationOptions, total=False):
    """The test of each comparison, and the results shown with its p."""

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
            "reject. none: no intervals.",
            otherwise="auto for 100 comparisons or fewer, else none",
            why=". auto uses Tango's interval if items are scored 0 or 1",
        ),
    ]
    confidence: Annotated[
        float, Option("Confidence level of the intervals.", 0.95, above=0, below=1, idle_with=("interval", "none"))
    ]
    resamples: Annotated[
        int | None,
        TrialsOption(
            "Number of resamples for intervals.",
            otherwise="10000; 1000 for metrics of ranks or computed by a function; for inversion the number of trials",
            idle_with=("interval", "none"),
        ),
    ]
    margin: Annotated[
        float | None,
        Option(
            "Also test whether A and B differ by less than a margin on the metric's own scale: non-inferiority and "
            "equivalence.",
            above=0,
            metavar="M",
        ),
    ]


class FamilyOptions(TypedDict, total=False):
    """Options of many comparisons."""

    adjust: Annotated[
        Adjust | None,
        Option(
            "Adjustment of p for the comparisons by one metric. holm: family-wise error, from the p-values alone. bh: "
            "false discovery rate. max-t: family-wise error from shared trials, with more power. tukey: Tukey's HSD. "
            "none: p as it is.",
            otherwise="max-t for all comparisons by one metric. holm instead if the method is exact, or if the metric "
            "is computed by a function, from ranks or from sets",
        ),
    ]


NOTED_OPTIONS = {**list_options(TestOptions), **list_options(FamilyOptions)}
"""Options that notes on results name if they have no effect."""


def find_unused_options(values: Mapping[str, Any], declared: Mapping[str, Option] = NOTED_OPTIONS) -> list[Option]:
    """Return the declared options that are set, but have no effect together with the others.

    Examples
    --------
    >>> [option.name for option in find_unused_options({"interval": "none", "resamples": 99})]
    ['resamples']
    """
    given = [o for o in declared.values() if values.get(o.name) not in (None, o.default)]
    return [o for o in given if o.idle_with is not None and values.get(o.idle_with[0]) == o.idle_with[1]]


class ComparisonOptions(TestOptions, RunOptions, total=False):
    """Options of each comparison, as typed keyword arguments of `compare`."""

    progress: Progress
    cache: Cache


class ChoiceOptions(TypedDict, total=False):
    """What is compared."""

    metrics: Metrics
    pairs: Pairs
    baseline: Baseline
    by: Annotated[str | None, Option("Compare within each value of a column.", metavar="COLUMN")]


class SelectionOptions(ChoiceOptions, ComparisonOptions, FamilyOptions, total=False):
    """Options of comparisons and of what is compared, as keyword arguments of `compare_all` and `compare_sets`."""

    unit: Unit
    together: Annotated[
        bool, Option("Also test each pair over all subsets or test sets, by the mean of its differences.", False)
    ]


RECORDED_OPTIONS = (
    *list_options(TestOptions), *list_options(FamilyOptions), "unit", "by", "together"
)  # fmt: skip
"""Options that results record, so that they can be computed again; pairs and metrics are those of the results."""


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
        Literal["segment", "system"] | None,
        Option("Correlate scores of segments, or means of systems.", otherwise="segment; system for spa"),
    ]
    group: Annotated[
        Literal["none", "item", "system"],
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
        Literal["scores", "pairs", "segments", "systems"],
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


class MetaOptions(AgreementOptions, RandomizationOptions, RunOptions, FamilyOptions, total=False):
    """Options of comparisons of metrics, as typed keyword arguments of `meta`."""

    progress: Progress
    cache: Cache


class LabelTestOptions(TypedDict, total=False):
    """The tests of labellings."""

    alternative: Annotated[
        Alternative,
        Option("Alternative hypothesis on the score. two-sided: at least as far from the expected score.", "greater"),
    ]
    method: Annotated[Method, Option("auto: the exact p where it takes seconds, else random permutations.", "auto")]
    adjust: Annotated[
        AdjustTests | None,
        Option("Adjustment of p over all labellings and metrics.", otherwise="holm for several labellings, else none"),
    ]
    trials: Annotated[
        int | None, TrialsOption("Number of random permutations.", otherwise="1048576", idle_with=("method", "exact"))
    ]
    seed: Seed
    alpha: Alpha
    second_run: SecondRun


class IndependenceOptions(LabelTestOptions, RunOptions, total=False):
    """Options of tests of independence, as typed keyword arguments of `independence`."""

    progress: Progress


class RankingMarkOptions(TypedDict, total=False):
    """How rankings are shown."""

    grouping: Annotated[
        Grouping,
        Option(
            "How rankings mark systems that are not significantly different. letters: they share a letter. clusters: "
            "clusters of ranks that do not overlap. tied: = for ties with the best. ranks: ranges of ranks. auto: "
            "letters if eight are enough, else ranks.",
            "auto",
        ),
    ]


class TableLayoutOptions(TypedDict, total=False):
    """Options of the layout of tables for papers."""

    layout: Annotated[
        Layout | None,
        Option(
            "Layout of tables for papers. systems: one row per system, one column per metric. pairs: one "
            "row per comparison.",
            otherwise="systems if all pairs of three or more systems were compared, or all with one baseline",
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
        ),
    ]
    percent: Annotated[bool, Option("Write accuracy, F1 and other shares in per cent in tables for papers.", True)]


class FigureStyleOptions(TypedDict, total=False):
    """Which figures are drawn."""

    figure_kinds: Annotated[
        str | None,
        Option(
            "Kinds of figures to draw, as their files are named: forest, cd (critical-difference) and matrix.",
            otherwise="all that fit",
            metavar="KIND,...",
        ),
    ]


class PowerQuestionOptions(TypedDict, total=False):
    """What a power analysis is asked."""

    difference: Annotated[
        float | None,
        Option("Find the number of units that detect a difference in score of this size.", above=0, metavar="D"),
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
            most=MAX_STREAM_TRIALS,
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

    columns: Columns
    label_map: Annotated[
        Sequence[tuple[str, tuple[str, ...]]],
        Option("Replace the labels FROM by TO.", (), metavar="TO=FROM,FROM|@FILE", repeats=True),
    ]
    ignore: Ignore
    align: Annotated[
        Align, Option("How rows of several files are matched. auto: by id if there are ids, else by position.", "auto")
    ]
    missing: Annotated[
        Missing | None,
        Option(
            "What to do with items that a system lacks. error: stop. pairwise: compare each pair on the items that "
            "both have. zero: score them 0.",
            otherwise="error; zero for TREC runs and SQuAD 1.1",
        ),
    ]
    references: Annotated[
        Sequence[Any], Option("Further file of reference segments.", (), metavar="FILE", repeats=True)
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
            metavar="FILE",
            more="Use them with --unit, --by or --within COLUMN; a column without a name is called group.",
        ),
    ]


LABEL_READING = ("columns", "label_map", "ignore", "align", "group_file")
"""Reading options that also exist for files of labels in tests of independence."""

OPTIONS = list_options(SelectionOptions)
"""Options of a comparison, by name."""

PRINT_OPTIONS = list_options(TableLayoutOptions)

READING_OPTIONS = list_options(ReadingOptions)
"""Options for reading files."""


class RankingChoiceOptions(TypedDict, total=False):
    """Which candidates and measures are compared."""

    n: Annotated[
        int | Sequence[int] | str | None,
        Option(
            "Numbers of best candidates, such as 50,100,200.",
            otherwise="1, 2 and 5 times powers of ten",
            metavar="N,N",
        ),
    ]
    pairs: Pairs
    baseline: Baseline


class RankingTestOptions(TypedDict, total=False):
    """The tests of differences between measures."""

    trials: Annotated[int, TrialsOption("Number of random swaps of ranks.", 10_000)]
    seed: Seed
    alpha: Alpha
    confidence: Annotated[float, Option("Confidence level of the intervals.", 0.95, above=0, below=1)]


class RankingOptions(RankingChoiceOptions, RankingTestOptions, RunOptions, total=False):
    """Options of rankings of candidates, as keyword arguments of `sigdask.analysis.candidate_rankings.evaluate`."""

    progress: Progress


class CandidateFileOptions(TypedDict, total=False):
    """Options for reading a file of candidates."""

    columns: Annotated[
        Mapping[str, str] | Sequence[str],
        Option(
            "Roles of columns: gold (1/0, true/false, or labels) and item; item=A+B if several identify a candidate. A "
            "comma ends a column's name only before another ROLE=.",
            (),
            otherwise="gold; in UCS b.*",
            metavar="ROLE=COLUMN,...",
            repeats=True,
        ),
    ]
    format: Annotated[
        str,
        Option(
            "Format of the file: table or ucs, with its options after the name, such as table:sheet=NAME,decimal=,",
            "auto",
        ),
    ]
    positive: Annotated[
        Sequence[str], Option("Label in the gold column that counts as true.", (), metavar="LABEL", repeats=True)
    ]
    measures: Annotated[
        Sequence[str],
        Option(
            "Column of a measure.",
            (),
            otherwise="every column without another role; in UCS am.*",
            metavar="COLUMN",
            repeats=True,
        ),
    ]
    smaller: Annotated[
        Sequence[str], Option("Measure for which lower scores are better.", (), metavar="MEASURE", repeats=True)
    ]
    ignore: Ignore
    partial: Annotated[bool, Option("Gold is empty except for a random sample of the candidates.", False)]


Declaration = TypeVar("Declaration")
Function = TypeVar("Function", bound=Callable[..., Any])


def show_options(declaration: type) -> Callable[[Function], Function]:
    """Return a decorator that shows options with their defaults in a function's signature, in place of `**options`."""

    def show(function: Function) -> Function:
        hints, own = get_type_hints(declaration), inspect.signature(function)
        parameters = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for name, option in list_options(declaration).items():
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(name, kind, default=option.default, annotation=hints[name]))
        function.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return show


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
                f"no option {name!r} here: it says how data are read. Give it to sigdask.read(data, {name}=...), "
                "and compare what that returns"
            )
        if name not in options:
            hint = suggest_name(name, options)
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


def list_group_columns(names: Iterable[str | None], columns: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns that units and subsets need: all but "item", which may not be one of several joined as ids."""
    listed = [*dict.fromkeys(name for name in names if name is not None)]
    parts = columns.get("item", "").split("+")
    if "item" in listed and "item" in parts and len(parts) > 1:
        raise InputError(
            f"{spell('unit', 'item')} can mean the joined ids, {'+'.join(parts)}, or their column item",
            remedy=f"leave out {spell('unit')} for the ids; for the column, give it another name and use that",
        )
    return tuple(name for name in listed if name != "item")
