"""Load a plan file; all its errors are reported before anything runs, each with its key and what was expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from sigdask.counts.texts import canonicalize
from sigdask.errors import InputError, SeveralError
from sigdask.formats import Options
from sigdask.interface import PLAN_KEYS, use_interface
from sigdask.io import parse_toml, read_text
from sigdask.nightly.gate.rules import FALSE_ALARMS_PER_YEAR, NonInferior, NotWorse, Rule
from sigdask.nightly.plan import paths
from sigdask.nightly.plan.lines import PlanKey, find_lines
from sigdask.nightly.plan.model import (
    FILE_OPTIONS,
    PLAN_OPTIONS,
    SET_OPTIONS,
    BaselineKeys,
    Gate,
    NonInferiorKeys,
    NotWorseKeys,
    Plan,
    PlanKeys,
    ReportFiles,
    TestSetKeys,
)
from sigdask.nightly.test_sets import TestSet
from sigdask.options import SelectionOptions, fill_options, list_group_columns
from sigdask.text import format_list, is_url, make_printable, redact, suggest_name

_T = TypeVar("_T")

TABLES: dict[str | int, Any] = {
    "test_set": TestSetKeys, "report": ReportFiles, "gate": Gate, "pairs": BaselineKeys,
    "not-worse": NotWorseKeys, "non-inferior": NonInferiorKeys,
}  # fmt: skip
"""Tables of a plan, by the part of a location that names them."""

MAX_SHOWN = 25
LONGEST = 60
"""Maximum number of characters of a value that are shown."""

EXPECTED_WORDS = {
    "dataclass_type": "a table",
    "dict_type": "a table",
    "tuple_type": "a list",
    "too_short": "at least one",
    "string_pattern_mismatch": "text that is not blank",
    "union_tag_not_found": "text or a list",
}
"""What was expected, for errors that pydantic describes in the words of Python."""


class Complaint(NamedTuple):
    """One error in a plan.

    Attributes
    ----------
    key : tuple of str and int
        Its position in the plan. Empty for the plan as a whole.
    text : str
        The value and what was expected.
    """

    key: PlanKey
    text: str


def attempt(complaints: list[Complaint], key: PlanKey, call: Callable[..., _T], *arguments: Any) -> _T | None:
    """Return what a call returns, or None if it raises an InputError, which becomes a complaint about a key."""
    try:
        return call(*arguments)
    except InputError as error:
        complaints.append(Complaint(key, str(error)))
        return None


def build_error(path: Path, complaints: Sequence[Complaint]) -> InputError:
    """Return the error that lists all complaints, each with its line and key."""
    lines = find_lines(read_text(path, EXPECTED))
    found = sorted(((_find_line(complaint.key, lines), complaint) for complaint in complaints), key=itemgetter(0))
    texts = [_format_complaint(line, complaint) for line, complaint in found[:MAX_SHOWN]]
    if len(complaints) == 1:
        return SeveralError(*f"{path}{', ' if complaints[0].key else ': '}{texts[0]}".splitlines())
    more = [f"and {len(complaints) - MAX_SHOWN} more"] if len(complaints) > MAX_SHOWN else []
    rows = "\n".join(texts + more).splitlines()
    return SeveralError(f"{path}: {len(complaints)} errors", *(f"  {row}" for row in rows))


def _find_line(key: PlanKey, lines: Mapping[PlanKey, int]) -> int:
    """Return the line of a key, of the plan's option in its place, or of its table; 0 for the plan as a whole."""
    shared = key[2:] if PLAN_OPTIONS.keys() & {*key[2:]} else ()
    places = (key, shared, *(key[:n] for n in range(len(key) - 1, 0, -1)))
    return next((lines[place] for place in places if place in lines), 0)


def _format_complaint(line: int, complaint: Complaint) -> str:
    place = f"line {line}, " if line else ""
    return f"{place}{format_key(complaint.key)}: {complaint.text}" if complaint.key else complaint.text


def format_key(key: PlanKey) -> str:
    """Return a key in the dotted form of TOML.

    Examples
    --------
    >>> format_key(("test_set", 0, "map", "a b"))
    'test_set[0].map."a b"'
    """
    parts = []
    for part in key:
        is_bare = str(part).isascii() and str(part).replace("_", "").replace("-", "").isalnum()
        parts.append(f"[{part}]" if isinstance(part, int) else f".{part if is_bare else format_value(part)}")
    return "".join(parts).removeprefix(".")


def format_value(value: Any) -> str:
    """Return a value from a plan as short text."""
    if isinstance(value, (Mapping, list, tuple)):
        return "a table" if isinstance(value, Mapping) else f"a list of {len(value)}"
    text = f'"{redact(value)}"' if isinstance(value, str) else str(value)
    return make_printable(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


def describe_validation(errors: Sequence[Mapping[str, Any]], data: Mapping[str, Any]) -> Iterator[Complaint]:
    """Yield a complaint for each of pydantic's errors.

    Parameters
    ----------
    errors : sequence of mapping
        Errors, as `ValidationError.errors()` returns them.
    data : mapping
        The validated data.
    """
    for error in errors:
        location, kind, found = error["loc"], error["type"], error["input"]
        key = _find_key(location, data)
        if kind == "union_tag_invalid" and "rule" in error["ctx"]["discriminator"]:
            key, found = (*key, "rule"), error["ctx"]["tag"]
        if kind == "too_short" and found:  # pydantic counts only entries without an error, which is told already
            continue
        if kind == "input":
            yield Complaint(key, error["msg"])
        elif kind == "missing":
            yield Complaint((*key, location[-1]), "missing")
        elif kind == "unexpected_keyword_argument":
            table = next((TABLES[part] for part in reversed(location[:-1]) if part in TABLES), PlanKeys)
            known = sorted(f.name for f in fields(table))
            hint = suggest_name(str(key[-1]), known, f"; keys: {', '.join(known)}")
            yield Complaint(key, f"unknown key{hint}")
        else:
            yield Complaint(key, f"found {format_value(found)}, expected {_describe_expected(key, error, found)}")


def _find_key(location: Sequence[str | int], data: Any) -> PlanKey:
    """Return the plan's key for a location in pydantic's error, which also names the members of unions."""
    key: list[str | int] = []
    for part in location:
        try:
            data = data[part]
        except (LookupError, TypeError):  # a member of a union, or a missing key
            continue
        key.append(part)
    return tuple(key)


def _describe_expected(key: PlanKey, error: Mapping[str, Any], found: Any) -> str:
    """Return what was expected, in words that follow "expected"."""
    kind, name = error["type"], format_key(key)
    if kind in {"tuple_type", "list_type"} and isinstance(found, Mapping):
        return f"a list of tables: write [[{name}]], with two brackets"
    if kind == "dataclass_type" and isinstance(found, (list, tuple)):
        return f"a table: write [{name}], with one bracket"
    if key[:2] == ("gate", "rules") and len(key) == 3:
        return 'a table such as { rule = "not-worse" }'
    context = error.get("ctx", {})
    expected = str(context.get("expected") or context.get("expected_tags") or "")
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    hint = suggest_name(str(found), words) if expected and isinstance(found, str) else ""
    text = error["msg"].rpartition("expected tags: ")[2].removeprefix("Input should be ").removeprefix("Input should ")
    return EXPECTED_WORDS.get(kind, f"{text[0].lower()}{text[1:]}{hint}")


EXPECTED = "a plan file (TOML)"

REMEDY = "write the plan in TOML: `sigdask init FOLDER` makes one from your files"

_KEYS: TypeAdapter[PlanKeys] = TypeAdapter(PlanKeys)


@use_interface("plan")
def load_plan(path: Path | str) -> Plan:
    """Read and validate a plan.

    Files that the plan names must exist, but are not read. `sigdask check` reads them.

    Parameters
    ----------
    path : Path or str
        A TOML file. docs/plans.md and `sigdask.nightly.plan.build_schema` describe its keys.

    Returns
    -------
    Plan
        Give it to `run_plan`.

    Raises
    ------
    InputError
        The plan has errors. The message lists all, each with its key, and what was found and expected.

    Examples
    --------
    >>> load_plan("night.toml").name  # doctest: +SKIP
    'night'
    """
    file = _check_local(path).absolute()
    data = parse_toml(read_text(Path(path), EXPECTED), Path(path), REMEDY)
    try:
        keys = _KEYS.validate_python(data, context=file.parent)
    except ValidationError as error:
        raise build_error(Path(path), [*describe_validation(error.errors(include_url=False), data)]) from None
    complaints: list[Complaint] = []
    plan = _build_plan(keys, file, complaints)
    if complaints := [*complaints, *_check_plan(plan)]:
        raise build_error(Path(path), complaints)
    return plan


def read_store_and_name(path: Path | str) -> tuple[str, str]:
    """Return the store and the name of a plan, even if the rest of it is invalid."""
    file = _check_local(path).absolute()
    data = parse_toml(read_text(file, EXPECTED), file, REMEDY)
    store, name = (data.get(key) if isinstance(data.get(key), str) else None for key in ("store", "name"))
    place = store if not store or is_url(store) else str(paths.resolve_path(store, file.parent))
    return place or str(file.with_suffix(".sqlite")), name or file.stem


def build_schema() -> dict[str, Any]:
    """Return the JSON schema of plan files, for editors."""
    json_schema = _KEYS.json_schema(schema_generator=_SchemaWithoutNulls)
    json_schema["title"] = "sigdask plan"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **json_schema}


class _SchemaWithoutNulls(GenerateJsonSchema):
    """The JSON schema without nulls, which TOML does not have."""

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:
        json_schema = super().default_schema(schema)
        return {key: value for key, value in json_schema.items() if (key, value) != ("default", None)}


def _check_local(path: Path | str) -> Path:
    if is_url(str(path)):
        raise InputError(f"{redact(str(path))}: is a URL, but a plan must be a file on this machine")
    try:
        str(Path(path).absolute()).encode()
    except UnicodeEncodeError:  # a store cannot save it
        raise InputError(
            f"{str(path)!r}: the name of a plan or of its folder is not UTF-8", remedy="rename it"
        ) from None
    return Path(path)


def _build_plan(keys: PlanKeys, file: Path, complaints: list[Complaint]) -> Plan:
    """Return the plan that valid keys describe, with all options of each test set."""
    shared = _list_given(keys, PLAN_OPTIONS)
    comparison = fill_options(SelectionOptions, shared)
    test_sets = (_build_test_set(entry, shared, number, complaints) for number, entry in enumerate(keys.test_set))
    gate = keys.gate
    if gate is not None:
        gate = replace(gate, rules=tuple(_build_rule(rule, gate, comparison["alpha"]) for rule in gate.rules))
    return Plan(
        path=file,
        name=keys.name or file.stem,
        test_sets=tuple(test_sets),
        comparison=comparison,
        cluster=keys.cluster,
        store=keys.store or str(file.with_suffix(".sqlite")),
        report=keys.report,
        gate=gate,
    )


def _build_rule(keys: Any, gate: Gate, plan_alpha: float) -> Rule:
    """Return a rule with the level that the gate or the plan gives."""
    scope = (keys.alpha or plan_alpha, keys.baseline, keys.test_sets, keys.metrics)
    if isinstance(keys, NonInferiorKeys):
        return NonInferior(keys.margin, *scope)
    is_default = gate.false_alarms_per_year is None and keys.alpha is None
    return NotWorse(*scope, FALSE_ALARMS_PER_YEAR if is_default else gate.false_alarms_per_year)


def _list_given(keys: PlanKeys | TestSetKeys, names: Iterable[str]) -> dict[str, Any]:
    """Return the options of these names that a table of the plan gives."""
    given = {name: value for name in names if (value := getattr(keys, PLAN_KEYS.get(name, name))) is not None}
    if pairs := given.get("pairs"):
        baseline = pairs.baseline if isinstance(pairs, BaselineKeys) else None
        given |= {"baseline": baseline, "pairs": pairs if isinstance(pairs, tuple) else None}
    return given


def _build_test_set(keys: TestSetKeys, shared: dict[str, Any], number: int, complaints: list[Complaint]) -> TestSet:
    given = _list_given(keys, SET_OPTIONS)
    comparison = fill_options(SelectionOptions, {"metrics": (), **shared, "unit": keys.unit, **given})
    files = _list_given(keys, FILE_OPTIONS)
    key, named = ("test_set", number, "unit"), (keys.unit, comparison["by"])
    groups = attempt(complaints, key, list_group_columns, named, files.get("columns", {})) or ()
    metrics = (shared | given).get("metrics", ())
    build_options = partial(Options, **files, groups=groups, name=keys.name, metrics=metrics)
    options = attempt(complaints, ("test_set", number, "ignore"), build_options) or Options()
    return TestSet(keys.name, keys.systems, keys.gold, keys.format, options, comparison)


def _check_plan(plan: Plan) -> Iterator[Complaint]:
    """Yield complaints about keys that contradict each other."""
    numbers: dict[bytes, int] = {}
    for number, test_set in enumerate(plan.test_sets):
        if (first := numbers.setdefault(canonicalize(test_set.name), number)) != number:
            text = f"{test_set.name!r} is already the name of test_set[{first}]; choose another"
            yield Complaint(("test_set", number, "name"), text)
    uses = plan.list_inputs()
    for key, path in plan.iter_outputs():
        if path in uses:
            yield Complaint(key, f"{path} is {uses[path]}; expected another file")
        uses[path] = f"what {'.'.join(key)} writes"
    for number, rule in enumerate(plan.rules):
        yield from _check_rule(rule, plan, ("gate", "rules", number))


def _check_rule(rule: Rule, plan: Plan, key: PlanKey) -> Iterator[Complaint]:
    names = [test_set.name for test_set in plan.test_sets]
    for name in rule.test_sets:
        if name not in names:
            hint = suggest_name(name, names, f"; test sets: {format_list(names, 30)}")
            yield Complaint((*key, "test_sets"), f"no test set {name!r}{hint}")
    covered = [test_set for test_set in plan.test_sets if test_set.name in (rule.test_sets or names)]
    for test_set in covered:
        only, pairs = test_set.comparison["baseline"], test_set.comparison["pairs"]
        baseline = rule.baseline or only
        if baseline is None:
            remedy = "Give baseline = NAME here or pairs = { baseline = NAME }"
            yield Complaint(key, f"which system of test set {test_set.name!r} is the baseline? {remedy}")
        elif only not in {None, baseline} or (pairs and not any(baseline in pair for pair in pairs)):
            wanted = f"{only!r}, the baseline" if only else "a system"
            text = f"found {baseline!r}, expected {wanted} of `pairs` of test set {test_set.name!r}"
            yield Complaint((*key, "baseline"), text)


def check_rule_metrics(rule: Rule, compared: Iterable[str], key: PlanKey) -> Iterator[Complaint]:
    """Yield complaints about metrics of a rule that no test set of the rule is compared by."""
    names = sorted({*compared})
    for name in rule.metrics:
        if name.casefold() not in map(str.casefold, names):
            hint = suggest_name(name, names, f"; metrics: {', '.join(names)}")
            yield Complaint((*key, "metrics"), f"metric {name!r} is not computed there{hint}")
