"""Speech: transcripts as NIST trn (`words (speaker-utterance)`), Kaldi text (`id words`) or plain lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import empty, open_text
from sigdask.formats.reading.options import Options, Source, system_names
from sigdask.formats.reading.rows import repeated_id
from sigdask.formats.texts.parallel import text_counts, text_lines
from sigdask.formats.texts.segments import HEAD, read_lines

TRN = re.compile(r"(?P<text>.*)\((?P<id>[^()\s]+)\)\s*")
KALDI = re.compile(r"\s*(?P<id>\S+)(?P<text>.*)")
COMMENT = ";;"
BEFORE = 10_000
"""Lines within which the first utterances stand, below comments."""

SHAPES = {"trn": TRN, "first": KALDI}
SUGGESTED = ("WER", "CER")
OPTIONAL = re.compile(r"(?:^|\s)(?:\{\s|@\s|\([^()\s]+\)(?:\s|$))")
"""Marks of sclite for alternatives and words that may be left out."""
CHARACTERS = re.compile(r"(?=.*\d)(?=.*[^\W\d])[\w./:-]++|\d+(?:-\d+)+")
"""An id as first word: letters and digits, or numbers joined by hyphens."""

Utterances = dict[str, str]
"""Utterance id to words."""


def read_speech(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read transcripts and references, joined by utterance id where lines have one.

    Nothing is normalised. The own option `ids` says where ids stand: trn (in parentheses at the
    end), first (the first word) or none; by default it is seen from the reference.
    """
    options.only("speech", ids=("trn", "first", "none"))
    if gold is None:
        raise InputError("format speech: no reference; give --gold FILE")
    if options.references:
        raise InputError("format speech: an error rate has one reference; give it with --gold alone")
    shape = options.own.get("ids") or _shape(gold) or "none"
    if shape == "none":
        return read_lines(sources, gold, options, SUGGESTED)
    if options.documents is not None:
        raise InputError(
            f"{options.documents}: goes by lines, but these transcripts have ids; choose --unit speaker, or give a "
            "table of ids and groups by --groups"
        )
    reference = _utterances(gold, shape)
    systems: dict[str, list[str | None]] = {}
    notes: list[str] = []
    for name, source in zip(system_names(sources), sources, strict=True):
        utterances, said = _in_case_of(reference, gold, _utterances(source.path, shape), source.path)
        systems[name] = _aligned(source.path, utterances, gold, reference, options)
        notes += said
    return text_counts(
        systems,
        [list(reference.values())],
        options,
        ids=list(reference),
        groups=_speakers(reference),
        suggested=SUGGESTED,
        warnings=[*notes, *_optional(gold, reference)],
    )


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Know transcripts by utterance ids at the end or the start of each line."""
    path = sources[0].path
    try:
        shape = _shape(path)
        return shape == "trn" or (shape == "first" and gold is not None and _shape(gold) == "first")
    except InputError:
        return False


def speaker(utterance: str) -> str:
    """Return the speaker of an utterance id: what stands before the first hyphen, or else underscore.

    Examples
    --------
    >>> speaker("1089-134686-0000"), speaker("en_4156-A-0001"), speaker("fcjf0_sa1"), speaker("u1")
    ('1089', 'en_4156', 'fcjf0', '')
    """
    mark = "-" if "-" in utterance else "_"
    before, found, _ = utterance.partition(mark)
    return before if found else ""


def _shape(path: Path) -> str | None:
    """Say where the ids stand in the first lines of a file, if they have any."""
    with open_text(path) as text:
        lines = [line for _, line in zip(range(HEAD), _spoken(islice(text, BEFORE)), strict=False)]
    if not lines or any("\0" in line for line in lines):
        return None
    if all(TRN.fullmatch(line) for line in lines):
        return "trn"
    words = [line.split() for line in lines]
    ids = [first for first, *_ in words]
    named = all(CHARACTERS.fullmatch(first) for first in ids)
    spoken = sum(len(rest) > 0 and rest[0].replace("'", "").isalpha() for _, *rest in words)
    widths = {len(w) for w in words}
    if named and len(set(ids)) == len(ids) and 2 * spoken > len(lines) and (len(widths) > 1 or len(lines) == 1):
        return "first"
    return None


def _spoken(lines: Iterator[str]) -> Iterator[str]:
    """Leave out comments and empty lines."""
    return (line.rstrip("\r\n") for line in lines if line.strip() and not line.startswith(COMMENT))


def _utterances(path: Path, shape: str) -> Utterances:
    utterances: Utterances = {}
    places: dict[str, int] = {}
    where = "(id) at its end" if shape == "trn" else "an id as its first word"
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip() or line.startswith(COMMENT):
            continue
        match = SHAPES[shape].fullmatch(line)
        if match is None:
            raise InputError(
                f"{path}, line {number}: found {line[-40:]!r}, expected {where}, as in the reference; where lines have "
                "no ids, choose --format speech:ids=none"
            )
        name = match["id"]
        if name in utterances:
            raise repeated_id(f"{path}, line {number}", repr(name), f"on line {places[name]}")
        utterances[name], places[name] = match["text"].replace("\t", " ").strip(), number
    if not utterances:
        raise empty(path)
    return utterances


def _in_case_of(reference: Utterances, gold: Path, utterances: Utterances, path: Path) -> tuple[Utterances, list[str]]:
    """Give utterances the reference's ids where these differ in case alone, as sclite takes them for the same."""
    if utterances.keys() <= reference.keys():
        return utterances, []
    known = {name.casefold(): name for name in reference}
    folded = {name: known.get(name.casefold(), name) for name in utterances}
    if len(known) < len(reference) or len(set(folded.values())) < len(utterances):
        return utterances, []
    first = next((name for name, other in folded.items() if name != other), None)
    if first is None:
        return utterances, []
    n_other = sum(name != other for name, other in folded.items())
    note = f"{path}: {n_other:,} ids differ from those of {gold} in case alone ({first!r}); taken for the same"
    return {folded[name]: text for name, text in utterances.items()}, [note]


def _aligned(
    path: Path, utterances: Utterances, gold: Path, reference: Utterances, options: Options
) -> list[str | None]:
    for name in utterances:
        if name not in reference:
            raise InputError(f"{path}: utterance {name!r} is not in {gold}; every id must be one of the reference")
    texts = [utterances.get(name) for name in reference]
    if options.missing_policy == "error" and None in texts:
        missing = list(reference)[texts.index(None)]
        raise InputError(
            f"{path}: utterance {missing!r} of {gold} is missing ({texts.count(None)} in all); choose --missing "
            "pairwise (compare each pair on what both have) or zero (an empty transcript)"
        )
    return texts


def _speakers(reference: Utterances) -> dict[str, list[str]]:
    speakers = [speaker(name) for name in reference]
    return {"speaker": speakers} if all(speakers) else {}


def _optional(gold: Path, reference: Utterances) -> list[str]:
    """Warn of what sclite would read as alternatives."""
    name = next((name for name, text in reference.items() if OPTIONAL.search(text)), None)
    if name is None:
        return []
    marks = f"{gold}: utterance {name!r} has marks of alternatives or optional words ({reference[name][:40]!r})"
    return [f"{marks}, which are counted as they stand"]
