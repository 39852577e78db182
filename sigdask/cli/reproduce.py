"""`sigdask reproduce`: repeat the tests of recorded results and say whether they come out the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigdask.analysis.reproduce import reference as recorded
from sigdask.analysis.reproduce.rerun import repeat
from sigdask.api import compare_all
from sigdask.cli.compare import read_systems
from sigdask.cli.output.progress import ProgressSteps, progress
from sigdask.cli.output.say import be_quiet, note, say
from sigdask.errors import InputError, UnfinishedError
from sigdask.report.summary.sentences import chance
from sigdask.results.signature import Signature, is_signature
from sigdask.statistics.rounding import score_text
from sigdask.text import count_noun, printable

if TYPE_CHECKING:
    from sigdask.analysis.reproduce.reference import RecordedResult
    from sigdask.analysis.reproduce.rerun import RepeatedResult, ReproduceOutcome

SHOWN = 20
"""Results that are otherwise which are named."""


def reproduce(what: str, systems: tuple[str, ...], **options: Any) -> int:
    """Repeat the tests of recorded results and print what differs; return the exit status."""
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
    now = one.now
    scores = f"{score_text(now.score_a)} and {score_text(now.score_b)}"
    return f"{now.metric}, {now.a} and {now.b}: {scores}; {chance(now, 0.05)}"
