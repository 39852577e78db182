"""Speech transcripts: NIST trn (`words (speaker-utterance)`), Kaldi text (`id words`) or plain lines.

Files of recognizers may also hold the reference and the hypothesis of each utterance, in the layouts of icefall
(`recogs-*.txt`) and Kaldi (`per_utt`). Both list every utterance, also those without errors.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled
from sigdask.formats.reading.listings import FileListing
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.signatures import PAIR_LINE, TRN, drop_comments, fits_ref_hyp, has_text_pairs
from sigdask.formats.texts.segments import Texts, build_text_counts, read_lines, read_text_lines
from sigdask.interface import spell

SHAPES = {"trn": TRN, "first": re.compile(r"\s*(?P<id>\S+)(?P<text>.*)")}
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
    if fits_ref_hyp(sources, gold):
        remedy = f"leave out {spell('gold')}, because each file holds its references"
        raise InputError("holds references and hypotheses", file=sources[0].path, remedy=remedy)
    shape = options.own.get("ids") or ("none" if "column" in options.own else _find_shape(gold))
    if shape == "none":
        return read_lines(sources, gold, options, "speech", SUGGESTED)
    if "column" in options.own or options.documents is not None:
        remedy = f"choose {spell('unit', 'speaker')}, or {spell('format', 'speech:ids=none')} for lines without ids"
        problem = f"lines with ids have no columns and no {spell('documents', 'FILE')}"
        raise InputError(problem, file=gold, remedy=remedy)
    reference = _read_utterances(gold, shape)
    systems = {}
    for name, source in zip(list_system_names(sources), sources, strict=True):
        utterances = _read_utterances(source.path, shape)
        if unknown := [utterance for utterance in utterances if utterance not in reference]:
            problem = f"utterance {unknown[0]!r} is not in {gold}; every id must be one of the reference"
            raise InputError(problem, file=source.path)
        systems[name] = [utterances.get(utterance) for utterance in reference]
    return _build_counts(systems, reference, options)


def _build_counts(
    systems: Mapping[str, Texts], reference: Utterances, options: Options, warnings: Sequence[str] = ()
) -> Counts:
    """Return counts with the group of speakers if each id names one: the part before a hyphen, or else underscore."""
    parts = [utterance.partition("-" if "-" in utterance else "_") for utterance in reference]
    have_speakers = all(speaker and mark for speaker, mark, _ in parts)
    return build_text_counts(
        systems,
        [list(reference.values())],
        options,
        ids=list(reference),
        groups={"speaker": [speaker for speaker, _, _ in parts]} if have_speakers else {},
        suggested=SUGGESTED,
        warnings=warnings,
    )


def _find_shape(gold: Path) -> str:
    """Return "trn" if all lines end in ids, and "none" if first words are repeated. Other first words may be ids."""
    lines = drop_comments(read_text_lines(gold))
    if all(map(SHAPES["trn"].fullmatch, lines)):
        return "trn"
    if len({line.split()[0] for line in lines}) < len(lines):
        return "none"
    raise InputError(
        "its lines do not end in (id), and their first words may be ids",
        file=gold,
        remedy=f"choose {spell('format', 'speech:ids=first')} (the first words are ids) or "
        f"{spell('format', 'speech:ids=none')} (they are words that were spoken)",
    )


def _read_utterances(path: Path, shape: str) -> Utterances:
    utterances = FileListing(path, {}, {})
    for number, line in enumerate(read_text_lines(path), start=1):
        if not drop_comments([line]):
            continue
        if (match := SHAPES[shape].fullmatch(line)) is None:
            expected = f"(id) at its end; if the lines have no ids, add {spell('format', 'speech:ids=none')}"
            raise InputError(file=path, line=number, found=f"{line[-40:]!r}", expected=expected)
        utterances.add(match["id"], match["text"].replace("\t", " ").strip(), f"line {number}")
    check_filled(path, utterances.items)
    return utterances.items


def read_ref_hyp(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read the references and hypotheses of systems, one file for each, whose references must agree."""
    reference: Utterances = {}
    outputs = []
    for source in sources:
        own, hypotheses = _read_pairs(source.path)
        for utterance, text in own.items():
            if (known := reference.setdefault(utterance, text)) != text:
                problem = f"utterance {utterance!r} has the reference {text[:60]!r}, but {known[:60]!r} elsewhere"
                remedy = "give files that were scored against the same references"
                raise InputError(problem, file=source.path, remedy=remedy)
        outputs.append(hypotheses)
    systems = zip(list_system_names(sources), outputs, strict=True)
    texts = {name: [own.get(utterance) for utterance in reference] for name, own in systems}
    return _build_counts(texts, reference, options)


def _read_pairs(path: Path) -> tuple[Utterances, Utterances]:
    """Return references and hypotheses."""
    if not has_text_pairs(path):
        remedy = "write references and hypotheses into two files, one text on each line"
        raise InputError("is no file of icefall or Kaldi with both texts", file=path, remedy=remedy)
    texts = {kind: FileListing(path, {}, {}) for kind in ("ref", "hyp")}
    for number, line in enumerate(read_text_lines(path), start=1):
        match = PAIR_LINE.fullmatch(line)
        if match is None or match["kind"] not in texts:
            continue
        try:
            words = _join_words(match["text"].strip())
        except (ValueError, SyntaxError, TypeError):
            raise InputError(file=path, line=number, found=match["text"][:60], expected="a list of words") from None
        texts[match["kind"]].add(match["id"], words, f"line {number}")
    references, hypotheses = (listing.items for listing in texts.values())
    if missing := references.keys() ^ hypotheses.keys():
        raise InputError(f"utterance {min(missing)!r} has no reference or no hypothesis", file=path)
    return references, hypotheses


def _join_words(text: str) -> str:
    """Return the words of a Python list, as icefall writes, or of a text without the marks of gaps in alignments."""
    if text.startswith("["):
        return " ".join(ast.literal_eval(text))
    return " ".join(word for word in text.split() if word != "***")
