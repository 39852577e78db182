"""`sigdask cite`: a methods paragraph and its sources, for a paper."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sigdask.analysis import reproduce as reproduction
from sigdask.analysis.reproduce import check_signatures, read_json_results
from sigdask.cli.output.streams import print_text
from sigdask.cli.output.write import assign_files, write_data
from sigdask.errors import InputError
from sigdask.formats.reading.json_records import is_json
from sigdask.io import is_present
from sigdask.report.methods import text as methods
from sigdask.report.methods.text import Facts
from sigdask.report.presentable import Results
from sigdask.results.comparisons import FamilyNote, ResultAcrossSets
from sigdask.results.from_records import results_to_table
from sigdask.results.record import Result
from sigdask.results.signature import Signature, is_signature
from sigdask.results.table import Table
from sigdask.results.validation import find_fault
from sigdask.text import make_printable, value_from_json


def cite(what: str | None, only: str | None, *, in_latex: bool, outputs: tuple[str, ...]) -> None:
    """Print or write the methods paragraph, the BibTeX entries, or both, of some results."""
    if extra := click.get_current_context().args:
        to_write = next((name for name in (str(what), *extra) if name.endswith((".tex", ".bib", ".txt"))), extra[0])
        raise InputError(f"{to_write}: --latex, --bibtex and --text take no file; write it with -o {to_write}")
    files = assign_files({"outputs": outputs}, "latex", "bibtex", "text")
    methods_text = methods.build_program_citation() if what is None else methods.build_methods(_read_facts(what))
    for name, file in files.items():
        if file is not None:
            write_data(file, [make_printable(getattr(methods_text, name), keep="\n"), "\n"], "-o")
    names = [only] if only else ["latex"] if in_latex else [] if outputs else ["text", "bibtex"]
    for k, name in enumerate(names):
        print_text("\n" * (k > 0) + make_printable(getattr(methods_text, name), keep="\n"), hang=0)


def _read_facts(what: str) -> Any:
    """Return the facts that a methods paragraph states, from results, a plan's store, or a signature."""
    if is_signature(what):
        return Facts.from_signatures([Signature.parse(what)])
    path, ending = Path(what), Path(what).suffix.lower()
    if ending in {".csv", ".parquet"}:
        results = reproduction.read(path).results
        check_signatures(path, {"results": [result.values for result in results]})
        return Facts.from_signatures([result.signature for result in results])
    if ending == ".json" or (is_present(path.is_file) and is_json(path)):
        document = read_json_results(path)
        if (fault := find_fault(document)) is not None:
            raise InputError(f"{path}: not results of `sigdask compare --json`: {fault}")
        if not document["results"]:
            raise InputError(f"{path}: holds no results; give a file that `sigdask compare --json` wrote")
        check_signatures(path, document)
        alpha = document.get("alpha", 0.05)
        rows = []
        for number, row in enumerate(document["results"]):
            try:
                values = {**row, **{key: math.nan if row[key] is None else row[key] for key in NAN_KEYS}}
                rows.append(value_from_json(Result, values))
            except (KeyError, TypeError) as error:
                raise InputError(
                    f"{path}: not results of `sigdask compare --json`: results[{number}] lacks a key ({error})"
                ) from None
        family: FamilyNote | None = value_from_json(FamilyNote, document.get("family"))
        table = replace(results_to_table(rows, alpha), grouping=document.get("grouping", "auto"))
        together = tuple(value_from_json(ResultAcrossSets, verdict) for verdict in document.get("together") or ())
        return Facts.from_results(Results(table, document.get("seed", 0), alpha, family=family, together=together))
    return Facts.from_results(_read_plan_results(what))


NAN_KEYS = ("score_a", "score_b", "difference", "p_value")
"""Keys whose null means NaN."""


def _read_plan_results(where: str) -> Results:
    """Return the latest results of a plan on all its test sets together."""
    from sigdask.cli.status import find_store_and_plan, is_other_file  # loads SQLAlchemy and pydantic
    from sigdask.nightly.store import status

    if is_other_file(where):
        raise InputError(
            f"{where}: expected results that `sigdask compare` wrote (.json, .csv, .parquet), "
            "a plan (.toml) or its store"
        )
    location, plan = find_store_and_plan(where, None, None)
    report = status.build_report(location, plan)
    results = [*report.results.values()]
    if not results:
        raise InputError(f"{where}: holds no results")
    table = Table.join([test_set_results.table for test_set_results in results])
    family = next((test_set_results.family for test_set_results in results if test_set_results.family), None)
    return Results(table, results[0].seed, results[0].alpha, family=family)
