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

Utterances = dict[str, str]
"""Words by utterance id."""


def read_speech(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read transcripts and references, joined by utterance id where lines have one.

    Nothing is normalised. The format's option `ids` says where ids are: trn (in parentheses at the end), first (the
    first word) or none. By default lines end in ids.
    """
    assert gold is not None
    if options.references:
        remedy = f"leave out {spell('references')}, and give {spell('gold', 'FILE')}"
        raise InputError(f"format speech: WER and CER compare with one reference; {remedy}")
    if ref_hyp.sniff(sources, gold, options):
        remedy = f"leave out {spell('gold')}, because each file holds its references"
        raise InputError("holds references and hypotheses", file=sources[0].path, remedy=remedy)
    shape = options.own.get("ids") or ("none" if "column" in options.own else _find_shape(gold))
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


def _find_shape(gold: Path) -> str:
    """Return "trn" if all lines end in ids, and "none" if first words are repeated. Other first words may be ids."""
    lines = _drop_comments(read_text_lines(gold))
    if all(map(TRN.fullmatch, lines)):
        return "trn"
    if len({line.split()[0] for line in lines}) < len(lines):
        return "none"
    raise InputError(
        "its lines do not end in (id), and their first words may be ids",
        file=gold,
        remedy=f"choose {spell('format', 'speech:ids=first')} (the first words are ids) or "
        f"{spell('format', 'speech:ids=none')} (they are words that were spoken)",
    )


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
