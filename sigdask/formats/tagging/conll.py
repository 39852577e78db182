"""Tagged tokens: one on each line with its label in the last column, an empty line between sentences; or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.fields import MatchFields
from sigdask.counts.texts import Codes
from sigdask.errors import InputError
from sigdask.formats.reading.alignment import check_types
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.signatures import is_chunk_tag, is_json_object, read_tag_head
from sigdask.formats.tagging import chunks, columns, sentences
from sigdask.formats.tagging.sentences import Integers, TaggedFile, read_tagged_records
from sigdask.interface import spell
from sigdask.text import format_list


def read_conll(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read tagged tokens; items are sentences, with counts of chunks and of correct tokens.

    Gold labels are in a separate file, or in a column next to the predicted ones (conlleval's input).
    """
    has_columns = not {"column", "gold-column"}.isdisjoint(options.own)
    if gold is None and not has_columns and not is_json_object(sources[0].path):
        found = columns.find_gold_column(sources[0].path, is_only_file=len(sources) == 1)
        options = options.with_format_options(found)
    labels, tokens = Codes(), Codes()
    systems = _split_by_column(sources, options)
    roles = ["prediction", *(["gold"] if gold is None else [])]
    files = [_read_file(source.path, own, labels, tokens, roles) for source, own in systems]
    first = files[0] if gold is None else _read_file(gold, options, labels, tokens, ["gold"])
    others = files if gold is not None else files[1:]
    sentences.check_structure(first, others)
    gold_labels = sentences.get_shared_gold(files, labels) if gold is None else first.labels
    scored = [*dict.fromkeys(file.scored for file in (*files, first) if file.scored)]
    scope: tuple[str, ...] = (f"Only these columns are scored: {format_list(scored, 10)}",) if scored else ()
    scheme = options.own.get("scheme")
    gold_names = {*np.array(list(labels), object)[np.unique(gold_labels)]}
    if scheme is None and (gold is not None or is_json_object(first.path)) and _are_plain(gold_names):
        _check_labels(first.path, gold_names)
        scheme = "raw"  # no chunks
        scope += ("gold has plain labels and no chunk tags, so labels are compared token by token",)
    tags = _Tags.from_labels(labels, scheme or "conlleval", options)
    for file in (first, *others):
        tags.check(file)
    counts = _build_counts(list_system_names([source for source, _ in systems]), files, first, gold_labels, tags)
    warnings = (*sentences.describe_altered_tokens(first, others, tokens), *counts.warnings)
    groups = sentences.build_groups((first, *files), options.groups)
    return replace(counts, scope=scope, warnings=warnings, groups=groups)


def _split_by_column(sources: Sequence[Source], options: Options) -> list[tuple[Source, Options]]:
    """Return the file and options of each system; if several columns are requested, each is a system."""
    numbers = options.own.get("column", "").split("+")
    if len(numbers) < 2:
        return [(source, options) for source in sources]
    is_unnamed = len(sources) == 1 and sources[0].name is None
    _, header = read_tag_head(sources[0].path)
    names = {number: f"column {number}" if number.isdecimal() else number for number in numbers}
    names |= {str(k): name for k, name in enumerate(header, start=1)}
    return [
        (
            replace(source, name=names[number] if is_unnamed else f"{source.system}:{number}"),
            options.with_format_options({"column": number}),
        )
        for source, number in product(sources, numbers)
    ]


def _read_file(path: Path, options: Options, labels: Codes, tokens: Codes, roles: Sequence[str]) -> TaggedFile:
    read = read_tagged_records if is_json_object(path) else columns.read_columns
    return read(path, options, labels, tokens, roles)


def _are_plain(labels: set[str]) -> bool:
    """Return whether labels are plain: neither chunk tags, nor types of chunks together with O."""
    has_types = any("-" in label and is_chunk_tag(label) for label in labels)
    return not (has_types or "O" in labels or all(map(is_chunk_tag, labels)))


def _check_labels(path: Path, labels: set[str]) -> None:
    """Raise an error for labels that are hidden, or brackets of coreference (CoNLL-2012) or arguments (CoNLL-2005)."""
    if labels <= {"_", ""} or any(len(label) > 1 and label.startswith("(") for label in labels):
        problem = "the column of labels holds nothing but '_', or brackets over several lines, which are not scored"
        remedy = f"choose another column with {spell('format', 'conll:gold-column=N,column=N')}"
        raise InputError(problem, file=path, remedy=remedy)


def _build_counts(names: list[str], files: list[TaggedFile], first: TaggedFile, gold: Integers, tags: _Tags) -> Counts:
    scheme = chunks.SCHEMES[tags.scheme]
    gold_chunks, *predicted = (
        chunks.find_chunks(tags.prefix[codes], tags.type[codes], first.lengths, scheme)
        for codes in (gold, *(file.labels for file in files))
    )
    _check_gold(first, gold, gold_chunks, tags)
    gold_types = [tags.types[k] for k in gold_chunks[:, 2]]
    types = {name: [tags.types[k] for k in found[:, 2]] for name, found in zip(names, predicted, strict=True)}
    some_types = {name: found for name, found in types.items() if found}  # a system may find nothing
    warnings = check_types(first.path, gold_types, some_types, "chunks")
    is_right = np.column_stack([tags.same[file.labels] == tags.same[gold] for file in files])
    correct = np.add.reduceat(is_right, first.starts, axis=0, dtype=np.int32)
    # accuracy is that of tokens
    others = {"items": first.lengths[:, None], "correct": correct}
    return Counts(
        systems=tuple(names),
        fields=MatchFields(chunks.count_chunks(gold_chunks, predicted), tuple(tags.types[1:]), correct.shape, others),
        n_items=len(first.starts),
        ids=first.ids or None,
        labels=tuple(sorted({*gold_types})),
        predicted_labels=tuple(sorted({label for found in types.values() for label in found}.difference(gold_types))),
        outputs=sentences.build_outputs(gold, [file.labels for file in files], first.starts, tags.names),
        suggested=("accuracy",) if tags.scheme == "raw" else ("f1", "precision", "recall"),
        warnings=tuple(warnings),
    )


def _check_gold(first: TaggedFile, gold: Integers, gold_chunks: chunks.Chunks, tags: _Tags) -> None:
    """Raise an error for gold tags that the scheme does not allow."""
    lost = chunks.find_lost_tags(tags.prefix[gold], gold_chunks)
    if len(lost):
        raise InputError(
            f"gold tag {tags.names[gold[lost[0]]]!r} breaks the scheme {tags.scheme}, "
            f"and so do {len(lost):,} of {np.count_nonzero(tags.prefix[gold]):,} tags of chunks",
            file=first.path,
            place=first.get_place(lost[0]),
            remedy=f"name the scheme of the gold standard, or leave out scheme={tags.scheme}",
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Tags:
    """The tag that each label code stands for: its prefix and its type.

    Attributes
    ----------
    scheme : str
        Name of the tagging scheme.
    names : list of str
        The labels, mapped.
    prefix : int8 array
        Index in `PREFIXES`, -1 for labels that are not tags.
    type, same : int32 array
        Code of the type, and of the name. A token is right if the latter equals that of gold.
    types : list of str
        Types by their codes.
    """

    scheme: str
    names: list[str]
    prefix: np.ndarray[tuple[int], np.dtype[np.int8]]
    type: Integers
    same: Integers
    types: list[str]

    @staticmethod
    def from_labels(labels: Codes, scheme: str, options: Options) -> _Tags:
        """Return the parsed tags of all labels, with the label map applied to whole labels or to types."""
        label_map = options.label_mapping
        names, prefixes, types, used = [], [], [], {*labels}
        for label in labels:
            name = label_map.get(label, label)
            prefix, kind = chunks.parse_tag(name, scheme) or (None, "")
            used.add(kind)
            kind = label_map.get(kind, kind)
            prefixes.append(-1 if prefix is None else chunks.PREFIXES.index(prefix))
            types.append(kind)
            is_whole = prefix is None or prefix == "O"
            names.append(name if is_whole else kind if scheme == "raw" else f"{prefix}-{kind}")
        options.check_used_labels(used - {""})
        type_codes, name_codes = Codes({"": 0}), Codes()
        return _Tags(
            scheme=scheme,
            names=names,
            prefix=np.array(prefixes, np.int8),
            type=np.array([type_codes[kind] for kind in types], np.int32),
            same=np.array([name_codes[name] for name in names], np.int32),
            types=list(type_codes),
        )

    def check(self, file: TaggedFile) -> None:
        """Raise if labels are not tags of the scheme."""
        for codes in (file.labels, file.gold[file.gold != sentences.NONE]):
            wrong = np.flatnonzero(self.prefix[codes] < 0)
            if len(wrong):
                label = self.names[codes[wrong[0]]]
                letters = ", ".join(f"{letter}-" for letter in chunks.SCHEMES[self.scheme].prefixes.replace("O", ""))
                raise InputError(
                    f"label {label!r}, expected O or one that begins with {letters} ({len(wrong):,} of {len(codes):,})",
                    file=file.path,
                    place=file.get_place(wrong[0]),
                    remedy=f"choose the column ({spell('format', 'conll:column=N')} or conll:gold-column=N), give "
                    f"{spell('gold', 'FILE')}, read it as another ({spell('label_map', 'O=LABEL')}), or read plain "
                    "labels: conll:scheme=raw (each token is a chunk) or scheme=IO (equal labels in a row are one)",
                )
