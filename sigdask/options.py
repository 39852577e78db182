"""Options of comparisons: each is declared once, with its type, default, help and bounds.

The command line, Python and plans all take them from here. A declaration stands in the annotation:
`alpha: Annotated[float, Option("Significance level.", 0.05, above=0, below=1)]`. Nothing heavy is
imported, so that a command can say what it takes at once.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated, Any, Literal, TypedDict, Union, cast, get_args, get_origin, get_type_hints

from sigdask.errors import InputError, SeveralError, SigdaskError

Alternative = Literal["two-sided", "greater", "less"]
Method = Literal["auto", "randomization", "exact", "both"]
Adjust = Literal[
    "none", "holm", "hochberg", "bh", "by", "max-t", "max-t:raw", "single-step-max-t", "bootstrap-t", "tukey"
]
AdjustTests = Literal["none", "holm", "hochberg", "bh", "by"]
Missing = Literal["error", "pairwise", "zero"]
Align = Literal["auto", "id", "position"]
Decimal = Literal[".", ","]
Ties = Literal["expected", "random", "given"]
IntervalKind = Literal["auto", "bootstrap", "inversion", "conditional-exact", "none"]
Layout = Literal["systems", "pairs"]

MAX_STREAM_TRIALS = 2**48
"""What the stream has."""


@dataclass(frozen=True, slots=True)
class Option:
    """Help, default and bounds of an option; its type is in the annotation.

    Attributes
    ----------
    help : str
        A sentence for people.
    default : object
        Its value where none is given.
    otherwise : str
        What stands for the default in a help text where it depends on the data.
    least, most : float or None
        Bounds of a number, which belong to it.
    above, below : float or None
        Bounds that do not.
    why : str
        What sets the upper bound.
    choices : tuple of str
        The words that it takes; found from its type where it is declared.
    """

    help: str
    default: Any = None
    otherwise: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    why: str = ""
    choices: tuple[str, ...] = ()

    def check(self, name: str, value: Any) -> None:
        """Raise if a value is not one of the choices or is out of bounds; None is always allowed.

        Raises
        ------
        InputError
            It says what was given and what must be.
        """
        if value is None:
            return
        if self.choices and value not in self.choices:
            raise InputError(f"{name} = {value!r}: must be one of {', '.join(self.choices)}")
        if self.above is not None and self.below is not None and not self.above < value < self.below:
            raise InputError(f"{name} = {value}: must lie between {self.above:g} and {self.below:g}")
        if self.least is not None and not value >= self.least:
            raise InputError(f"{name} = {value}: must be at least {self.least:,}")
        if self.most is not None and value > self.most:
            raise InputError(f"{name} = {value}: must be at most {self.most:,}{self.why}")


@cache
def list_options(declaration: type) -> Mapping[str, Option]:
    """Return the options that a typed dictionary declares, by name.

    Examples
    --------
    >>> list_options(ComparisonOptions)["alternative"].choices
    ('two-sided', 'greater', 'less')
    """
    options = {}
    for name, hint in get_type_hints(declaration, include_extras=True).items():
        option = next((extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, Option)), None)
        if option is not None:
            options[name] = replace(option, choices=_list_choices(hint))
    return options


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
    "wilcoxon:pratt": "Wilcoxon's signed-rank test with Pratt's rule for zeros [[wilcoxon1945,pratt1959]]",
    "mcnemar": "McNemar's test [[mcnemar1947]]",
}
"""Tests of matched pairs: each unit is answered by both systems. A methods paragraph calls them by these words; [[key]]
cites a source of `sigdask.report.methods.sources`."""

INDEPENDENT_TESTS = {
    "two-sample-t": "the two-sample t-test",
    "binomial": "the test of a difference of proportions",
    "chi2": "the chi-square test",
}
"""Tests that take the two systems for independent, as if each had answered a test set of its own: for contrast."""


class ComparisonOptions(TypedDict, total=False):
    """Options of all comparisons, as typed keyword arguments of `compare`."""

    alternative: Annotated[Alternative, Option("Alternative hypothesis on score A - score B.", "two-sided")]
    method: Annotated[
        Method,
        Option(
            "auto samples, and takes exact p-values where these cost little; exact draws none; both draws too.",
            "auto",
        ),
    ]
    exact_limit: Annotated[
        float | None,
        Option(
            "Seconds of one core that the exact p-values of a test set and metric may take together, as estimated.",
            otherwise="60 for exact; auto a fifth of a second; both 100 s a comparison, in parts an hour or so",
            least=0,
        ),
    ]
    trials: Annotated[
        int | None,
        Option(
            "Random trials.",
            otherwise="1048576; metrics of whole outputs 10000",
            least=1,
            most=MAX_STREAM_TRIALS,
            why=" (the stream has 2**48)",
        ),
    ]
    seed: Annotated[int, Option("Seed of the random trials.", 0, least=0)]
    alpha: Annotated[float, Option("Significance level.", 0.05, above=0, below=1)]
    adjust: Annotated[
        Adjust | None,
        Option("How p is adjusted for many comparisons.", otherwise="max-t for three systems and more, else none"),
    ]
    beside: Annotated[
        bool, Option("Show p with finer units exchanged, and with coarser ones where differences depend on them.", True)
    ]
    stop: Annotated[
        str | Any | None,
        Option(
            "End each comparison's counting early: besag-clifford[:h=N] gives p, confidence[:epsilon=E] decisions.",
            otherwise="count all trials",
        ),
    ]
    tests: Annotated[
        str | Sequence[str] | None,
        Option(
            f"Classical tests beside p: {', '.join(MATCHED_TESTS)}; {', '.join(INDEPENDENT_TESTS)}; all.",
            otherwise="none",
        ),
    ]
    interval: Annotated[
        IntervalKind | None,
        Option(
            "Of differences and scores: auto is Tango's where items are scored 0 or 1, inversion of other means, else "
            "the BCa bootstrap; inversion leaves out what the test of a mean rejects; conditional-exact agrees with "
            "the exact test of 0/1 scores.",
            otherwise="auto for 100 comparisons or fewer, else none",
        ),
    ]
    confidence: Annotated[float, Option("Confidence level of the intervals.", 0.95, above=0, below=1)]
    resamples: Annotated[
        int | None,
        Option(
            "Resamples of intervals.",
            otherwise="10000; metrics of whole outputs 1000; as many as trials to invert the test",
            least=1,
            most=MAX_STREAM_TRIALS,
            why=" (the stream has 2**48)",
        ),
    ]
    second_run: Annotated[bool, Option("Cross-check by a second, independent run of as many trials.", True)]
    cluster: Annotated[
        str | Any,
        Option("auto, none, threads, local, local+tcp, current, tls://…, tcp://…, SCHEDULER.json, FILE.toml.", "auto"),
    ]
    workers: Annotated[
        int | None, Option("Threads or processes to start.", otherwise="one a core", least=1, most=1_000_000)
    ]
    progress: Annotated[Callable[[int, int], None] | None, Option("Called with trials done and trials in all.")]
    cache: Annotated[
        bool,
        Option("Keep what is extracted from outputs, and look there first: $SIGDASK_CACHE, ~/.cache/sigdask.", True),
    ]
    blocks_per_task: Annotated[
        int | None, Option("Size of tasks in blocks of 4,096 trials, instead of by measured speed.", least=1)
    ]


class IndependenceOptions(TypedDict, total=False):
    """Options of tests of independence, as typed keyword arguments of `independence`."""

    alternative: Annotated[Alternative, Option("Of the score; two-sided: as far from what is expected.", "greater")]
    method: Annotated[Method, Option("auto takes the exact p where it is had within seconds.", "auto")]
    adjust: Annotated[
        AdjustTests | None,
        Option(
            "Adjust p over all labellings and metrics: none, holm, hochberg, bh, by.",
            otherwise="holm of several labellings, else none",
        ),
    ]
    trials: Annotated[
        int | None,
        Option(
            "Random permutations.", otherwise="1048576", least=1, most=MAX_STREAM_TRIALS, why=" (the stream has 2**48)"
        ),
    ]
    seed: Annotated[int, Option("Seed of the random trials.", 0, least=0)]
    alpha: Annotated[float, Option("Significance level.", 0.05, above=0, below=1)]
    second_run: Annotated[bool, Option("Cross-check by a second, independent run of as many trials.", True)]
    cluster: Annotated[str | Any, Option("As for `compare`.", "auto")]
    workers: Annotated[
        int | None, Option("Threads or processes to start.", otherwise="one a core", least=1, most=1_000_000)
    ]
    progress: Annotated[Callable[[int, int], None] | None, Option("Called with trials done and trials in all.")]
    blocks_per_task: Annotated[
        int | None, Option("Size of tasks in blocks of 4,096 trials, instead of by measured speed.", least=1)
    ]


class SelectionOptions(ComparisonOptions, total=False):
    """Options of comparisons and of what is compared, as keyword arguments of `compare_all` and `compare_sets`."""

    metrics: Annotated[
        str | Sequence[Any] | None,
        Option("See `sigdask metrics`, or MODULE:ATTRIBUTE.", otherwise="those that the data suggest"),
    ]
    pairs: Annotated[Sequence[tuple[str, str]] | None, Option("Systems to compare.", otherwise="all pairs")]
    baseline: Annotated[str | None, Option("Compare every other system with this one only, which becomes B.")]
    unit: Annotated[
        str | Sequence[str] | None,
        Option(
            "What is exchanged as a whole, such as document; of several nested ones the coarsest.", otherwise="item"
        ),
    ]
    by: Annotated[str | None, Option("Compare within each value of a column.")]
    together: Annotated[
        bool, Option("Judge each pair over all subsets or sets as well: by the mean of its differences.", False)
    ]


class TableLayoutOptions(TypedDict, total=False):
    """Options of the layout of tables for papers."""

    layout: Annotated[
        Layout | None,
        Option(
            "Of tables for papers: systems by metrics, or a row a comparison.",
            otherwise="systems where all pairs of three or more were compared, or all with one baseline",
        ),
    ]
    digits: Annotated[
        int | None, Option("Decimals of scores in tables for papers.", otherwise="4; 2 with percent", least=0, most=15)
    ]
    percent: Annotated[bool, Option("Write accuracy, F1 and other shares of 1 in per cent there.", False)]


class PowerOptions(TypedDict, total=False):
    """Options of power analyses, in addition to options of comparisons."""

    difference: Annotated[float | None, Option("How many units find a difference of scores of this size.")]
    units: Annotated[int | None, Option("Which difference so many units find.", otherwise="the present ones", least=2)]
    power: Annotated[float, Option("How often it is to be found.", 0.8, above=0, below=1)]
    samples: Annotated[
        int | None,
        Option("Samples that each power is of.", otherwise="2,000; 500 of more than 100 comparisons", least=100),
    ]


class ReadingOptions(TypedDict, total=False):
    """Options for reading the files of a test set."""

    id_column: Annotated[str | None, Option("Column of item ids.")]
    gold_column: Annotated[str | None, Option("Column of what is right.")]
    prediction_column: Annotated[str | None, Option("Column of the answer, in files of one system.")]
    system_column: Annotated[str | None, Option("Column of the system, in long tables.")]
    score_column: Annotated[str | None, Option("Column of the score, in long tables.")]
    ignore: Annotated[Sequence[str], Option("Columns left out.", ())]
    label_map: Annotated[Sequence[tuple[str, tuple[str, ...]]], Option("Labels read as another.", ())]
    align: Annotated[Align, Option("How rows of several files belong together.", "auto")]
    decimal: Annotated[
        Decimal | None, Option("Decimal separator of scores.", otherwise="found where it cannot be mistaken")
    ]
    missing: Annotated[
        Missing | None, Option("What an absent score means.", otherwise="error; zero for topics of runs")
    ]
    min_items: Annotated[
        int | None,
        Option("Items in common that are enough for two systems.", otherwise="5 % of the items of both", least=0),
    ]
    references: Annotated[Sequence[Any], Option("Further reference files of segments.", ())]
    documents: Annotated[
        Any, Option("File of the document of each segment, one a line, or a table of item and document.")
    ]
    group_file: Annotated[Any, Option("Table of item and group, in any format; a column a way to group.")]
    most_unpacked: Annotated[
        int | None,
        Option("Bytes that a packed file may become.", otherwise="100 times its size, at least 32 MB", least=1),
    ]


OPTIONS = list_options(SelectionOptions)
"""What is asked of a comparison, by name."""

PERMUTATION_OPTIONS = list_options(IndependenceOptions)
"""What is asked of a test of independence."""

PRINT_OPTIONS = list_options(TableLayoutOptions)
"""What is asked of tables for papers."""

READING_OPTIONS = list_options(ReadingOptions)
"""What is said of its files."""

POWER_OPTIONS = list_options(PowerOptions)
"""What is asked of its power."""


RANKING_TRIALS = 10_000


class RankingOptions(TypedDict, total=False):
    """Options of rankings of candidates, as keyword arguments of `sigdask.analysis.candidate_rankings.evaluate`."""

    n: Annotated[
        int | Sequence[int] | str | None,
        Option(
            "Numbers of best candidates: 50,100,200 or a curve 50:2000:50.", otherwise="1, 2, 5 times powers of ten"
        ),
    ]
    baseline: Annotated[str | None, Option("Compare every other measure with this one only, which becomes B.")]
    pairs: Annotated[Sequence[tuple[str, str]] | None, Option("Measures to compare.", otherwise="all pairs")]
    ties: Annotated[
        Ties,
        Option(
            "Candidates of one score: the mean over all orders, one random order, or as they are given.", "expected"
        ),
    ]
    trials: Annotated[int, Option("Random exchanges of ranks.", RANKING_TRIALS, least=1, most=MAX_STREAM_TRIALS)]
    seed: Annotated[int, Option("Seed of the random trials.", 0, least=0)]
    alpha: Annotated[float, Option("Significance level.", 0.05, above=0, below=1)]
    confidence: Annotated[float, Option("Of intervals.", 0.95, above=0, below=1)]
    samples: Annotated[
        int | None, Option("Random samples to draw, as if they alone had been judged.", least=1, most=100_000)
    ]
    sample_size: Annotated[int | None, Option("Candidates of each sample.", least=1, most=2**31)]
    cluster: Annotated[
        str | Any,
        Option("auto, none, threads, local, local+tcp, current, tls://…, tcp://…, SCHEDULER.json, FILE.toml.", "auto"),
    ]
    workers: Annotated[
        int | None, Option("Threads or processes to start.", otherwise="one a core", least=1, most=1_000_000)
    ]
    progress: Annotated[Callable[[int, int], None] | None, Option("Called with trials done and trials in all.")]


class CandidateFileOptions(TypedDict, total=False):
    """Options for reading a file of candidates."""

    gold_column: Annotated[
        str | None,
        Option("Column of what is true: 1/0, true/false, or labels.", otherwise="gold; b.*; tpclass"),
    ]
    positive: Annotated[Sequence[str], Option("Label in the gold column of what is true.", ())]
    ids: Annotated[Sequence[str], Option("Column of ids; several name a candidate together.", ())]
    measures: Annotated[
        Sequence[str], Option("Column of a measure.", (), otherwise="every column of numbers; am.*, real features")
    ]
    smaller: Annotated[Sequence[str], Option("Measure of which a smaller score is better.", ())]
    ignore: Annotated[Sequence[str], Option("Columns left out.", ())]
    partial: Annotated[bool, Option("Gold is empty but for a random sample of the candidates.", False)]
    decimal: Annotated[
        Decimal | None, Option("Decimal separator of scores.", otherwise="found where it cannot be mistaken")
    ]
    most_unpacked: Annotated[
        int | None,
        Option("Bytes that a packed file may become.", otherwise="100 times its size, at least 32 MB", least=1),
    ]


RANKING_OPTIONS = list_options(RankingOptions)
"""What is asked of rankings, by name."""

CANDIDATE_OPTIONS = list_options(CandidateFileOptions)
"""What is said of files of candidates."""


def fill_options(values: SelectionOptions) -> SelectionOptions:
    """Return all options of comparisons, with defaults for options that are not given.

    Raises
    ------
    InputError
        A value is none of the choices, or out of its bounds.
    TypeError
        There is no such option.
    """
    return cast("SelectionOptions", _fill_defaults(OPTIONS, values))


def fill_permutation_options(values: IndependenceOptions) -> IndependenceOptions:
    """Return all options of a test of independence, with defaults for options that are not given."""
    return cast("IndependenceOptions", _fill_defaults(PERMUTATION_OPTIONS, values))


def _fill_defaults(options: Mapping[str, Option], values: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {name: option.default for name, option in options.items()}
    for name, value in values.items():
        if name not in options:
            raise TypeError(f"no option {name!r}; there are: {', '.join(options)}")
        options[name].check(name, value)
        result[name] = value
    return result


Interface = Literal["python", "plan"]

FLAG_NAMES = {
    "id": "id_column", "metric": "metrics", "pair": "pairs", "map": "label_map", "reference": "references",
    "groups": "group_file", "measure": "measures",
}  # fmt: skip
"""Options of the command line, without their dashes, that are declared under another name."""

PLAN_NAMES = {name: flag for flag, name in FLAG_NAMES.items() if flag in {"id", "map", "groups"}}
"""Declared options that plans call as the command line does."""

UNDECLARED_OPTIONS = ("gold", "format", "within")
"""Options of the command line that Python and plans have as well, beside those that are declared."""

VALUE = (
    r"'[^']*'|\"[^\"]*\"|[A-Z][A-Z_]*(?:[+=:,][A-Z_]+)*(?![a-z])|[\w.+-]+(?:[:+=][\w.+=,|-]*\w)+|[\d.]+\b|[,.](?=\s|$)"
)
"""What may follow an option in a sentence as its value: quoted, NAME, a:b, a number, a mark."""

FLAG = re.compile(rf"--([a-z][a-z-]*[a-z])(?![\w-])(?:[ =]({VALUE}|[\w./~-]*\w))?")

PROSE = re.compile(
    "a|all|also|an|and|are|as|asks?|at|averages?|be|below|beside|brings?|by|choose|chooses|compares?|cannot|did|do|does|"
    "each|else|for|from|gives?|has|have|holds?|if|in|instead|is|it|its|judges?|keeps?|leaves?|may|means?|must|names?|no|"
    "not|of|on|or|otherwise|reads?|said|says?|shows?|takes?|tells?|than|that|the|their|then|there|they|this|to|together|"
    "was|where|which|while|with|without|writes?|you"
)
"""Words that go on with a sentence after an option."""


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


def rename_options(message: str, interface: Interface) -> str:
    """Return a message with its command-line options spelled as in Python or in a plan.

    Examples
    --------
    >>> rename_options("say --align position, or --id task+id", "plan")
    'say align = "position", or id = "task+id"'
    """
    return FLAG.sub(partial(_format_option, interface), message)


def _format_option(interface: Interface, match: re.Match[str]) -> str:
    flag, value = match[1], match[2]
    name = FLAG_NAMES.get(flag, flag.replace("-", "_"))
    options = {
        **CANDIDATE_OPTIONS,
        **RANKING_OPTIONS,
        **POWER_OPTIONS,
        **PERMUTATION_OPTIONS,
        **PRINT_OPTIONS,
        **READING_OPTIONS,
        **OPTIONS,
    }
    if name not in options and name not in UNDECLARED_OPTIONS:
        return match[0]  # an option of another tool, or of the command line alone
    choices = options[name].choices if name in options else ()
    is_word = value is not None and re.fullmatch(r"[\w-]+", value) and not value.isupper() and not value.isdigit()
    rest = ""
    if is_word and value not in choices and (choices or PROSE.fullmatch(value)):
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
