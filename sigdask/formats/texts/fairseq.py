"""Logs of fairseq-generate and fairseq-interactive: `S-7`, `T-7`, `H-7`, `D-7` lines in any order.

The best hypothesis of each sentence is compared as in fairseq: the detokenized one (`D-`, in older logs `H-`) with the
target (`T-`), or with `--gold` by the numbers of sentences. All other lines are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import build_repeated_id_error, read_head_lines
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.texts.parallel import build_text_counts, read_text_lines
from sigdask.interface import spell
from sigdask.text import describe_items

LINE = re.compile(r"([THD])-(\d{1,12})\t(.*)", re.DOTALL)
GUESS = re.compile(r"[HD]-\d{1,12}\t-?[\d.]{1,24}(e-?\d{1,3})?\t")
SUGGESTED = ("BLEU", "chrF")

Sentences = dict[int, str]


@dataclass(frozen=True, slots=True)
class FairseqLog:
    """The texts of a log by sentence number.

    Attributes
    ----------
    path : Path
        The log.
    texts : dict of str to dict of int to str
        Texts by kind and sentence number: T for targets, H for the best hypotheses, D for these detokenized.
    """

    path: Path
    texts: dict[str, Sentences] = field(default_factory=lambda: {"T": {}, "H": {}, "D": {}})

    @property
    def best(self) -> Sentences:
        """The best hypothesis of each sentence, detokenized (D-) if the log has such lines."""
        return self.texts["D"] or self.texts["H"]


def is_log(path: Path) -> bool:
    """Return whether a file is a log of fairseq."""
    return any(map(GUESS.match, read_head_lines(path)))


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether the first file is a log of fairseq."""
    return is_log(sources[0].path)


def read_fairseq(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read logs, one per system."""
    logs = dict(zip(list_system_names(sources), (_read_log(source.path) for source in sources), strict=True))
    first_log = next(iter(logs.values()))
    targets = _merge_targets(logs) if gold is None else _read_targets(gold)
    numbers = sorted(targets)
    references = [[targets[k] for k in numbers]]
    for path in options.references:
        more_targets = _read_targets(path)
        if more_targets.keys() != targets.keys():
            n, n_first = len(more_targets), len(targets)
            raise InputError(
                f"{n:,} sentences, but {gold or first_log.path} has {n_first:,}",
                file=path,
                remedy="give logs of one test set",
            )
        references.append([more_targets[k] for k in numbers])
    for log in logs.values():
        if extra := [str(k) for k in sorted(log.best) if k not in targets]:
            raise InputError(f"{describe_items(extra, 'sentence')} not in {gold or first_log.path}", file=log.path)
    is_whole = numbers == list(range(len(numbers)))
    return build_text_counts(
        {name: [log.best.get(k) for k in numbers] for name, log in logs.items()},
        references,
        options,
        ids=None if is_whole else [*map(str, numbers)],
        suggested=SUGGESTED,
    )


def _read_log(path: Path) -> FairseqLog:
    """Read a log; the first of several hypotheses of a sentence is the best.

    Raises
    ------
    InputError
        The log has no hypotheses, or a hypothesis has no score.
    """
    log = FairseqLog(path)
    line_numbers: dict[tuple[str, int], int] = {}
    last_sentences: dict[str, int] = {}
    for number, line in enumerate(read_text_lines(path), start=1):
        if (match := LINE.match(line)) is None:
            continue
        kind, sentence, text = match[1], int(match[2]), match[3]
        if kind != "T":
            _, tab, text = text.partition("\t")
            if not tab:
                raise InputError(
                    file=path,
                    line=number,
                    found=f"{line[:40]!r}",
                    expected="a number, a score and a text, separated by tabs",
                )
        first_line = line_numbers.setdefault((kind, sentence), number)
        if first_line != number and (kind == "T" or last_sentences[kind] != sentence):  # n-best lists repeat it
            raise build_repeated_id_error(f"{path}, line {number}", f"{kind}-{sentence}", f"on line {first_line}")
        last_sentences[kind] = sentence
        log.texts[kind].setdefault(sentence, text)
    if not log.best:
        raise InputError(
            "no hypotheses (H-0, D-0, ...); expected the log of fairseq-generate without --quiet", file=path
        )
    return log


def _merge_targets(logs: Mapping[str, FairseqLog]) -> Sentences:
    """Return the targets, which must agree in all logs that have targets."""
    with_targets = [log for log in logs.values() if log.texts["T"]]
    if not with_targets:
        path = next(iter(logs.values())).path
        raise InputError(
            "no targets (T-0, ...), which are the references",
            file=path,
            remedy=f"give {spell('gold', 'FILE')} (the reference translations)",
        )
    first = with_targets[0]
    for log in with_targets[1:]:
        for k, target in sorted(log.texts["T"].items()):
            if first.texts["T"].get(k, target) != target:
                remedy = f"give {spell('gold', 'FILE')}, or logs of one test set"
                raise InputError(f"target {k} differs from that in {first.path}; {remedy}", file=log.path)
    return {k: target for log in reversed(with_targets) for k, target in log.texts["T"].items()}


def _read_targets(path: Path) -> Sentences:
    """Read targets from a log, or from the lines of a file, numbered from 0."""
    if not is_log(path):
        return dict(enumerate(read_text_lines(path)))
    targets = _read_log(path).texts["T"]
    if not targets:
        raise InputError("no targets (T-0, ...)", file=path)
    return targets
