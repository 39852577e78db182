"""Output of the memory-based tools: TiMBL's classified instances and Mbt's tagged sentences.

Both write the gold class and the predicted class next to each other, and then what option +v adds: a confidence in
brackets, a distribution in braces, a distance, a match depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.fields import Array, LabelFields, LazyColumns
from sigdask.counts.texts import Codes
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import check_types
from sigdask.formats.reading.files import check_filled, enumerate_lines
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.signatures import UTTERANCE_END, WORD_MARKS, find_separator, match_instance
from sigdask.formats.reading.tables import FileTable
from sigdask.formats.tables.predictions import build_label_counts, join_tables
from sigdask.formats.tagging import sentences


def read_timbl(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read classified instances, one file per setting; the gold classes of all must agree."""
    tables = [_read_instances(source.path) for source in sources]
    columns = replace(options.with_columns(gold="gold", prediction="predicted", item=None), align="position")
    return build_label_counts(join_tables(sources, tables, None, columns), columns)


def _read_instances(path: Path) -> FileTable:
    mark, n_features = find_separator(path)
    gold, predicted, numbers = list[str](), list[str](), list[int]()
    for number, line in enumerate_lines(path):
        if not line.strip():
            continue
        match = match_instance(line, mark, n_features)
        if match is None:
            raise InputError(
                file=path,
                line=number,
                found=f"{line.strip()[:60]!r}",
                expected="features, class and predicted class, separated by commas, tabs or blanks, with "
                f"{n_features} features on each line",
            )
        gold.append(match[2])
        predicted.append(match[3])
        numbers.append(number)
    check_filled(path, numbers)
    return FileTable(path, {"gold": gold, "predicted": predicted}, numbers)


def read_mbt(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:  # noqa: ARG001
    """Read tagged sentences, one file per tagger; items are sentences, labels belong to tokens."""
    labels, tokens = Codes(), Codes()
    files = [sentences.collect_sentences(source.path, _iter_tokens(source.path), labels, tokens) for source in sources]
    first = files[0]
    sentences.check_structure(first, files[1:])
    gold_codes = sentences.get_shared_gold(files, labels)
    options.check_used_labels(labels)
    mapped = Codes()
    code = np.array([mapped[options.label_mapping.get(label, label)] for label in labels], np.int32)
    names = tuple(mapped)
    predicted = np.column_stack([code[file.labels] for file in files])
    gold_tags = [names[k] for k in code[gold_codes]]
    columns = ([names[k] for k in column] for column in predicted.T)
    tags = dict(zip(list_system_names(sources), columns, strict=True))
    check_types(first.path, gold_tags, tags, "tags", "names")
    of_tokens = LabelFields(code[gold_codes][:, None], predicted, names)

    def sum_sentences(name: str) -> Array:
        return np.add.reduceat(of_tokens[name], first.starts, axis=0, dtype=np.int32)

    return Counts(
        systems=tuple(tags),
        fields=LazyColumns([*of_tokens], sum_sentences),
        n_items=len(first.starts),
        groups=sentences.build_groups(files, options.groups),
        labels=tuple(sorted({*gold_tags})),
        predicted_labels=tuple(sorted({*names}.difference(gold_tags))),
        outputs=sentences.build_outputs(code[gold_codes], list(predicted.T), first.starts, names),
        suggested=("accuracy",),
        warnings=tuple(sentences.describe_altered_tokens(first, files[1:], tokens)),
    )


def _iter_tokens(path: Path) -> Iterator[sentences.Event]:
    """Yield the tokens of Mbt's output, None at the end of a sentence."""
    for number, line in enumerate_lines(path):
        words = _split_words(line.rstrip(" \r\n"))
        if not words:
            raise InputError(
                file=path,
                line=number,
                found=f"{line.strip()[:60]!r}",
                expected=f"word, tag and predicted tag separated by tabs, blanks or //, or {UTTERANCE_END}; Mbt writes "
                "gold tags if it reads a tagged file (-T, not -t)",
            )
        for word in words:
            yield sentences.Token(number, word[2], word[1], word[0]) if len(word) == 3 else None


def _split_words(line: str) -> list[tuple[str, ...]]:
    r"""Return the word, gold tag and predicted tag of each word on a line, ("",) for a sentence end.

    Examples
    --------
    >>> _split_words("emissie\t//\tN\tAdj [0.9] { N 1.0 } 0.07")
    [('emissie', 'N', 'Adj')]
    >>> _split_words("de//Art//Art zak//N//V <utt>")
    [('de', 'Art', 'Art'), ('zak', 'N', 'V'), ('',)]
    >>> _split_words("de/Art zak//N")
    []
    """
    parts = line.split()
    if not parts:
        return [("",)]
    if "\t" in line:
        cells = line.split("\t")
        return [(cells[0], cells[-2], cells[-1].split(" ", 1)[0])] if len(cells) > 2 else []
    if len(parts) > 3 and parts[1] in WORD_MARKS:
        return [(parts[0], parts[2], parts[3])]
    if len(parts) == 3 and "/" not in parts[1] + parts[2]:
        return [(parts[0], parts[1], parts[2])]
    words = [("",) if part == UTTERANCE_END else tuple(part.rsplit("//", 2)) for part in parts]
    return words if all(len(word) == 3 or word == ("",) for word in words) else []
