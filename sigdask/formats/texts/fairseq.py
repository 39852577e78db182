"""Logs of fairseq-generate and fairseq-interactive: `S-7`, `T-7`, `H-7`, `D-7` and more, a line each, in any order.

The best hypothesis of each sentence is compared as fairseq scores it: the detokenized one (`D-`, in older logs `H-`)
against the target (`T-`), or against `--gold` by the sentences' numbers. All else in the log is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import head_lines
from sigdask.formats.reading.options import Options, Source, system_names
from sigdask.formats.reading.rows import repeated_id
from sigdask.formats.texts.parallel import text_counts, text_lines
from sigdask.text import some

LINE = re.compile(r"([THD])-(\d{1,12})\t(.*)", re.DOTALL)
GUESS = re.compile(r"[HD]-\d{1,12}\t-?[\d.]{1,24}(e-?\d{1,3})?\t")
SUGGESTED = ("BLEU", "chrF")
BPE = "@@ "

Sentences = dict[int, str]


@dataclass(frozen=True, slots=True)
class FairseqLog:
    """What a log holds of each sentence, by its number.

    Attributes
    ----------
    path : Path
        The log.
    targets, tokens, texts : dict of int to str
        T-, H- and D-: what is right, and the best hypothesis, tokenized and not.
    """

    path: Path
    targets: Sentences = field(default_factory=dict)
    tokens: Sentences = field(default_factory=dict)
    texts: Sentences = field(default_factory=dict)

    @property
    def best(self) -> Sentences:
        """What is compared."""
        return self.texts or self.tokens


def is_log(path: Path) -> bool:
    """Whether a file is such a log."""
    return any(map(GUESS.match, head_lines(path)))


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Know a log by the first hypothesis in it."""
    path = sources[0].path
    return not path.is_dir() and is_log(path)


def read_fairseq(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read logs, a system each."""
    options.only("fairseq")
    logs = dict(zip(system_names(sources), (_log(source.path) for source in sources), strict=True))
    first = next(iter(logs.values()))
    targets = _targets(logs) if gold is None else _gold(gold)
    numbers = sorted(targets)
    references = [[targets[k] for k in numbers]]
    for path in options.references:
        further = _gold(path)
        if further.keys() != targets.keys():
            raise InputError(f"{path}: {len(further):,} sentences, but {gold or first.path} has {len(targets):,}")
        references.append([further[k] for k in numbers])
    for log in logs.values():
        if extra := [k for k in sorted(log.best) if k not in targets]:
            raise InputError(f"{log.path}: {some([*map(str, extra)], 'sentence')} not in {gold or first.path}")
    is_whole = numbers == list(range(len(numbers)))
    return text_counts(
        {name: [log.best.get(k) for k in numbers] for name, log in logs.items()},
        references,
        options,
        ids=None if is_whole else [*map(str, numbers)],
        suggested=SUGGESTED,
        warnings=[
            f"{log.path}: hypotheses hold {BPE!r}: pieces of words are compared; generate with --remove-bpe"
            for log in logs.values()
            if any(BPE in text for text in log.best.values())
        ],
    )


def _log(path: Path) -> FairseqLog:
    """Read a log; of several hypotheses of a sentence the first is the best.

    Raises
    ------
    InputError
        For a log without hypotheses, and for a hypothesis without a score.
    """
    log = FairseqLog(path)
    held = {"T": log.targets, "H": log.tokens, "D": log.texts}
    lines: dict[tuple[str, int], int] = {}
    last: dict[str, int] = {}
    for number, line in enumerate(text_lines(path), start=1):
        if (match := LINE.match(line)) is None:
            continue
        kind, sentence, text = match[1], int(match[2]), match[3]
        if kind != "T":
            _, tab, text = text.partition("\t")
            if not tab:
                raise InputError(
                    f"{path}, line {number}: found {line[:40]!r}, expected a number, a score and a text by tabs"
                )
        if (kind, sentence) in lines and (kind == "T" or last[kind] != sentence):  # no list of n best hypotheses
            raise repeated_id(f"{path}, line {number}", f"{kind}-{sentence}", f"on line {lines[kind, sentence]}")
        lines.setdefault((kind, sentence), number)
        last[kind] = sentence
        held[kind].setdefault(sentence, text)
    if not log.best:
        raise InputError(f"{path}: no hypotheses (H-0, D-0, ...); expected the log of fairseq-generate without --quiet")
    return log


def _targets(logs: Mapping[str, FairseqLog]) -> Sentences:
    """Return the targets, which all logs that have some must agree on."""
    having = [log for log in logs.values() if log.targets]
    if not having:
        path = next(iter(logs.values())).path
        raise InputError(f"{path}: no targets (T-0, ...) to compare with; give --gold FILE")
    first = having[0]
    for log in having[1:]:
        for k, target in sorted(log.targets.items()):
            if first.targets.get(k, target) != target:
                raise InputError(
                    f"{log.path}: target {k} is another than in {first.path}; give --gold FILE, or --reference"
                )
    return {k: target for log in reversed(having) for k, target in log.targets.items()}


def _gold(path: Path) -> Sentences:
    """Read targets: of a log, or the lines of a file, from 0."""
    if not is_log(path):
        return dict(enumerate(text_lines(path)))
    targets = _log(path).targets
    if not targets:
        raise InputError(f"{path}: no targets (T-0, ...)")
    return targets
