"""A plan file to a `Plan`: every error in it found before anything runs, each with its line and key."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sigdask.errors import InputError
from sigdask.formats.places import local_only
from sigdask.plan.complaints import Complaint, of_validation, refuse
from sigdask.plan.keys import PlanKeys
from sigdask.plan.lines import lines_of_keys
from sigdask.plan.model import Plan
from sigdask.plan.resolve import resolve, store_of
from sigdask.writing import as_json

LARGEST_FILE = 16 * 2**20
"""Bytes of a plan; a larger file is something else."""

_KEYS: TypeAdapter[PlanKeys] = TypeAdapter(PlanKeys)


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
    text = _text(file)
    _check_name(file.absolute())
    data = _parsed(text, file)
    complaints: list[Complaint] = []
    validated = _validated(data, complaints)
    plan = resolve(validated[0], file.absolute(), complaints, validated[1]) if validated is not None else None
    if plan is None or complaints:
        raise refuse(file, complaints, lines_of_keys(text, data))
    return plan


def peek(path: Path | str) -> tuple[str, str]:
    """Return the store and the name of a plan, whatever else is wrong with it: to look at what it has found."""
    file = _local(path).absolute()
    data = _parsed(_text(file), file)
    store, name = (data.get(key) if isinstance(data.get(key), str) else None for key in ("store", "name"))
    return store_of(store, file), name or file.stem


def refusal(path: Path, complaints: Sequence[Complaint]) -> InputError:
    """Return the error of what is found wrong later, when the data are read."""
    try:
        text = _text(path)
        lines = lines_of_keys(text, _parsed(text, path))
    except InputError:  # changed in between
        lines = {}
    return refuse(path, complaints, lines)


def schema() -> dict[str, Any]:
    """Return the JSON schema of plan files, for editors."""
    described = _KEYS.json_schema()
    described["title"] = "sigdask plan"
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


def _text(path: Path) -> str:
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder, expected a plan file (TOML)")
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if len(raw) > LARGEST_FILE:
        raise InputError(f"{path}: more than {LARGEST_FILE >> 20} MB, expected a plan file (TOML)")
    return _decoded(raw, path)


def _decoded(raw: bytes, path: Path) -> str:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path}: is UTF-16, expected UTF-8; convert it, for example with iconv -f utf-16 -t utf-8")
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path}, line {line}: byte 0x{raw[error.start]:02x} is not UTF-8; convert the file, for example with "
            "iconv -f latin1 -t utf-8"
        ) from None


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: not TOML: lists or tables are nested too deep") from None
    except ValueError as error:  # an integer of thousands of digits, a date that is none
        raise InputError(f"{path}: not TOML: {error}") from None


def _validated(data: dict[str, Any], complaints: list[Complaint]) -> tuple[PlanKeys, list[int]] | None:
    """Return the keys and the places of the test sets in the file.

    What is wrong is complained about and left out, so that the rest is judged as well.
    """
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
