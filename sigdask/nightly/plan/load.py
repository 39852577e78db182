"""A plan file to a `Plan`: every error in it found before anything runs, each with its line and key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sigdask.errors import InputError
from sigdask.io import local_only
from sigdask.io.text_files import text_of, toml_of
from sigdask.nightly.plan.errors import Complaint, of_validation, refuse
from sigdask.nightly.plan.keys import PlanKeys
from sigdask.nightly.plan.lines import lines_of_keys
from sigdask.nightly.plan.model import Plan
from sigdask.nightly.plan.resolve import resolve, store_of
from sigdask.options import naming_options
from sigdask.text import as_json

EXPECTED = "a plan file (TOML)"

EVALUATED = ("test_set", "rankings", "independence")
"""Keys of which a plan has one at least."""

_KEYS: TypeAdapter[PlanKeys] = TypeAdapter(PlanKeys)


@naming_options("plan")
def load_plan(path: Path | str) -> Plan:
    """Read and validate a plan.

    Files that it names must exist, but are not read; `sigdask check` reads them.

    Parameters
    ----------
    path : Path or str
        A TOML file; the keys are in docs/plans.md and in `schema`.

    Raises
    ------
    InputError
        Listing every error, with its line, key, what was found and what was expected.
    """
    file = _local(path)
    text = text_of(file, EXPECTED)
    _check_name(file.absolute())
    data = toml_of(text, file)
    complaints: list[Complaint] = []
    validated = _validated(data, complaints)
    plan = resolve(validated[0], file.absolute(), complaints, validated[1]) if validated is not None else None
    if plan is None or complaints:
        raise refuse(file, complaints, lines_of_keys(text, data))
    return plan


def peek(path: Path | str) -> tuple[str, str]:
    """Return the store and the name of a plan, whatever else is wrong with it: to look at what it has found."""
    file = _local(path).absolute()
    data = toml_of(text_of(file, EXPECTED), file)
    store, name = (data.get(key) if isinstance(data.get(key), str) else None for key in ("store", "name"))
    return store_of(store, file), name or file.stem


def refusal(path: Path, complaints: Sequence[Complaint]) -> InputError:
    """Return the error of what is found wrong later, when the data are read."""
    try:
        text = text_of(path, EXPECTED)
        lines = lines_of_keys(text, toml_of(text, path))
    except InputError:  # changed in between
        lines = {}
    return refuse(path, complaints, lines)


def schema() -> dict[str, Any]:
    """Return the JSON schema of plan files, for editors."""
    described = _KEYS.json_schema()
    described["title"] = "sigdask plan"
    described["anyOf"] = [{"required": [key]} for key in EVALUATED]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_without_nulls(described)}


def schema_text() -> str:
    """Return the schema as it is kept in schema.json."""
    return as_json(schema()) + "\n"


def _check_name(path: Path) -> None:
    """Refuse a path that a store could not keep."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"{str(path)!r}: the name of a plan or of its folder is not UTF-8; rename it") from None


def _local(path: Path | str) -> Path:
    if problem := local_only(str(path), "a plan"):
        raise InputError(problem)
    return Path(path)


def _validated(data: dict[str, Any], complaints: list[Complaint]) -> tuple[PlanKeys, list[int]] | None:
    """Return the keys and the places of the test sets in the file.

    What is wrong is complained about and left out, so that the rest is judged as well.
    """
    if not data.keys() & {*EVALUATED}:
        complaints.append(Complaint(("test_set",), "missing; expected the test sets, rankings or independence"))
    sets = data.get("test_set")
    n_sets = len(sets) if isinstance(sets, list) else 0
    try:
        return _KEYS.validate_python(data), list(range(n_sets))
    except ValidationError as error:
        found = list(of_validation(error.errors(include_url=False), data))
    complaints += found
    bad = {c.key[:2] if c.key[:1] == ("test_set",) else c.key[:1] for c in found}
    places = [place for place in range(n_sets) if ("test_set", place) not in bad]
    kept = {name: value for name, value in data.items() if (name,) not in bad}
    if isinstance(sets, list):
        kept["test_set"] = [sets[place] for place in places]
    try:
        return _KEYS.validate_python(kept), places
    except ValidationError:  # no test set is left
        return None


def _without_nulls(described: Any) -> Any:
    """Drop what TOML has not: null as a type or default."""
    if isinstance(described, list):
        return [_without_nulls(entry) for entry in described]
    if not isinstance(described, dict):
        return described
    out = {k: _without_nulls(v) for k, v in described.items() if v is not None}
    options = [option for option in out.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1 and "anyOf" in out:
        del out["anyOf"]
        return {**options[0], **out}
    if options:
        out["anyOf"] = options
    return out
