"""The model of a plan file: pydantic validates its keys, documents them, and resolves their paths.

Each key is declared once, with its type, description, default and values. Options of comparisons are declared in
`sigdask.options`. The plan that a run uses is a `Plan`, in which the test sets have all options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform

from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetPydanticSchema,
    StrictBool,
    StrictInt,
    StrictStr,
    Tag,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError

from sigdask.errors import InputError
from sigdask.formats import Source
from sigdask.formats.roles import ROLES
from sigdask.interface import PLAN_KEYS
from sigdask.nightly.gate.rules import Rule
from sigdask.nightly.plan import paths
from sigdask.nightly.test_sets import TestSet
from sigdask.options import OPTIONS, READING_OPTIONS, Option, SelectionOptions
from sigdask.statistics.classical import parse_tests


def _convert(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a call returns; an InputError becomes the error of the key."""
    try:
        return call(*arguments)
    except InputError as error:
        raise PydanticCustomError("input", "{text}", {"text": str(error)}) from None


def resolve_by(find: Callable[[Any, Path], Any]) -> AfterValidator:
    """Return the conversion of a value by the plan's folder, which is the context."""
    return AfterValidator(lambda value, info: _convert(find, value, info.context))


def describe(text: str, **bounds: Any) -> Any:
    """Return the description of a key, with the bounds of its value."""
    return Field(description=text, **bounds)


def validate_as(annotation: Any) -> GetPydanticSchema:
    """Return the annotation of a value that pydantic reads as another type, and then converts."""
    return GetPydanticSchema(lambda _, handler: handler.generate_schema(annotation))


Text = Annotated[StrictStr, Field(max_length=4096, pattern=r"\S")]
Share = Annotated[float, Field(strict=True, gt=0, lt=1)]
Names = Annotated[tuple[Text, ...], Field(min_length=1)]
InputFile = Annotated[Path, validate_as(Annotated[Text, resolve_by(paths.resolve_existing)])]
GoldPath = Annotated[Path, validate_as(Annotated[Text, resolve_by(paths.resolve_source)])]
OutputFile = Annotated[Path, validate_as(Annotated[Text, resolve_by(paths.resolve_output)])]


def _find_shape(value: Any) -> str | None:
    """Return whether a plan's value is a text, a list or a table, which decides by which type it is validated."""
    for shape, kinds in (("text", str), ("list", (list, tuple)), ("table", Mapping)):
        if isinstance(value, kinds):
            return shape
    return None


SHAPE = Discriminator(_find_shape)
TextShape = Annotated[Text, Tag("text")]
TextOrTexts = Annotated[TextShape | Annotated[Names, Tag("list")], SHAPE]
NamedPaths = Annotated[dict[Text, TextOrTexts], Field(min_length=1)]
SystemPaths = Annotated[TextShape | Annotated[Names, Tag("list")] | Annotated[NamedPaths, Tag("table")], SHAPE]

Table = TypeVar("Table")


@dataclass_transform(kw_only_default=True)
def plan_table(options: Mapping[str, Option] | None = None) -> Callable[[type[Table]], type[Table]]:
    """Return a decorator that makes a class a table of a plan, with a field for each of these options as well."""

    def build(table: type[Table]) -> type[Table]:
        for option in (options or {}).values():
            key = PLAN_KEYS.get(option.name, option.name)
            table.__annotations__[key] = declare_field(option)
            setattr(table, key, None if option.default == () else option.default)
        table.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)  # type: ignore[attr-defined]
        return dataclass(frozen=True, slots=True, kw_only=True)(table)

    return build


@plan_table()
class BaselineKeys:
    """Pairs of every other system with one baseline."""

    baseline: Annotated[Text, describe("Compare every other system with this one, which becomes B.")]


PairList = Annotated[tuple[tuple[Text, Text], ...], Field(min_length=1)]
Pairs = Annotated[
    Annotated[Literal["all"], Tag("text")] | Annotated[PairList, Tag("list")] | Annotated[BaselineKeys, Tag("table")],
    SHAPE,
]

Role: Any = Literal[tuple(ROLES)]
SiteFolder = Annotated[Path, validate_as(Annotated[Text, resolve_by(paths.resolve_site)])]

TYPES: dict[str, Any] = {
    "metrics": Names, "pairs": Pairs, "columns": dict[Role, Text],
    "tests": Annotated[TextOrTexts, AfterValidator(lambda value: _convert(parse_tests, value))],
    "references": Annotated[TextOrTexts, resolve_by(paths.resolve_references)],
    "documents": InputFile, "group_file": InputFile,
    "items": Annotated[Path, validate_as(Annotated[Text, resolve_by(paths.resolve_unit_file)])],
    "label_map": Annotated[dict[Text, Names], AfterValidator(lambda table: tuple(table.items()))],
}  # fmt: skip
"""Types of options that are no single text, number or truth value."""

KINDS = {bool: StrictBool, int: StrictInt, float: Annotated[float, Field(strict=True)], Path: OutputFile}
"""Types of numbers, truth values and output files."""

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
    simple: Any = Literal[option.choices] if option.choices else Names if option.repeats else Text
    kind: Any = TYPES.get(option.name) or KINDS.get(option.kind, simple)
    return Annotated[
        kind | None if option.default in {None, ()} else kind,
        Field(
            description=f"{option.help}{default}{NOTES.get(option.name, '')}",
            ge=option.least, le=option.most, gt=option.above, lt=option.below,
        ),
    ]  # fmt: skip


def choose_options(options: Mapping[str, Option], without: Iterable[str] = (), **defaults: Any) -> dict[str, Option]:
    """Return the options that a table of plans takes, with defaults of its own."""
    return {
        name: replace(option, default=defaults.get(name, option.default))
        for name, option in options.items()
        if name not in without
    }


NOT_IN_PLANS = ("baseline", "cluster", "unit", "together", "progress", "cache")
"""Options of comparisons that plans do not have, or have in another form."""

OF_THE_PLAN = ("seed", "alpha", "second_run", "adjust", "workers")
"""Options that all test sets share."""

COMPARISON = choose_options(OPTIONS, NOT_IN_PLANS, pairs="all", interval="none")
PLAN_OPTIONS = choose_options(COMPARISON, ["by"])
SET_OPTIONS = choose_options(COMPARISON, OF_THE_PLAN, **dict.fromkeys(COMPARISON))
FILE_OPTIONS = choose_options(READING_OPTIONS)


def _find_sources(systems: Any, info: ValidationInfo) -> Any:
    """Return the sources of a test set's systems in the plan's folder."""
    format_ = info.data.get("format", "auto")
    return _convert(paths.find_sources, systems, info.context, format_)


@plan_table(FILE_OPTIONS | SET_OPTIONS)
class TestSetKeys:
    """One test set."""

    name: Annotated[Text, describe("Unique name. It also determines the random stream.")]
    format: Annotated[
        Text,
        describe("A format that `sigdask list formats` lists, with its options after the name."),
    ] = "auto"  # fmt: skip
    systems: Annotated[
        tuple[Source, ...],
        validate_as(Annotated[SystemPaths, AfterValidator(_find_sources)]),
        Field(
            description="A table NAME = PATH, a list of paths, or a path with wildcards or {system} for the name. "
            "Several files under one name are replicates, except logs of samples in a folder or pattern."
        ),
    ]
    gold: Annotated[GoldPath | None, describe("Gold-standard file.")] = None
    unit: Annotated[Text | None, describe("The unit that is swapped as a whole: item, the default, or a column.")] = (
        None
    )


OUTPUTS = {
    "json": "File for all results as JSON.",
    "csv": "File for a CSV table, one row per comparison.",
    "parquet": "File for the same table as Parquet.",
    "items": "File for the scores of each unit and its contribution to the difference, as the ending says: .csv "
    "or .parquet.",
    "markdown": "File for tables for papers as Markdown, one per test set.",
    "latex": "File for the same tables as LaTeX with booktabs.",
    "text": "File for the plain-text report.",
    "html": "File for a self-contained HTML page.",
}
"""Contents of a report's files, by plan key, and their descriptions."""


@plan_table({name: Option(text, name=name, kind=Path) for name, text in OUTPUTS.items()})
class ReportFiles:
    """Files to write at the end; {date} and {time} stand for the start of the run."""

    site: Annotated[
        SiteFolder | None,
        describe("Folder of a static site, which each run updates: plans, nights, and a page for each night."),
    ] = None

    @property
    def files(self) -> dict[str, Path]:
        """Paths of the files by their contents (`OUTPUTS`)."""
        return {name: path for name in OUTPUTS if (path := getattr(self, name)) is not None}

    def with_page(self, path: Path) -> ReportFiles:
        """Return the files with a page at a path."""
        return replace(self, **dict(html=path))  # noqa: C408  # fields of options are unknown to mypy

    def fill_dates(self, start: datetime) -> ReportFiles:
        """Return the files with the date and time of a run's start in their names."""
        return replace(self, **{name: fill_date(path, start) for name, path in self.files.items()})


def fill_date(path: Path, start: datetime) -> Path:
    """Return a path with the date and time in place of `{date}` and `{time}`.

    Examples
    --------
    >>> fill_date(Path("night-{date}.json"), datetime(2026, 1, 31)).name
    'night-2026-01-31.json'
    """
    return Path(str(path).replace("{date}", f"{start:%Y-%m-%d}").replace("{time}", f"{start:%H%M%S}"))


@plan_table()
class _RuleKeys:
    """Level and comparisons of a rule of the gate."""

    baseline: Annotated[Text | None, describe("By default the baseline of each test set.")] = None
    test_sets: Annotated[Names, describe("By default all.")] = ()
    metrics: Annotated[Names, describe("By default all.")] = ()


@plan_table()
class NotWorseKeys(_RuleKeys):
    """No system is significantly worse than the baseline."""

    rule: Literal["not-worse"]
    alpha: Annotated[
        Share | None,
        describe("Level of the rule in each run. By default the gate's false_alarms_per_year gives the level."),
    ] = None


@plan_table()
class NonInferiorKeys(_RuleKeys):
    """Every system is shown to be worse by less than a margin, if at all."""

    rule: Literal["non-inferior"]
    margin: Annotated[
        float, describe("Margin on the metric's own scale: 0.01 for a point of accuracy.", strict=True, gt=0)
    ]
    alpha: Annotated[Share | None, describe("By default the plan's.")] = None


RuleKeys = Annotated[NotWorseKeys | NonInferiorKeys, Discriminator("rule")]


@plan_table()
class Gate:
    """Conditions that the results must meet for `sigdask run` to exit with 0."""

    rules: Annotated[
        tuple[Rule, ...],
        validate_as(Annotated[tuple[RuleKeys, ...], Field(min_length=1)]),
        describe("Rules, all of which must hold."),
    ]
    runs_per_year: Annotated[
        float, describe("Expected number of runs with new outputs per year.", strict=True, gt=0, le=1e6)
    ] = 365
    false_alarms_per_year: Annotated[
        float | None,
        describe(
            "Expected number of runs per year in which not-worse rules fail although nothing is worse. Divided by "
            "runs_per_year, it is the level of each run over all comparisons of these rules. The level is at most "
            "alpha. By default 4 for rules without an alpha of their own.", strict=True, gt=0, le=1e6
        ),
    ] = None  # fmt: skip
    junit: Annotated[OutputFile | None, describe("File for JUnit XML, for CI.")] = None
    json: Annotated[OutputFile | None, describe("File for JSON.")] = None
    webhook: Annotated[
        Annotated[Text, resolve_by(paths.resolve_webhook)] | None,
        describe("http(s) URL that the gate's JSON is posted to at the end; $NAME takes it from the environment."),
    ] = None
    when: Annotated[Literal["always", "failed"], describe("Runs after which webhook is called.")] = "failed"


@plan_table(PLAN_OPTIONS)
class PlanKeys:
    """A sigdask plan: what a night evaluates."""

    test_set: Annotated[tuple[TestSetKeys, ...], describe("The test sets.", min_length=1)]
    name: Annotated[Text | None, describe("Name of the plan. By default the file's name.")] = None
    cluster: Annotated[
        Text, resolve_by(paths.resolve_cluster), describe("A value of --cluster, such as a cluster file.")
    ] = "auto"
    store: Annotated[
        Annotated[Text, resolve_by(paths.resolve_store)] | None,
        describe("Path or URL of the database. By default in the folder of the plan."),
    ] = None
    report: Annotated[ReportFiles, describe("Files to write at the end.")] = field(default_factory=ReportFiles)
    gate: Annotated[Gate | None, describe("Conditions on the results; if one fails, `sigdask run` exits with 1.")] = (
        None
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: the test sets and options of a nightly evaluation, as `load_plan` reads them from a file.

    Attributes
    ----------
    path : Path
        Absolute path of the plan file.
    name : str
        Name of the plan, by default the file's name without its ending.
    test_sets : tuple of TestSet
        Test sets, in the order of the file.
    comparison : SelectionOptions
        Options that all test sets share: seed, alpha, second_run, adjust and workers.
    cluster : str
        Where trials are counted: a value of `--cluster`.
    store : str
        File or URL of the database.
    report : ReportFiles
        Files to write at the end.
    gate : Gate or None
        Rules that a run must pass. None if there are no rules.
    """

    path: Path
    name: str
    test_sets: tuple[TestSet, ...]
    comparison: SelectionOptions
    cluster: str
    store: str
    report: ReportFiles
    gate: Gate | None

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules of the gate; none if the plan has no gate."""
        return () if self.gate is None else self.gate.rules

    def list_inputs(self) -> dict[Path, str]:
        """Return the use of each file that the plan reads."""
        uses = {self.path: "the plan itself"}
        for test_set in self.test_sets:
            uses |= dict.fromkeys(test_set.list_files(), f'an input of test set "{test_set.name}"')
        return uses

    def iter_outputs(self) -> Iterator[tuple[tuple[str, ...], Path]]:
        """Yield the key and path of each file that a run writes, the store included."""
        yield from ((("report", name), path) for name, path in self.report.files.items())
        for name in ("junit", "json"):
            if (path := getattr(self.gate, name, None)) is not None:
                yield ("gate", name), path
        if "://" not in self.store:
            yield ("store",), Path(self.store)

    def list_files(self) -> dict[Path, str]:
        """Return the use of each file that other outputs must not overwrite: inputs, store, files of the gate."""
        outputs = ((key, path) for key, path in self.iter_outputs() if key[0] != "report")
        return self.list_inputs() | {path: f"what {'.'.join(key)} of the plan writes" for key, path in outputs}
