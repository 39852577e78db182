"""Speech transcripts: NIST trn (`words (speaker-utterance)`), Kaldi text (`id words`) or plain lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, read_head
from sigdask.formats.reading.listings import FileListing
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.texts import ref_hyp
from sigdask.formats.texts.parallel import Texts, build_text_counts, list_speakers, read_text_lines
from sigdask.formats.texts.segments import read_lines
from sigdask.interface import spell

TRN = re.compile(r"(?P<text>.*)\((?P<id>[^()\s]+)\)\s*")
KALDI = re.compile(r"\s*(?P<id>\S+)(?P<text>.*)")
COMMENT = ";;"
SHAPES = {"trn": TRN, "first": KALDI}
SUGGESTED = ("WER", "CER")
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
    if ref_hyp.sniff(sources, gold, options):
        remedy = f"leave out {spell('gold')}, because each file holds its references"
        raise InputError("holds references and hypotheses", file=sources[0].path, remedy=remedy)
    shape = options.own.get("ids") or ("none" if "column" in options.own else _detect_shape(gold, sources))
    if shape == "none":
        return read_lines(sources, gold, options, "speech", SUGGESTED)
    if "column" in options.own or options.documents is not None:
        raise InputError(
            f"lines with ids have no columns and no {spell('documents', 'FILE')}",
            file=gold,
            remedy=f"choose {spell('unit', 'speaker')}, or {spell('format', 'speech:ids=none')} for lines without ids",
        )
    reference = _read_utterances(gold, shape)
    systems = {
        name: _align_texts(source.path, _read_utterances(source.path, shape), gold, reference)
        for name, source in zip(list_system_names(sources), sources, strict=True)
    }
    return build_text_counts(
        systems,
        [list(reference.values())],
        options,
        ids=list(reference),
        groups=list_speakers(list(reference)),
        suggested=SUGGESTED,
    )


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first lines of the first file are NIST trn: ids in parentheses at their ends."""
    lines = _drop_comments(read_head(sources[0].path).filled_lines)
    return bool(lines) and all(map(TRN.fullmatch, lines))


def _detect_shape(gold: Path, sources: Sequence[Source]) -> str:
    """Return where the ids are by the pattern of the reference's lines; lines of words have none.

    Raises
    ------
    InputError
        First words may be ids: those of the reference are unique, and a system has the same ones.
    """
    lines = _drop_comments(read_text_lines(gold))
    if lines and all(map(TRN.fullmatch, lines)):
        return "trn"
    first_words = [line.split()[0] for line in lines]
    if lines and all(map(ID_WORD.fullmatch, first_words)):
        return "first"
    if len(first_words) > 1 and len({*first_words}) == len(first_words):
        for source in sources:
            if sorted(first_words) == sorted(line.split()[0] for line in _drop_comments(read_text_lines(source.path))):
                raise InputError(
                    f"each line begins with another word ({', '.join(first_words[:3])}, …), as in {gold}, so that "
                    "these may be ids",
                    file=source.path,
                    remedy=f"choose {spell('format', 'speech:ids=first')} (the first words are ids) or "
                    f"{spell('format', 'speech:ids=none')} (they are words that were spoken)",
                )
    return "none"


def _drop_comments(lines: Sequence[str]) -> list[str]:
    """Return the lines that have text and are no comments."""
    return [line for line in lines if line.strip() and not line.startswith(COMMENT)]


def _read_utterances(path: Path, shape: str) -> Utterances:
    utterances = FileListing(path, {}, {})
    for number, line in enumerate(read_text_lines(path), start=1):
        if not _drop_comments([line]):
            continue
        if (match := SHAPES[shape].fullmatch(line)) is None:
            raise InputError(
                file=path,
                line=number,
                found=f"{line[-40:]!r}",
                expected=f"(id) at its end; if the lines have no ids, add {spell('format', 'speech:ids=none')}",
            )
        utterances.add(match["id"], match["text"].replace("\t", " ").strip(), f"line {number}")
    check_filled(path, utterances.items)
    return utterances.items


def _align_texts(path: Path, utterances: Utterances, gold: Path, reference: Utterances) -> Texts:
    for name in utterances:
        if name not in reference:
            raise InputError(f"utterance {name!r} is not in {gold}; every id must be one of the reference", file=path)
    return [utterances.get(name) for name in reference]
