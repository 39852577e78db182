"""CoNLL columns: one token per line, its label in the last column, an empty line between sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.counts.checks import describe_foreign_types
from sigdask.counts.factors import Codes
from sigdask.counts.fields import MatchFields
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.formats.reading.files import check_filled, enumerate_lines
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.tagging import chunks, detection, sentences
from sigdask.formats.tagging.detection import DOCSTART, is_ner_column, parse_column, split_cells
from sigdask.formats.tagging.records import choose_keys, is_json_file, read_tagged_records
from sigdask.formats.tagging.sentences import FileColumns, Integers, SentenceCollector, TaggedFile
from sigdask.interface import spell, spell_map
from sigdask.text import format_count

COMMENT = re.compile(r"#\s*(newdoc|newpar|[\w.:-]+\s*=\s)")
CONLLU_OPTIONS = {"scheme": "raw", "column": "4", "gold-column": "4", "tokens": "2"}
"""Default options of CoNLL-U without a column: compare universal parts of speech."""

NEWDOC = re.compile(r"#\s*(?:newdoc(?:\s+id\s*=\s*(.+))?|(?:[\w.-]+:)?document(?:_id)?\s*=\s*(.+))")
"""Patterns of a line that begins a document, with its name: in CoNLL-U and in HIPE."""

NOT_APPLICABLE = "_"

SENTENCE_END = "EndOfSentence"
"""Mark in HIPE's column MISC at the last token of a sentence."""


def read_conll(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read tagged tokens; items are sentences, with counts of chunks and of correct tokens.

    Gold labels are in a separate file, or in a column next to the predicted ones (conlleval's input).
    """
    options = _resolve_columns(sources, gold, options)
    labels, tokens = Codes(), Codes()
    columns = _split_by_column(sources, options)
    files = [_read_file(s.path, settings, labels, tokens, has_gold=gold is None) for s, settings in columns]
    first = files[0] if gold is None else _read_file(gold, options, labels, tokens, only_gold=True)
    files = [file.reorder_like(first) for file in files]
    sentences.check_structure(first, files if gold is not None else files[1:])
    scope = sentences.describe_scope([f.columns for f in files if f.columns], None if gold is None else first.columns)
    first, *files = (file.split_at(first.marked_ends) for file in (first, *files))
    other_files = files if gold is not None else files[1:]
    gold_labels = sentences.get_shared_gold(files, labels) if gold is None else first.labels
    notes = [*sentences.describe_missing_breaks(first), *sentences.describe_altered_tokens(first, other_files, tokens)]
    if "scheme" not in options.own and (gold is not None or is_json_file(first.path)):
        names = list(labels)
        gold_names = {names[k] for k in np.unique(gold_labels)}
        if detection.are_plain(gold_names):
            detection.check_not_bracketed(first.path, "the column of labels", gold_names)
            options = options.with_format_options({"scheme": "raw"})  # no chunks
            notes.insert(0, ScopeNote("gold has plain labels and no chunk tags, so labels are compared token by token"))
    tags = _TagCodes.from_labels(labels, options)
    for file in (first, *other_files):
        tags.check(file, options.own.get("scheme", "conlleval"))
    systems = list_system_names([source for source, _ in columns])
    counts = _build_counts(systems, files, first, gold_labels, tags, options)
    return replace(counts, scope=(*scope, *counts.scope), warnings=(*notes, *counts.warnings))


def _resolve_columns(sources: Sequence[Source], gold: Path | None, options: Options) -> Options:
    """Return the options with column numbers: the requested columns, or those of a documented layout."""
    path = sources[0].path
    if is_json_file(path) or options.own.get("mark") or detection.find_mark(path) is not None:
        return options
    names = detection.find_column_names(path)
    gold_names = detection.find_column_names(gold) if gold is not None and not is_json_file(gold) else names
    options = _number_columns(options, names or gold_names, gold_names or names)
    ner = next((k for k, name in enumerate(names or gold_names, start=1) if is_ner_column(name)), None)
    requested = options.own.get("column") or options.prediction_column
    conllu = detection.is_conllu(path)
    has_gold_column = bool(options.own.get("gold-column") or options.gold_column)
    if gold is None and not has_gold_column and (ner is not None or conllu):
        layout = "CoNLL-U" if conllu else f"a file of columns {', '.join(names)}"
        raise InputError(
            f"{layout} holds predicted labels, but no gold labels", file=path, remedy=f"give {spell('gold', 'FILE')}"
        )
    if ner is not None:
        column = requested or str(ner)
        gold_setting = {} if "+" in column else {"gold-column": options.gold_column or column}
        known = names or gold_names
        has_name = column.isdecimal() and int(column) <= len(known)
        scheme = {"scheme": "conlleval"} if has_name and is_ner_column(known[int(column) - 1]) else {}
        return options.with_format_options({**gold_setting, **scheme, "column": column, **options.own})
    if conllu and requested is None:
        return options.with_format_options({**CONLLU_OPTIONS, **options.own})
    if gold is None and requested is None and not has_gold_column:
        return options.with_format_options(_find_gold_column(path, names, len(sources) == 1))
    return options


def _number_columns(options: Options, names: Sequence[str], gold_names: Sequence[str]) -> Options:
    """Return the options with column numbers instead of column names."""

    def number(text: str, known: Sequence[str]) -> str:
        lowered = [name.lower() for name in known]
        parts = (str(lowered.index(part.lower()) + 1) if part.lower() in lowered else part for part in text.split("+"))
        return "+".join(parts)

    columns = {"column": names, "tokens": names, "gold-column": gold_names}
    settings = {key: number(options.own[key], known) for key, known in columns.items() if key in options.own}
    column, gold_column = options.prediction_column, options.gold_column
    return options.with_format_options(settings).with_columns(
        prediction=None if column is None else number(column, names),
        gold=None if gold_column is None else number(gold_column, gold_names),
    )


def _find_gold_column(path: Path, names: Sequence[str], is_only_file: bool) -> dict[str, str]:
    """Return the columns of gold labels and of predictions in a file with both.

    The gold column is that with the name of one, or the first of two columns of tags. Other files can be read in
    several ways.

    Raises
    ------
    InputError
        More than two columns have chunk tags.
    """
    types = detection.list_tag_columns(path)
    numbers = [*types]
    named = next((k for k, name in enumerate(names, start=1) if name.lower() in detection.GOLD_NAMES), None)
    if named is not None and (predicted := [k for k in numbers if k > named]):
        return {"gold-column": str(named), "column": "+".join(map(str, predicted))}
    if len(numbers) <= 2:
        return {}  # the last two columns, as conlleval reads them
    readings = [
        spell("format", f"conll:gold-column={gold},column={'+'.join(map(str, numbers[k:]))}")
        for k, gold in enumerate(numbers[:-1], start=1)
        # what would be refused is no reading: a system without a gold label, or a single system
        if all(types[gold] & types[column] for column in numbers[k:]) and not (is_only_file and k == len(numbers) - 1)
    ]
    examples = ", ".join(f"column {k} ({min(found, default='O')})" for k, found in types.items())
    raise InputError(
        f"{len(numbers)} columns hold tags ({examples}), of which one is the gold standard",
        file=path,
        remedy=f"choose {', or '.join(readings)}"
        if readings
        else f"name them: {spell('format', 'conll:gold-column=N,column=N+N')}",
    )


def _read_file(
    path: Path, options: Options, labels: Codes, tokens: Codes, *, has_gold: bool = False, only_gold: bool = False
) -> TaggedFile:
    """Read a file of columns, sentences or JSON: a system's file with or without gold labels, or a gold file."""
    if is_json_file(path):
        keys = choose_keys(options, has_gold=has_gold, only_gold=only_gold)
        return read_tagged_records(path, keys, options, labels, tokens)
    mark = options.own.get("mark") or detection.find_mark(path)
    if mark is not None:
        if has_gold:
            raise InputError("has tags, but no gold tags", file=path, remedy=f"give {spell('gold', 'FILE')}")
        return detection.read_tagged_lines(path, mark, labels, tokens)
    width, token_line = detection.find_width(path)
    check_filled(path, width)
    columns = _choose_columns(path, width, token_line, options, has_gold=has_gold, only_gold=only_gold)
    collector = SentenceCollector(path, labels, tokens)
    _collect_rows(columns, width, token_line, options, collector)
    option = "gold-column" if only_gold else "column"
    return _replace_empty_labels(collector.build_file(columns), labels, columns, option)


def _build_counts(
    names: list[str], files: list[TaggedFile], first: TaggedFile, gold: Integers, tags: _TagCodes, options: Options
) -> Counts:
    scheme = chunks.SCHEMES[options.own.get("scheme", "conlleval")]
    gold_chunks, *predicted = (
        chunks.find_chunks(tags.prefix[codes], tags.type[codes], first.lengths, scheme)
        for codes in (gold, *(file.labels for file in files))
    )
    _check_gold(first, gold, gold_chunks, tags, options)
    is_right = [tags.same[file.labels] == tags.same[gold] for file in files]
    correct = [sentences.sum_sentences(values, first.starts) for values in is_right]
    # accuracy is that of tokens
    tokens = {"items": first.lengths[:, None], "correct": np.column_stack(correct)}
    shape = (len(first.starts), len(files))
    gold_types = {tags.types[k] for k in np.unique(gold_chunks.type)}
    other_types = {tags.types[k] for found in predicted for k in np.unique(found.type)} - gold_types
    given = {name: [tags.types[k] for k in found.type] for name, found in zip(names, predicted, strict=True)}
    _check_types(gold_types, given)
    warnings = describe_foreign_types(gold_types, given) if other_types else []
    return Counts(
        systems=tuple(names),
        fields=MatchFields(chunks.count_chunks(gold_chunks, predicted), tuple(tags.types[1:]), shape, tokens),
        n_items=len(first.starts),
        ids=first.ids,
        groups=sentences.build_groups((first, *files), options.groups),
        labels=tuple(sorted(gold_types)),
        predicted_labels=tuple(sorted(other_types)),
        outputs=sentences.build_outputs(gold, [file.labels for file in files], first.starts, tags.names),
        suggested=("accuracy",) if options.own.get("scheme") == "raw" else ("f1", "precision", "recall"),
        warnings=tuple(warnings),
    )


def _check_gold(
    first: TaggedFile, gold: Integers, gold_chunks: chunks.Chunks, tags: _TagCodes, options: Options
) -> None:
    """Raise an error for gold tags that the scheme does not allow, and for a gold standard without a chunk."""
    scheme = options.own.get("scheme", "conlleval")
    is_lost = ~gold_chunks.cover_tokens(first.lengths) & (tags.prefix[gold] > 0)
    if is_lost.any():
        k = int(np.argmax(is_lost))
        n_chunks = int(np.count_nonzero(is_lost))
        raise InputError(
            f"{first.get_location(k)}: gold tag {tags.names[gold[k]]!r} breaks the scheme {scheme}, and so do "
            f"{n_chunks:,} of {np.count_nonzero(tags.prefix[gold]):,} tags of chunks, which would be left out",
            remedy=f"name the scheme of the gold standard, or leave out scheme={scheme} (conlleval's rules fit all)",
        )
    if not len(gold_chunks.start):
        raise InputError(
            f"the gold standard has 0 chunks: all of its {format_count(len(gold), 'tag')} are O",
            file=first.path,
            remedy=f"choose its column with {spell('format', 'conll:gold-column=N')}",
        )


def _check_types(gold_types: set[str], given: dict[str, list[str]]) -> None:
    """Raise an error for a system whose types of chunks never occur in gold."""
    for name, types in given.items():
        if types and gold_types.isdisjoint(types):
            close = {label.casefold(): label for label in gold_types}
            label = min(types)
            raise InputError(
                f"{name}: none of its {format_count(len(types), 'chunk')} has a type that gold has (such as "
                f"{label!r}; gold has {', '.join(sorted(gold_types)[:8])})",
                remedy=spell_map(close.get(label.casefold(), min(gold_types)), label)
                + f" if types have other names, else choose the columns: {spell('format', 'conll:column=N')}, "
                f"conll:gold-column=N, or {spell('gold', 'FILE')}",
            )


@dataclass(frozen=True, slots=True, eq=False)
class _TagCodes:
    """The tag that each label code stands for: its prefix and its type.

    Attributes
    ----------
    names : list of str
        The labels, mapped.
    prefix : int8 array
        Index in `PREFIXES`, -1 for labels that are not tags.
    type, same : int32 array
        Code of the type, and code of prefix and type. A token is right if the latter equals that of gold.
    types : list of str
        Types by their codes.
    """

    names: list[str]
    prefix: np.ndarray[tuple[int], np.dtype[np.int8]]
    type: Integers
    same: Integers
    types: list[str]

    @staticmethod
    def from_labels(labels: Codes, options: Options) -> _TagCodes:
        """Return the parsed tags of all labels, with the label map applied to whole labels or to types."""
        scheme, label_map = options.own.get("scheme", "conlleval"), options.label_mapping
        names, parsed, used = [], [], set()
        is_suffixed = scheme not in chunks.UNPREFIXED and chunks.are_suffixed(labels)
        for label in map(chunks.to_prefixed, labels) if is_suffixed else labels:
            tag = chunks.parse_tag(label_map.get(label, label), scheme)
            if tag is not None and tag[1] in label_map:
                used.add(tag[1])
                tag = tag[0], label_map[tag[1]]
            used.add(label)
            parsed.append(tag)
            if tag is None:
                names.append(label_map.get(label, label))
            else:
                names.append("O" if tag[0] == "O" else tag[1] if scheme == "raw" else "-".join(tag))
        options.check_used_labels(used)
        types, pairs = Codes({"": 0}), Codes()
        return _TagCodes(
            names=names,
            prefix=np.array([-1 if tag is None else chunks.PREFIXES.index(tag[0]) for tag in parsed], np.int8),
            type=np.array([0 if tag is None else types[tag[1]] for tag in parsed], np.int32),
            same=np.array([pairs["-".join(tag or ())] for tag in parsed], np.int32),
            types=list(types),
        )

    def check(self, file: TaggedFile, scheme: str) -> None:
        """Raise if labels are not tags of the scheme."""
        for codes in (file.labels, *([] if file.gold is None else [file.gold])):
            wrong = np.flatnonzero(self.prefix[codes] < 0)
            if len(wrong):
                allowed = chunks.SCHEMES[scheme].prefixes.replace("O", "")
                gold_remedy = f"give the gold labels with {spell('gold', 'FILE')}, " if codes is file.gold else ""
                raise InputError(
                    f"{file.get_location(wrong[0])}: label {self.names[codes[wrong[0]]]!r}, expected O or one that "
                    f"begins with {', '.join(f'{letter}-' for letter in allowed)} ({len(wrong):,} of {len(codes):,} "
                    f"labels); {gold_remedy}choose the column "
                    f"({spell('format', 'conll:column=N')} or conll:gold-column=N), read it as another "
                    f"({spell('label_map', 'O=LABEL')}), or read plain labels: "
                    f"{spell('format', 'conll:scheme=raw')} (each token is a chunk) or conll:scheme=IO (adjacent "
                    "tokens with one label are a chunk)"
                )


def _split_by_column(sources: Sequence[Source], options: Options) -> list[tuple[Source, Options]]:
    """Return the file and options of each system; if several columns are requested, each is a system."""
    columns = options.own.get("column", "").split("+")
    if len(columns) < 2:
        return [(source, options) for source in sources]
    is_unnamed = len(sources) == 1 and sources[0].name is None
    names = () if is_json_file(sources[0].path) else detection.find_column_names(sources[0].path)

    def name(column: str) -> str:
        has_name = column.isdecimal() and int(column) <= len(names)
        return names[int(column) - 1] if has_name else f"column {column}" if column.isdecimal() else column

    return [
        (
            replace(source, name=name(column) if is_unnamed else f"{source.system}:{column}"),
            options.with_format_options({"column": column}),
        )
        for source, column in product(sources, columns)
    ]


def _choose_columns(
    path: Path, width: int, line: int, options: Options, *, has_gold: bool, only_gold: bool
) -> FileColumns:
    """Return which columns to read from a system's file (with or without gold labels) or from a gold file.

    Raises
    ------
    InputError
        The file lacks a column.
    """
    settings = options.own
    gold_text = settings.get("gold-column") or options.gold_column or ("-1" if only_gold else "-2")
    gold_column = parse_column("gold-column", gold_text)
    label_column = parse_column("column", settings.get("column") or options.prediction_column or "-1")
    token = parse_column("tokens", settings.get("tokens") or "1")
    label, gold = gold_column if only_gold else label_column, gold_column if has_gold else None
    for option, column in (("gold-column" if only_gold else "column", label), ("gold-column", gold)):
        if column is not None and not -width <= column < width:
            hint = (
                "the label's column is missing" if column == label else f"give gold labels with {spell('gold', 'FILE')}"
            )
            raise InputError(
                f"found {format_count(width, 'column')}, but {option} is "
                f"{column + 1 if column >= 0 else column}: {hint}, or name the column with "
                f"{spell('format', f'conll:{option}=N')}",
                file=path,
                line=line,
            )
    label, token, gold = label % width, token % width, None if gold is None else gold % width
    if gold == label:
        remedy = f"choose two: {spell('format', 'conll:column=N,gold-column=M')}"
        raise InputError(f"column {label + 1} is chosen for gold and for predicted labels; {remedy}", file=path)
    own_token = None if token in {label, gold} else token  # a column alone holds labels and no tokens
    return FileColumns(path, detection.find_column_names(path), width, label, gold, own_token)


def _collect_rows(
    columns: FileColumns, width: int, token_line: int, options: Options, collector: SentenceCollector
) -> None:
    """Collect the tokens of a file of columns."""
    path, names = columns.path, columns.names
    skips_starts = options.own.get("docstart", "skip") == "skip"  # or reads them as tokens, as conlleval does
    can_be_any = options.own.get("scheme", "conlleval") in chunks.UNPREFIXED
    is_conllu = detection.is_conllu(path)  # rows with ids of ranges (1-2) or empty nodes (1.1) are not tokens
    ends = names.index("MISC") if "MISC" in names and any(map(is_ner_column, names)) else None
    for number, line in enumerate_lines(path):
        cells = detection.trim_cells(split_cells(line), width)
        if detection.is_end(cells, line):
            collector.end_sentence()
            continue
        if is_start := line.startswith(DOCSTART):
            collector.start_document(None)
        if is_start and skips_starts:
            continue
        if _is_header_or_comment(line, cells, width, columns.label, collector, can_be_any=can_be_any):
            _start_document(line, collector)
            continue
        if len(cells) != width:
            raise _build_width_error(path, number, cells, width, token_line)
        if not is_conllu or cells[0].isdecimal():
            gold, token = (None if column is None else cells[column] for column in (columns.gold, columns.token))
            collector.add_token(number, cells[columns.label], gold, token)
            if ends is not None and SENTENCE_END in cells[ends].split("|"):
                collector.mark_end()
        if is_start:
            collector.end_sentence()


def _start_document(line: str, collector: SentenceCollector) -> None:
    if match := NEWDOC.match(line):
        collector.start_document((match[1] or match[2] or "").strip() or None)


def _build_width_error(path: Path, line: int, cells: Sequence[str], width: int, token_line: int) -> InputError:
    is_short = len(cells) < width
    remedy = "complete the line (is the label missing?)" if is_short else "remove the rest (does a token hold a blank?)"
    return InputError(
        file=path,
        line=line,
        found=f"{format_count(len(cells), 'column')} ({' '.join(cells)[:40]!r})",
        expected=f"{width} as on line {token_line}; {remedy}",
    )


def _is_header_or_comment(
    line: str, cells: list[str], width: int, label: int, collector: SentenceCollector, *, can_be_any: bool
) -> bool:
    """Return whether a line is a header or comment, and not a token "#", which has all columns and a label."""
    if not collector.between:  # in a sentence, comments are lines without tabs and with other widths
        return len(cells) != width > 1 and "\t" not in line and COMMENT.match(line) is not None
    if not collector.has_tokens and detection.is_header(cells):
        return True
    is_labelled = len(cells) == width and (can_be_any or "\t" in line or chunks.is_chunk_tag(cells[label]))
    return line.startswith("#") and (not is_labelled or COMMENT.match(line) is not None)


def _replace_empty_labels(tagged: TaggedFile, labels: Codes, columns: FileColumns, option: str) -> TaggedFile:
    """Return the file with `NOT_APPLICABLE` replaced by O in an entity column; raise if no other label occurs."""
    empty_code = labels.get(NOT_APPLICABLE)
    if empty_code is not None and (tagged.labels == empty_code).all():
        raise InputError(
            f"{columns.format_name(columns.label)} has only {NOT_APPLICABLE!r} and no labels (are they hidden?)",
            file=tagged.path,
            remedy=f"choose another column with {spell('format', f'conll:{option}=N')}",
        )
    if empty_code is None or not any(map(is_ner_column, columns.names[columns.label : columns.label + 1])):
        return tagged
    outside = labels["O"]
    gold = None if tagged.gold is None else np.where(tagged.gold == empty_code, outside, tagged.gold).astype(np.int32)
    label_codes = np.where(tagged.labels == empty_code, outside, tagged.labels).astype(np.int32)
    return replace(tagged, labels=label_codes, gold=gold)
