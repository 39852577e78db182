"""Speech transcripts: NIST trn (`words (speaker-utterance)`), Kaldi text (`id words`) or plain lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, open_text, read_head_lines
from sigdask.formats.reading.listings import FileListing
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.texts import ref_hyp
from sigdask.formats.texts.parallel import Texts, build_text_counts, list_speakers, read_text_lines
from sigdask.formats.texts.segments import N_HEAD_LINES, read_lines
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
    shape = options.own.get("ids") or ("none" if "column" in options.own else None)
    shape = shape or _detect_shape(gold, [source.path for source in sources])
    if shape == "none":
        return read_lines(sources, gold, options, SUGGESTED)
    if "column" in options.own:
        raise InputError(f"the option column needs lines without ids: {spell('format', 'speech:ids=none,column=N')}")
    if options.documents is not None:
        remedy = f"choose {spell('unit', 'speaker')}, or give a table of ids and groups with {spell('group_file')}"
        raise InputError(
            f"{options.documents}: has one document per line, but these transcripts are matched by ids; {remedy}"
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
    lines = _read_head(sources[0].path)
    return bool(lines) and all(map(TRN.fullmatch, lines))


def _detect_shape(gold: Path, paths: Sequence[Path]) -> str:
    """Return where the ids are by the pattern of the reference's first lines; lines of words have none.

    Raises
    ------
    InputError
        First words may be ids: those of the reference are unique, and a system has the same ones.
    """
    lines = _read_head(gold)
    if lines and all(map(TRN.fullmatch, lines)):
        return "trn"
    if lines and all(ID_WORD.fullmatch(line.split(maxsplit=1)[0]) for line in lines):
        return "first"
    first_words = _list_first_words(gold)
    if len(first_words) > 1 and len({*first_words}) == len(first_words):
        for path in paths:
            if sorted(_list_first_words(path)) == sorted(first_words):
                raise InputError(
                    f"each line begins with another word ({', '.join(first_words[:3])}, …), as in {gold}, so that "
                    "these may be ids",
                    file=path,
                    remedy=f"choose {spell('format', 'speech:ids=first')} (the first words are ids) or "
                    f"{spell('format', 'speech:ids=none')} (they are words that were spoken)",
                )
    return "none"


def _list_first_words(path: Path) -> list[str]:
    with open_text(path) as text:
        return [line.split(maxsplit=1)[0] for line in text if line.strip() and not line.startswith(COMMENT)]


def _read_head(path: Path) -> list[str]:
    """Return the first lines with text, without comments."""
    lines = (line.rstrip("\r") for line in read_head_lines(path))
    return [line for line in lines if line.strip() and not line.startswith(COMMENT)][:N_HEAD_LINES]


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


def _align_texts(path: Path, utterances: Utterances, gold: Path, reference: Utterances) -> Texts:
    for name in utterances:
        if name not in reference:
            raise InputError(f"utterance {name!r} is not in {gold}; every id must be one of the reference", file=path)
    return [utterances.get(name) for name in reference]
