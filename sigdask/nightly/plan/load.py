"""Load a plan file; all its errors are reported before anything runs, each with its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sigdask.errors import InputError
from sigdask.interface import use_interface
from sigdask.io.text_files import parse_toml, read_text
from sigdask.nightly.plan.errors import Complaint, build_error, describe_validation
from sigdask.nightly.plan.keys import MAX_ENTRIES, PlanKeys
from sigdask.nightly.plan.model import Plan
from sigdask.nightly.plan.resolve import find_store, resolve_plan
from sigdask.text import as_json, is_url, redact

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
    file, data = _read_plan(path)
    complaints: list[Complaint] = []
    validated = _validate_keys(data, complaints)
    plan = resolve_plan(validated[0], file.absolute(), complaints, validated[1]) if validated is not None else None
    if plan is None or complaints:
        raise build_error(file, complaints)
    return plan


@use_interface("plan")
def check_keys(path: Path | str) -> None:
    """Check the keys and values of a plan, without looking for the files that it names.

    Raises
    ------
    InputError
        The plan has errors. The message lists all, as that of `load_plan` does.
    """
    file, data = _read_plan(path)
    complaints: list[Complaint] = []
    _validate_keys(data, complaints)
    if complaints:
        raise build_error(file, complaints)


def read_store_and_name(path: Path | str) -> tuple[str, str]:
    """Return the store and the name of a plan, even if the rest of it is invalid."""
    file = _check_local(path).absolute()
    data = parse_toml(read_text(file, EXPECTED), file, REMEDY)
    store, name = (data.get(key) if isinstance(data.get(key), str) else None for key in ("store", "name"))
    return find_store(store, file), name or file.stem


def build_schema() -> dict[str, Any]:
    """Return the JSON schema of plan files, for editors."""
    json_schema = _KEYS.json_schema()
    json_schema["title"] = "sigdask plan"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_drop_nulls(json_schema)}


def format_schema() -> str:
    """Return the JSON schema as the text of schema.json."""
    return as_json(build_schema()) + "\n"


def _read_plan(path: Path | str) -> tuple[Path, dict[str, Any]]:
    """Return the file of a plan, and what TOML makes of it."""
    file = _check_local(path)
    text = read_text(file, EXPECTED)
    try:
        str(file.absolute()).encode()
    except UnicodeEncodeError:  # a store cannot save it
        raise InputError(
            f"{str(file.absolute())!r}: the name of a plan or of its folder is not UTF-8", remedy="rename it"
        ) from None
    data = parse_toml(text, file, REMEDY)
    sets = data.get("test_set")
    if isinstance(sets, list) and len(sets) > MAX_ENTRIES:  # before time is spent on each
        raise InputError(
            f"{len(sets):,} entries of [[test_set]], at most {MAX_ENTRIES:,}", file=file,
            remedy="split it into several plans",
        )  # fmt: skip
    return file, data


def _check_local(path: Path | str) -> Path:
    if is_url(str(path)):
        raise InputError(f"{redact(str(path))}: is a URL, but a plan must be a file on this machine")
    return Path(path)


def _validate_keys(data: dict[str, Any], complaints: list[Complaint]) -> tuple[PlanKeys, list[int]] | None:
    """Return the valid keys, and the indices of their test sets in the file.

    Invalid keys are reported and omitted, so that the rest is checked as well.
    """
    sets = data.get("test_set")
    n_sets = len(sets) if isinstance(sets, list) else 0
    try:
        return _KEYS.validate_python(data), list(range(n_sets))
    except ValidationError as error:
        new_complaints = list(describe_validation(error.errors(include_url=False), data))
    complaints += new_complaints
    bad = {c.key[:2] if c.key[:1] == ("test_set",) else c.key[:1] for c in new_complaints}
    indices = [index for index in range(n_sets) if ("test_set", index) not in bad]
    valid_data = {name: value for name, value in data.items() if (name,) not in bad}
    if isinstance(sets, list):
        valid_data["test_set"] = [sets[index] for index in indices]
    try:
        return _KEYS.validate_python(valid_data), indices
    except ValidationError:  # no test set is left
        return None


def _drop_nulls(node: Any) -> Any:
    """Remove null types and null defaults, which TOML does not have."""
    if isinstance(node, list):
        return [_drop_nulls(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    out = {k: _drop_nulls(v) for k, v in node.items() if v is not None}
    options = [option for option in out.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1 and "anyOf" in out:
        del out["anyOf"]
        return {**options[0], **out}
    if options:
        out["anyOf"] = options
    return out
