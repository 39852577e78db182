"""Files of speech recognizers that hold the reference and the hypothesis of each utterance.

Layouts are those of icefall (`recogs-*.txt`), Kaldi (`per_utt`) and sclite (`.pra`). All of these list every utterance,
also those without errors. Marks of gaps in alignments are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import build_repeated_id_error, read_head
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.texts.parallel import build_text_counts, list_speakers, read_text_lines

LINE = re.compile(
    r"(?P<id>\S+?):?(?:\t(?=(?:ref|hyp)=)| +(?=(?:ref|hyp|op|#csid)\b))(?P<kind>ref|hyp|op|#csid)=?(?P<text>.*)"
)
"""Pattern of a line of icefall (id, tab, ref=) and of Kaldi (id, blanks, ref)."""

SCLITE = re.compile(r"id: +\((?P<id>.+)\)|(?P<more>>> *)?(?P<kind>REF|HYP):(?P<text>.*)")
"""Pattern of a line of sclite, which continues long alignments after `>>`."""

SCLITE_START = re.compile(r"(?m)^id: +\(.+\)\r?\n(?:(?:Labels|File|Channel):.*\r?\n)*Scores: +\(#C #S #D #I\)")
"""Pattern of the first utterance of sclite, in the first 64 kB of a file."""

GAPS = {LINE: re.compile(r"\*{3}"), SCLITE: re.compile(r"\*+")}
"""Pattern of a word that stands for a gap. In sclite it is as long as the word beside it."""

Transcripts = dict[str, dict[str, str]]
"""Texts by kind ("ref", "hyp") and utterance."""


def find_line(path: Path) -> re.Pattern[str] | None:
    """Return the pattern of a file's lines, or None for a file in no layout."""
    head = read_head(path)
    if SCLITE_START.search(head.text):
        return SCLITE
    return LINE if head.filled_lines and all(map(LINE.fullmatch, head.filled_lines[:5])) else None


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether all files hold references and hypotheses."""
    return all(source.path.is_file() and find_line(source.path) for source in sources)


def read_ref_hyp(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read the references and hypotheses of systems, one file for each, whose references must agree."""
    notes: list[str] = []
    files = [_read_file(source.path, notes) for source in sources]
    references: dict[str, str] = {}
    for source, file in zip(sources, files, strict=True):
        for utterance, text in file["ref"].items():
            if references.setdefault(utterance, text) != text:
                raise InputError(
                    f"utterance {utterance!r} has the reference {text[:60]!r}, but in {sources[0].path} "
                    f"{references[utterance][:60]!r}",
                    file=source.path,
                    remedy="give files that were scored against the same references",
                )
    outputs = [[file["hyp"].get(utterance) for utterance in references] for file in files]
    return build_text_counts(
        dict(zip(list_system_names(sources), outputs, strict=True)),
        [list(references.values())],
        options,
        ids=list(references),
        groups=list_speakers(list(references)),
        suggested=("WER", "CER"),
        warnings=notes,
    )


def _read_file(path: Path, notes: list[str]) -> Transcripts:
    """Read a file, and add a note if the case of letters is not that of the texts."""
    if (pattern := find_line(path)) is None:
        remedy = "write references and hypotheses into two files, one text on each line"
        raise InputError("is no file of icefall, Kaldi or sclite with both texts", file=path, remedy=remedy)
    texts: Transcripts = {"ref": {}, "hyp": {}}
    utterance = ""
    for number, line in enumerate(read_text_lines(path), start=1):
        if (match := pattern.fullmatch(line)) is None:
            continue
        utterance = match["id"] or utterance
        if (kind := (match["kind"] or "").lower()) not in texts:
            continue
        is_continued = pattern is SCLITE and bool(match["more"])
        if utterance in texts[kind] and not is_continued:
            raise build_repeated_id_error(f"{path}, line {number}", utterance, f"with another {kind}")
        try:
            words = _join_words(match["text"].strip(), GAPS[pattern])
        except (ValueError, SyntaxError, TypeError):
            raise InputError(file=path, line=number, found=match["text"][:60], expected="a list of words") from None
        words = words.lower() if pattern is SCLITE else words
        texts[kind][utterance] = f"{texts[kind].get(utterance, '')} {words}".strip() if is_continued else words
    if missing := texts["ref"].keys() ^ texts["hyp"].keys():
        raise InputError(f"utterance {min(missing)!r} has no reference or no hypothesis", file=path)
    if pattern is SCLITE:
        notes.append(f"{path}: sclite writes errors in capitals, so that the case of letters is left out")
    return texts


def _join_words(text: str, gap: re.Pattern[str]) -> str:
    """Return the words of a Python list, as icefall writes, or of a text without gaps."""
    if text.startswith("["):
        return " ".join(ast.literal_eval(text))
    return " ".join(word for word in text.split() if not gap.fullmatch(word))
