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

STARTS = {
    "icefall": re.compile(r"\A\s*(\S+):?\t(?:ref|hyp)=.*\r?\n\1:?\t(?:ref|hyp)="),
    "Kaldi": re.compile(r"\A\s*(\S+) +ref\b.*\r?\n\1 +hyp\b.*\r?\n\1 +op\b"),
    "sclite": re.compile(r"(?m)^id: +\(.+\)\r?\n(?:(?:Labels|File|Channel):.*\r?\n)*Scores: +\(#C #S #D #I\)"),
}
"""Pattern of the beginning of each layout, in the first 64 kB of a file."""

LINES = {
    "icefall": re.compile(r"(?P<id>\S+?):?\t(?:ref=(?P<ref>.*)|hyp=(?P<hyp>.*))"),
    "Kaldi": re.compile(r"(?P<id>\S+) +(?:ref\b(?P<ref>.*)|hyp\b(?P<hyp>.*))"),
    "sclite": re.compile(r"id: +\((?P<id>.+)\)|REF:(?P<ref>.*)|HYP:(?P<hyp>.*)"),
}
"""Pattern of a line with an id, a reference or a hypothesis. One without an id has the last id."""

GAP = re.compile(r"\*{3,}")
"""Pattern of a word that stands for a gap."""

Transcripts = dict[str, dict[str, str]]
"""Texts by kind ("ref", "hyp") and utterance."""


def find_layout(path: Path) -> str | None:
    """Return the name of a file's layout, or None."""
    return next((name for name, start in STARTS.items() if start.search(read_head(path).text)), None)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether all files hold references and hypotheses in a layout of `LINES`."""
    return all(source.path.is_file() and find_layout(source.path) is not None for source in sources)


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
    if (layout := find_layout(path)) is None:
        raise InputError(
            f"is in no layout that holds references and hypotheses ({', '.join(LINES)})",
            file=path,
            remedy="write references and hypotheses into two files, one text on each line",
        )
    texts: Transcripts = {"ref": {}, "hyp": {}}
    utterance = ""
    for number, line in enumerate(read_text_lines(path), start=1):
        parts = match.groupdict() if (match := LINES[layout].fullmatch(line)) else {}
        utterance = parts.get("id") or utterance
        for kind in (kind for kind in texts if parts.get(kind) is not None):
            if utterance in texts[kind]:
                raise build_repeated_id_error(f"{path}, line {number}", utterance, f"with another {kind}")
            try:
                texts[kind][utterance] = _join_words(parts[kind].strip())
            except (ValueError, SyntaxError, TypeError):
                raise InputError(file=path, line=number, found=parts[kind][:60], expected="a list of words") from None
    if missing := texts["ref"].keys() ^ texts["hyp"].keys():
        raise InputError(f"utterance {min(missing)!r} has no reference or no hypothesis", file=path)
    if layout == "sclite":
        notes.append(f"{path}: sclite writes errors in capitals, so that the case of letters is left out")
        return {kind: {name: text.lower() for name, text in own.items()} for kind, own in texts.items()}
    return texts


def _join_words(text: str) -> str:
    """Return the words of a Python list, as icefall writes, or of a text."""
    if text.startswith("["):
        return " ".join(ast.literal_eval(text))
    return " ".join(word for word in text.split() if not GAP.fullmatch(word))
