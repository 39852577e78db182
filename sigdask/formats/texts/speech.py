"""Speech transcripts: NIST trn (`words (speaker-utterance)`), Kaldi text (`id words`) or plain lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, open_text
from sigdask.formats.reading.listings import FileListing
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.texts.parallel import Texts, build_text_counts, list_speakers, read_text_lines
from sigdask.formats.texts.segments import N_HEAD_LINES, read_lines
from sigdask.interface import spell

TRN = re.compile(r"(?P<text>.*)\((?P<id>[^()\s]+)\)\s*")
KALDI = re.compile(r"\s*(?P<id>\S+)(?P<text>.*)")
COMMENT = ";;"
MAX_HEAD_LINES = 10_000
"""Number of first lines in which utterances must begin, after comments."""

SHAPES = {"trn": TRN, "first": KALDI}
SUGGESTED = ("WER", "CER")
ALTERNATIVE_MARKS = re.compile(r"(?:^|\s)(?:\{\s|@\s|\([^()\s]+\)(?:\s|$))")
"""sclite's marks of alternatives and optional words."""
ID_WORD = re.compile(r"(?=.*\d)(?=.*[^\W\d])[\w./:-]++|\d+(?:-\d+)+")
"""Pattern of an id as first word: letters and digits, or numbers joined by hyphens."""

Utterances = dict[str, str]
"""Words by utterance id."""


def read_speech(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read transcripts and references, joined by utterance id where lines have one.

    Nothing is normalised. The format's option `ids` says where ids are: trn (in parentheses at the end), first (the
    first word) or none. By default they are detected in the reference.
    """
    assert gold is not None
    if options.references:
        remedy = f"leave out {spell('references')}, and give {spell('gold', 'FILE')}"
        raise InputError(f"format speech: WER and CER compare with one reference; {remedy}")
    shape = options.own.get("ids") or _detect_shape(gold) or "none"
    if shape == "none":
        return read_lines(sources, gold, options, SUGGESTED)
    if options.documents is not None:
        remedy = f"choose {spell('unit', 'speaker')}, or give a table of ids and groups with {spell('group_file')}"
        raise InputError(
            f"{options.documents}: has one document per line, but these transcripts are matched by ids; {remedy}"
        )
    reference = _read_utterances(gold, shape)
    systems: dict[str, Texts] = {}
    notes: list[str] = []
    for name, source in zip(list_system_names(sources), sources, strict=True):
        utterances, case_notes = _match_case(reference, gold, _read_utterances(source.path, shape), source.path)
        systems[name] = _align_texts(source.path, utterances, gold, reference, options)
        notes += case_notes
    example = next((name for name, text in reference.items() if ALTERNATIVE_MARKS.search(text)), None)
    if example is not None:  # sclite would read them as alternatives
        notes.append(
            f"{gold}: utterance {example!r} has marks of alternatives or optional words ({reference[example][:40]!r}), "
            "which are counted as they stand"
        )
    return build_text_counts(
        systems,
        [list(reference.values())],
        options,
        ids=list(reference),
        groups=list_speakers(list(reference)),
        suggested=SUGGESTED,
        warnings=notes,
    )


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether lines have utterance ids at the end or the start."""
    path = sources[0].path
    try:
        shape = _detect_shape(path)
        return shape == "trn" or (shape == "first" and gold is not None and _detect_shape(gold) == "first")
    except InputError:
        return False


def _detect_shape(path: Path) -> str | None:
    """Return where the ids are in the first lines of a file, or None if there are no ids."""
    with open_text(path) as text:
        spoken = (line for line in islice(text, MAX_HEAD_LINES) if line.strip() and not line.startswith(COMMENT))
        lines = [line.rstrip("\r\n") for line in islice(spoken, N_HEAD_LINES)]
    if not lines or any("\0" in line for line in lines):
        return None
    if all(TRN.fullmatch(line) for line in lines):
        return "trn"
    words = [line.split() for line in lines]
    ids = [first_word for first_word, *_ in words]
    has_ids = all(ID_WORD.fullmatch(first_word) for first_word in ids)
    n_spoken = sum(len(rest) > 0 and rest[0].replace("'", "").isalpha() for _, *rest in words)
    widths = {len(w) for w in words}
    if has_ids and len(set(ids)) == len(ids) and 2 * n_spoken > len(lines) and (len(widths) > 1 or len(lines) == 1):
        return "first"
    return None


def _read_utterances(path: Path, shape: str) -> Utterances:
    utterances = FileListing(path, {}, {})
    id_text = "(id) at its end" if shape == "trn" else "an id as its first word"
    for number, line in enumerate(read_text_lines(path), start=1):
        if not line.strip() or line.startswith(COMMENT):
            continue
        match = SHAPES[shape].fullmatch(line)
        if match is None:
            raise InputError(
                file=path,
                line=number,
                found=f"{line[-40:]!r}",
                expected=f"{id_text}, as in the reference; if the lines have no ids, add "
                f"{spell('format', 'speech:ids=none')}",
            )
        utterances.add(match["id"], match["text"].replace("\t", " ").strip(), f"line {number}")
    check_filled(path, utterances.items)
    return utterances.items


def _match_case(reference: Utterances, gold: Path, utterances: Utterances, path: Path) -> tuple[Utterances, list[str]]:
    """Replace ids that differ from the reference's only in case, as sclite does."""
    if utterances.keys() <= reference.keys():
        return utterances, []
    reference_ids = {name.casefold(): name for name in reference}
    matched_ids = {name: reference_ids.get(name.casefold(), name) for name in utterances}
    others = [name for name, matched in matched_ids.items() if name != matched]
    if len(reference_ids) < len(reference) or len(set(matched_ids.values())) < len(utterances) or not others:
        return utterances, []
    note = f"{path}: {len(others):,} ids differ from those of {gold} in case alone ({others[0]!r}); taken for the same"
    return {matched_ids[name]: text for name, text in utterances.items()}, [note]


def _align_texts(path: Path, utterances: Utterances, gold: Path, reference: Utterances, options: Options) -> Texts:
    for name in utterances:
        if name not in reference:
            raise InputError(f"utterance {name!r} is not in {gold}; every id must be one of the reference", file=path)
    texts = [utterances.get(name) for name in reference]
    if options.missing_policy == "error" and None in texts:
        missing = list(reference)[texts.index(None)]
        remedy = (
            f"choose {spell('missing', 'pairwise')} (compare each pair on what both have) or zero (an empty transcript)"
        )
        raise InputError(
            f"utterance {missing!r} of {gold} is missing ({texts.count(None)} in all); {remedy}", file=path
        )
    return texts
