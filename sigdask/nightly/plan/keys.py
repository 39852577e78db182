"""The keys of a plan file: declarations that validate, document and hold the defaults.

Pydantic reads these declarations. The plan that results is in `sigdask.nightly.plan.model`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform

from pydantic import ConfigDict, Discriminator, Field, StrictBool, StrictInt, StrictStr, Tag

from sigdask.interface import PLAN_KEYS
from sigdask.options import (
    OPTIONS,
    READING_OPTIONS,
    Option,
)

CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)
MAX_ENTRIES = 100_000
"""Maximum number of test sets in a plan."""

Text = Annotated[StrictStr, Field(min_length=1, max_length=4096, pattern=r"\S")]
Share = Annotated[float, Field(strict=True, gt=0, lt=1)]
Names = Annotated[tuple[Text, ...], Field(min_length=1)]
Pair = tuple[Text, Text]
Format = Annotated[
    Text, Field(description="A format that `sigdask list formats` lists, with its options after the name.")
]
Margin = Annotated[
    float, Field(strict=True, gt=0, description="Margin on the metric's own scale: 0.01 for a point of accuracy.")
]


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


Table = TypeVar("Table")


@dataclass_transform()
def plan_table(options: Iterable[Option] = (), *, after: str = "") -> Callable[[type[Table]], type[Table]]:
    """Return a decorator that makes a class a table of a plan, with fields that pydantic validates.

    Parameters
    ----------
    options : iterable of Option
        Options of the table in addition to its own fields, with their types, help, bounds and defaults.
    after : str
        Name of the field after which they are inserted.
    """

    def build(table: type[Table]) -> type[Table]:
        own, table.__annotations__ = table.__annotations__, {}
        for name in ("", *own):
            if name:
                table.__annotations__[name] = own[name]
            for option in options if name == after else ():
                key = get_key(option.name)
                table.__annotations__[key] = declare_field(option)
                setattr(table, key, None if option.default == () else option.default)
        table.__pydantic_config__ = CLOSED  # type: ignore[attr-defined]
        return dataclass(frozen=True, slots=True)(table)

    return build


def get_key(name: str) -> str:
    """Return the key by which plans call a declared option."""
    return PLAN_KEYS.get(name, name)


@plan_table()
class BaselineKeys:
    """Pairs of every other system with one baseline."""

    baseline: Annotated[Text, Field(description="Compare every other system with this one, which becomes B.")]


Pairs = Annotated[
    Annotated[Literal["all"], Tag("text")]
    | Annotated[Annotated[tuple[Pair, ...], Field(min_length=1)], Tag("list")]
    | Annotated[BaselineKeys, Tag("table")],
    SHAPE,
]

TYPES: dict[str, Any] = {
    "metrics": Names, "pairs": Pairs, "tests": TextOrTexts, "references": TextOrTexts, "columns": dict[Text, Text],
    "label_map": dict[Text, Names],
}  # fmt: skip
"""Types of options with several values."""

KINDS = {bool: StrictBool, int: StrictInt, float: Annotated[float, Field(strict=True)]}
"""Types of numbers and truth values."""

NOTES = {
    "pairs": ' "all", { baseline = NAME }, or a list of [A, B].',
    "label_map": " TARGET = [LABEL, LABEL].",
    "columns": " A table ROLE = COLUMN.",
    "interval": " In plans by default none.",
}
"""Notes on options in plans, in addition to their help."""


def declare_field(option: Option) -> Any:
    """Return the annotation of an option's key: its type, help and bounds."""
    default = f" By default {option.otherwise}." if option.otherwise else ""
    description = f"{option.help}{default}{NOTES.get(option.name, '')}"
    simple: Any = Literal[option.choices] if option.choices else Names if option.repeats else Text
    kind: Any = TYPES.get(option.name) or KINDS.get(option.kind, simple)
    return Annotated[
        kind | None if option.default in {None, ()} else kind,
        Field(description=description, ge=option.least, le=option.most, gt=option.above, lt=option.below),
    ]


def choose_options(options: Mapping[str, Option], without: Iterable[str] = (), **defaults: Any) -> dict[str, Option]:
    """Return the options that a table of plans takes, with defaults of its own."""
    return {
        name: replace(option, default=defaults.get(name, option.default))
        for name, option in options.items()
        if name not in without
    }


ELSEWHERE = ("baseline", "cluster", "unit")
"""Options of comparisons that have another form in plans."""

PYTHON_ONLY = ("together", "progress", "cache", "beside")
"""Options of comparisons that plans do not have."""

OF_THE_PLAN = ("seed", "alpha", "second_run", "adjust", "workers")
"""Options that all test sets share."""

COMPARISON = choose_options(OPTIONS, (*ELSEWHERE, *PYTHON_ONLY), pairs="all", interval="none")
PLAN_OPTIONS = choose_options(COMPARISON, ["by"])
SET_OPTIONS = choose_options(COMPARISON, OF_THE_PLAN, **dict.fromkeys(COMPARISON))
FILE_OPTIONS = choose_options(READING_OPTIONS, missing="error")


@plan_table([*FILE_OPTIONS.values(), *SET_OPTIONS.values()], after="unit")
class TestSetKeys:
    """One test set."""

    name: Annotated[Text, Field(description="Unique name. It also determines the random stream.")]
    systems: Annotated[
        Systems,
        Field(
            description="A table NAME = PATH, a list of paths, or a path with wildcards or {system} for the name. "
            "Several files under one name are replicates, except logs of samples in a folder or pattern."
        ),
    ]
    gold: Annotated[Text | None, Field(description="Gold-standard file.")] = None
    format: Format = "auto"
    unit: Annotated[Text, Field(description="The unit that is swapped as a whole: item or a column.")] = "item"


REPORT_OPTIONS = (
    Option("File for all results as JSON.", name="json"),
    Option("File for a CSV table, one row per comparison.", name="csv"),
    Option("File for the same table as Parquet.", name="parquet"),
    Option(
        "File for the scores of each unit and its contribution to the difference, as the ending says: .csv, .jsonl, "
        ".parquet. CSV and JSON lines may also end in .gz.", name="items"
    ),
    Option("File for tables for papers as Markdown, one per test set.", name="markdown"),
    Option("File for the same tables as LaTeX with booktabs.", name="latex"),
    Option("File for the plain-text report.", name="text"),
    Option("File for a self-contained HTML page.", name="html"),
    Option(
        "Folder of a static site, which each run updates: plans, nights, and a page for each night.", name="site"
    ),
)  # fmt: skip
"""Files that a run writes at its end."""


@plan_table(REPORT_OPTIONS)
class ReportKeys:
    """Files to write at the end; {date} and {time} stand for the start of the run."""


RULE_SCOPE = (
    Option("By default the baseline of each test set.", name="baseline"),
    Option("By default all.", name="test_sets", repeats=True),
    Option("By default all.", name="metrics", repeats=True),
)
"""Keys that choose the comparisons of a rule of the gate."""


@plan_table(RULE_SCOPE, after="alpha")
class NotWorseKeys:
    """No system is significantly worse than the baseline."""

    rule: Literal["not-worse"]
    alpha: Annotated[
        Share | None,
        Field(
            description="Level of the rule in each run. By default the gate's false_alarms_per_year gives the level."
        ),
    ] = None


@plan_table(RULE_SCOPE, after="alpha")
class NonInferiorKeys:
    """Every system is shown to be worse by less than a margin, if at all."""

    rule: Literal["non-inferior"]
    margin: Margin
    alpha: Annotated[Share | None, Field(description="By default the plan's.")] = None


RuleKeys = Annotated[NotWorseKeys | NonInferiorKeys, Discriminator("rule")]


GATE_OPTIONS = (
    Option(
        "Expected number of runs with new outputs per year.", 365, above=0, most=1e6, name="runs_per_year", kind=float
    ),
    Option(
        "Expected number of runs per year in which not-worse rules fail although nothing is worse. Divided by "
        "runs_per_year, it is the level of each run over all comparisons of these rules. The level is at most alpha. "
        "By default 4 for rules without an alpha of their own.",
        above=0, most=1e6, name="false_alarms_per_year", kind=float
    ),
    Option("File for JUnit XML, for CI.", name="junit"),
    Option("File for JSON.", name="json"),
    Option("Program and arguments to run at the end, without a shell.", name="command", repeats=True),
    Option(
        "http(s) URL that the gate's JSON is posted to at the end; $NAME takes it from the environment.", name="webhook"
    ),
    Option(
        "Runs after which command and webhook are called. new: failed runs whose outputs differ from outputs that "
        "failed before.", "failed", name="when", choices=("always", "failed", "new")
    ),
    Option("Seconds to wait for command or webhook.", 30, above=0, most=3600, name="timeout", kind=float),
)  # fmt: skip
"""Keys for the gate's rate of false alarms and its notifications."""


@plan_table(GATE_OPTIONS, after="rules")
class GateKeys:
    """Conditions that the results must meet for `sigdask run` to exit with 0."""

    rules: Annotated[tuple[RuleKeys, ...], Field(min_length=1, description="All rules must hold.")]


@plan_table(PLAN_OPTIONS.values(), after="name")
class PlanKeys:
    """A sigdask plan: what a night evaluates."""

    test_set: Annotated[
        tuple[TestSetKeys, ...], Field(min_length=1, max_length=MAX_ENTRIES, description="The test sets.")
    ]
    name: Annotated[Text | None, Field(description="Name of the plan. By default the file's name.")] = None
    cluster: Annotated[Text, Field(description="A value of --cluster, such as a cluster file.")] = "auto"
    store: Annotated[
        Text | None, Field(description="Path or URL of the database. By default in the folder of the plan.")
    ] = None
    report: Annotated[ReportKeys, Field(description="Files to write at the end.")] = ReportKeys()
    gate: Annotated[
        GateKeys | None, Field(description="Conditions on the results; if one fails, `sigdask run` exits with 1.")
    ] = None
