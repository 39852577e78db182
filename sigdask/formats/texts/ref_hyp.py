"""Files of speech recognizers that hold the reference and the hypothesis of each utterance.

Layouts are those of icefall (`recogs-*.txt`), Kaldi (`per_utt`), sclite (`.pra`), SpeechBrain (`wer.txt`) and WeNet
(`compute-wer.py`). All of these list every utterance, also those without errors. Marks of gaps in alignments are left
out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import build_repeated_id_error
from sigdask.formats.reading.json_records import read_head
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.texts.parallel import build_text_counts, list_speakers, read_text_lines

SUGGESTED = ("WER", "CER")


def _split_list(text: str) -> list[str]:
    """Return the words of a Python list, or of a text."""
    words = ast.literal_eval(text) if text.startswith("[") else text.split()
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(text)
    return words


def _split_cells(text: str) -> list[str]:
    return [cell.strip() for cell in text.split(" ; ")]


@dataclass(frozen=True, slots=True)
class TranscriptLayout:
    """How a program writes references and hypotheses.

    Attributes
    ----------
    start : pattern
        Where such a file begins, in its first 64 kB.
    line : pattern
        A line with the groups `id`, `ref` or `hyp`. A line with a text may have no id: then the last id holds.
    order : tuple of str
        What lines without a mark hold, counted from the line of the id, as in SpeechBrain's alignments.
    gap : pattern
        A word that stands for a gap.
    split : function
        Splits a text into words. It raises ValueError for other texts.
    has_case : bool
        Whether letters have the case that was recognized. sclite writes words with errors in capitals.
    """

    start: re.Pattern[str]
    line: re.Pattern[str]
    order: tuple[str, ...] = ()
    gap: re.Pattern[str] = re.compile(r"\*{3,}")
    split: Callable[[str], list[str]] = str.split
    has_case: bool = True


LAYOUTS = {
    "icefall": TranscriptLayout(
        start=re.compile(r"\A\s*(\S+):?\t(?:ref|hyp)=.*\r?\n\1:?\t(?:ref|hyp)="),
        line=re.compile(r"(?P<id>\S+?):?\t(?:ref=(?P<ref>.*)|hyp=(?P<hyp>.*))"),
        gap=re.compile(r"(?!)"),
        split=_split_list,
    ),
    "Kaldi": TranscriptLayout(
        start=re.compile(r"\A\s*(\S+) +ref\b.*\r?\n\1 +hyp\b.*\r?\n\1 +op\b"),
        line=re.compile(r"(?P<id>\S+) +(?:ref\b(?P<ref>.*)|hyp\b(?P<hyp>.*))"),
    ),
    "sclite": TranscriptLayout(
        start=re.compile(r"(?m)^id: +\(.+\)\r?\n(?:(?:Labels|File|Channel):.*\r?\n)*Scores: +\(#C #S #D #I\)"),
        line=re.compile(r"id: +\((?P<id>.+)\)|REF:(?P<ref>.*)|HYP:(?P<hyp>.*)"),
        has_case=False,
    ),
    "SpeechBrain": TranscriptLayout(
        start=re.compile(r"(?m)^\S+, %WER [\d.]+ \[ \d+ / \d+, \d+ ins, \d+ del, \d+ sub \]$"),
        line=re.compile(r"(?P<id>\S+), %WER .*"),
        order=("ref", "operations", "hyp"),
        gap=re.compile("<eps>"),
        split=_split_cells,
    ),
    "WeNet": TranscriptLayout(
        start=re.compile(r"(?m)^utt: .*\r?\nWER: .* N=\d+ C=\d+ S=\d+ D=\d+ I=\d+ *\r?\nlab:"),
        line=re.compile(r"utt: +(?P<id>\S+)\s*|lab:(?P<ref>.*)|rec:(?P<hyp>.*)"),
        gap=re.compile("(?!)"),
    ),
}
"""Layouts by the program that writes them."""

Transcripts = dict[str, dict[str, str]]
"""Texts by kind ("ref", "hyp") and utterance."""


def find_layout(path: Path) -> str | None:
    """Return the name of a file's layout, or None."""
    head = read_head(path)
    return next((name for name, layout in LAYOUTS.items() if layout.start.search(head)), None)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether all files hold references and hypotheses in a layout of `LAYOUTS`."""
    return all(source.path.is_file() and find_layout(source.path) is not None for source in sources)


def read_ref_hyp(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read the references and hypotheses of systems, one file for each, whose references must agree."""
    notes: list[str] = []
    files = [_read_file(source.path, notes) for source in sources]
    utterances = list(dict.fromkeys(utterance for file in files for utterance in file["ref"]))
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
    return build_text_counts(
        {
            name: [file["hyp"].get(utterance) for utterance in utterances]
            for name, file in zip(list_system_names(sources), files, strict=True)
        },
        [[references[utterance] for utterance in utterances]],
        options,
        ids=utterances,
        groups=list_speakers(utterances),
        suggested=SUGGESTED,
        warnings=notes,
    )


def _read_file(path: Path, notes: list[str]) -> Transcripts:
    """Read a file, and add a note if the case of letters is not that of the texts."""
    name = find_layout(path)
    if name is None:
        raise InputError(
            f"is in no layout that holds references and hypotheses ({', '.join(LAYOUTS)})",
            file=path,
            remedy="write references and hypotheses into two files, one text on each line",
        )
    layout = LAYOUTS[name]
    texts: Transcripts = {"ref": {}, "hyp": {}}
    for number, utterance, kind, text in _iter_texts(path, layout):
        if utterance in texts[kind]:
            raise build_repeated_id_error(f"{path}, line {number}", utterance, f"with another {kind}")
        try:
            words = [word for word in layout.split(text.strip()) if word and not layout.gap.fullmatch(word)]
        except (ValueError, SyntaxError):
            raise InputError(file=path, line=number, found=text[:60], expected="a list of words") from None
        texts[kind][utterance] = " ".join(words) if layout.has_case else " ".join(words).lower()
    for kind, other in (("ref", "hyp"), ("hyp", "ref")):
        if missing := [utterance for utterance in texts[kind] if utterance not in texts[other]]:
            raise InputError(f"utterance {missing[0]!r} has a {kind} but no {other}", file=path)
    if not layout.has_case:
        notes.append(f"{path}: {name} writes errors in capitals, so that the case of letters is left out")
    return texts


def _iter_texts(path: Path, layout: TranscriptLayout) -> Iterator[tuple[int, str, str, str]]:
    """Yield line number, utterance, kind and text of each reference and hypothesis."""
    utterance, order = "", iter(layout.order[:0])
    for number, line in enumerate(read_text_lines(path), start=1):
        if (match := layout.line.fullmatch(line)) is not None:
            groups = match.groupdict()
            utterance = groups.get("id") or utterance
            kinds = [kind for kind in ("ref", "hyp") if groups.get(kind) is not None]
            if kinds:
                yield number, utterance, kinds[0], groups[kinds[0]]
            else:
                order = iter(layout.order)
        elif (kind := next(order, "")) in {"ref", "hyp"}:
            yield number, utterance, kind, line
