"""`sigdask reproduce` and `sigdask cite`: results found again from the files they are of, and told in a paper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sigdask.cli.compare import GROUPS as COMPARING
from sigdask.cli.compare import read_systems
from sigdask.cli.declared_options import grouped, option
from sigdask.cli.output.progress import ProgressSteps, progress
from sigdask.cli.output.write import be_quiet, note, say
from sigdask.errors import InputError, UnfinishedError
from sigdask.text import count_noun, printable

if TYPE_CHECKING:
    from sigdask.analysis.reproduce.reference import RecordedResult
    from sigdask.analysis.reproduce.rerun import RepeatedResult, ReproduceOutcome
    from sigdask.report.presentable import Results

SHOWN = 20
"""Results that are otherwise which are named."""

GROUPS = {
    "Results": (
        click.option("--expect", metavar="P", help="The p that was printed; it is held against what is found."),
        click.option("--name", metavar="TESTSET", help="Of a file of results: the test set that the files are."),
    ),
    "Files": COMPARING["Files"],
    "Where to run": (
        option("--cluster"),
        option("--workers", type=click.IntRange(min=1), metavar="N"),
        click.option("--no-cache", is_flag=True, help="Neither look up nor keep what is extracted from outputs."),
    ),
    "Output": (
        click.option("-q", "--quiet", is_flag=True, help="Say nothing beside results, warnings and errors."),
    ),
}  # fmt: skip

EXAMPLES = (
    "sigdask reproduce results.json new.txt old.txt --ref reference.txt",
    "sigdask reproduce 'test:ar|metric:f1|…|v:0.3.0' scores.csv --expect 0.0296",
)


@grouped(GROUPS, EXAMPLES)
@click.argument("what", metavar="SIGNATURE|RESULTS")
@click.argument("systems", nargs=-1, required=True, metavar="[NAME=]SYSTEM...")
def reproduce(what: str, systems: tuple[str, ...], **options: Any) -> int:
    """Find results again, and say whether they are the same.

    RESULTS is a file that `compare`, `run` or `report` wrote (--json, --csv); SIGNATURE is the test's, of one result.
    The files are read as `compare` reads them. Metrics, units, seeds and all else are those of the signatures, and so
    must the data be: their digests are looked at first. Exit status 0: reproduced; 1: not.
    """
    from sigdask.analysis.reproduce.rerun import repeat

    if options["quiet"]:
        be_quiet()
    recorded = _recorded(what, options["name"])
    expected = _expected(options["expect"], recorded)
    with progress(quiet=options["quiet"]) as steps:
        counts, format_ = read_systems({**options, **_asked(recorded), "systems": systems}, steps)
        note(
            f"read as {format_}: {count_noun(counts.n_systems, 'system')}, {count_noun(counts.of_one.n_items, 'item')}"
        )
        outcome = repeat(recorded, counts, _comparing(options, steps))
    is_expected = expected is None or all(_is_printed(expected, one.now.p_value) for one in outcome.found)
    for line in _lines(outcome, expected if not is_expected else None):
        say(printable(line), hang=2)
    return 0 if outcome.is_reproduced and is_expected else 1


def _recorded(what: str, name: str | None) -> list[RecordedResult]:
    """Return the results that are to be found again."""
    from sigdask.analysis.reproduce import reference as recorded
    from sigdask.results.signature import Signature, is_signature

    if is_signature(what):
        return [recorded.RecordedResult(Signature.parse(what))]
    found = recorded.read(Path(what))
    names = dict.fromkeys(one.signature.test_set for one in found)
    if name is None and len(names) > 1:
        raise InputError(f"{what}: results of several test sets: {', '.join(names)}; choose one with --name")
    own = [one for one in found if name is None or one.signature.test_set == name]
    if not own:
        raise InputError(f"--name {name}: {what} has the test sets {', '.join(names)}")
    return own


def _expected(text: str | None, recorded: Sequence[RecordedResult]) -> Decimal | None:
    if text is None:
        return None
    if len(recorded) > 1:
        raise InputError(f"--expect {text}: is of one result, and there are {len(recorded)}")
    try:
        p = Decimal(text)
    except InvalidOperation:
        p = Decimal(-1)
    if not 0 <= p <= 1:
        raise InputError(f"--expect {text}: must be a p-value")
    return p


def _asked(recorded: Sequence[RecordedResult]) -> dict[str, Any]:
    """Return what signatures say of how files are read."""
    own = [one.signature for one in recorded]
    columns = [name for one in own for name in (one.unit, *(one.subset or ())[:1])]
    return {
        "name": own[0].test_set,
        "metrics": tuple(dict.fromkeys(one.metric for one in own)),
        "unit": tuple(dict.fromkeys(columns)),
        "by": None,
    }


def _comparing(options: dict[str, Any], steps: ProgressSteps) -> Any:
    from sigdask.api import compare_all

    where = {"cluster": options["cluster"], "workers": options["workers"], "cache": not options["no_cache"]}

    def compare(counts: Any, **asked: Any) -> Any:
        try:
            return compare_all(counts, **asked, **where, progress=steps)
        except KeyboardInterrupt:
            raise UnfinishedError("interrupted") from None

    return compare


def _is_printed(expected: Decimal, p: float) -> bool:
    """Say whether a p is printed so, rounded up or to the nearest."""
    own, last = Decimal(p), Decimal(1).scaleb(int(expected.as_tuple().exponent))
    return any(own.quantize(last, how) == expected for how in (ROUND_CEILING, ROUND_HALF_EVEN))


def _lines(outcome: ReproduceOutcome, unexpected: Decimal | None) -> Iterator[str]:
    """Say what came of it."""
    n = len(outcome.found) + len(outcome.others)
    wrong = [one for one in outcome.found if one.otherwise]
    told = [f"other data: {text}" for text in outcome.others]
    told += [f"not the same: {one.recorded.label}: {'; '.join(one.otherwise)}" for one in wrong]
    yield from told[:SHOWN]
    if len(told) > SHOWN:
        yield f"and {len(told) - SHOWN:,} more"
    yield from (_single(one) for one in outcome.found if not one.recorded.found)
    if unexpected is not None:
        yield f"not reproduced: p is not {unexpected}"
    elif outcome.is_reproduced:
        is_held = bool(outcome.found[0].recorded.found)
        what = "every count and p is the same" if is_held else "data and settings are those of the signature"
        yield f"reproduced: {what} ({_number(n)})"
    else:
        yield f"not reproduced: {len(told):,} of {_number(n)}"
    yield from (f"note: {text}" for text in outcome.notes)


def _number(n: int) -> str:
    return f"{n:,} result{'' if n == 1 else 's'}"


def _single(one: RepeatedResult) -> str:
    from sigdask.report.summary.sentences import chance
    from sigdask.statistics.rounding import score_text

    now = one.now
    scores = f"{score_text(now.score_a)} and {score_text(now.score_b)}"
    return f"{now.metric}, {now.a} and {now.b}: {scores}; {chance(now, 0.05)}"


@click.command()
@click.argument("what", required=False, metavar="[RESULTS|PLAN|STORE|SIGNATURE]")
@click.option("--bibtex", "only", flag_value="bibtex", help="Print the entries of BibTeX alone.")
@click.option("--text", "only", flag_value="text", help="Print the paragraph alone.")
@click.option("--latex", "in_latex", is_flag=True, help="Write the paragraph as LaTeX, with \\citep of natbib.")
def cite(what: str | None, only: str | None, *, in_latex: bool) -> None:
    r"""Print the methods of what was run, for a paper, and BibTeX of the works that they rest on.

    Of a file of results (--json, --csv), a plan or its store, or a signature; without any, how sigdask and its test are
    cited.
    """
    from sigdask.report.methods import text as methods

    found = methods.in_general() if what is None else methods.of(_facts(what))
    paragraph = found.latex if in_latex else found.text
    parts = {"text": paragraph, "bibtex": found.bibtex}
    for k, name in enumerate([only] if only else parts):
        say("\n" * (k > 0) + printable(parts[name], keep="\n"), hang=0)


def _facts(what: str) -> Any:
    """Return what results, a plan's or those of a file, or signatures say of how they were had."""
    from sigdask.analysis.reproduce import reference as recorded
    from sigdask.report.methods.text import Facts
    from sigdask.results.signature import Signature, is_signature

    if is_signature(what):
        return Facts.of_signatures([Signature.parse(what)])
    if Path(what).suffix == ".csv":
        return Facts.of_signatures([one.signature for one in recorded.read(Path(what))])
    if Path(what).suffix == ".json":
        return Facts.of(_results(Path(what)))
    return Facts.of(_of_plan(what))


def _results(path: Path) -> Results:
    """Return the results that a file of JSON holds."""
    from sigdask.analysis.reproduce.reference import rows_of_json
    from sigdask.nightly.store.values import made
    from sigdask.report.presentable import Results
    from sigdask.results.record import Result
    from sigdask.results.rows import table_from_results

    whole = rows_of_json(path)
    alpha = float(whole.get("alpha", 0.05))
    try:
        rows = [made(Result, {**row, **{k: math.nan if row[k] is None else row[k] for k in NUMBERS}})
                for row in whole["results"]]  # fmt: skip
        return Results(table_from_results(rows, alpha), int(whole.get("seed", 0)), alpha)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: is not what `sigdask compare --json` writes ({type(error).__name__}: {error})"
        ) from None


NUMBERS = ("score_a", "score_b", "difference", "p_value")
"""Keys whose null is no number."""


def _of_plan(where: str) -> Results:
    """Return what a plan has found on all its test sets."""
    from sigdask.cli.plan import store_and_plan
    from sigdask.nightly.store import status
    from sigdask.report.presentable import Results
    from sigdask.results.table import Table

    found = [*status.report(*store_and_plan(where, None, None)).results.values()]
    if not found:
        raise InputError(f"{where}: holds no results")
    return Results(Table.joined([own.table for own in found]), found[0].seed, found[0].alpha)
