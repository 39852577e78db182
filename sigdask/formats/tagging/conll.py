"""CoNLL columns: one token per line, its label in the last column, an empty line between sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import build_empty_error, open_text
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.tagging.chunks import (
    PREFIXES,
    SCHEMES,
    TAG,
    UNPREFIXED,
    ChunkFields,
    Chunks,
    ChunkScheme,
    are_suffixed,
    find_chunks,
    parse_tag,
    to_prefixed,
)
from sigdask.formats.tagging.detection import (
    DOCSTART,
    are_plain,
    find_column_names,
    find_plain_options,
    find_tag_columns,
    find_width,
    is_conllu,
    is_end,
    is_header,
    parse_column,
    split_cells,
    trim_cells,
)
from sigdask.formats.tagging.lines import find_mark, read_tagged_lines
from sigdask.formats.tagging.records import choose_keys, is_json_file, read_tagged_records
from sigdask.formats.tagging.scope import FileColumns, describe_scope, is_ner_column
from sigdask.formats.tagging.sentences import (
    Codes,
    Integers,
    SentenceCollector,
    TaggedFile,
    build_groups,
    build_outputs,
    check_gold,
    check_structure,
    describe_altered_tokens,
    describe_missing_breaks,
    sum_sentences,
)

COMMENT = re.compile(r"#\s*(newdoc|newpar|[\w.:-]+\s*=\s)")
CONLLU_OPTIONS = {"scheme": "raw", "column": "4", "gold-column": "4", "tokens": "2"}
"""What is compared of CoNLL-U where no column is asked for: universal parts of speech."""

NEWDOC = re.compile(r"#\s*(?:newdoc(?:\s+id\s*=\s*(.+))?|(?:[\w.-]+:)?document(?:_id)?\s*=\s*(.+))")
"""What begins a document, and its name: as CoNLL-U marks it, and as HIPE does."""

NOT_APPLICABLE = "_"

SENTENCE_END = "EndOfSentence"
"""What the column MISC of HIPE holds beside the last token of a sentence."""


@dataclass(frozen=True, slots=True)
class TagColumns:
    """The columns of a file.

    Attributes
    ----------
    label : int
        Column of the label, from 0, or from the end below 0.
    gold : int or None
        Column of the gold label beside it.
    token : int or None
        Column of the token.
    is_tag : callable
        Whether a cell can be a label; tells comments from tokens.
    docstart : str
        "skip" -DOCSTART- lines or take them as a "token", as conlleval does.
    option : str
        What chooses the label's column.
    conllu : bool
        Whether rows begin with CoNLL-U's ids; those of ranges (1-2) and empty nodes (1.1) are no tokens.
    names : tuple of str
        Names of the columns, as far as the file tells them.
    ends : int or None
        Column that marks the last tokens of sentences.
    """

    label: int
    gold: int | None
    token: int | None
    is_tag: Callable[[str], bool]
    docstart: str = "skip"
    option: str = "column"
    conllu: bool = False
    names: tuple[str, ...] = ()
    ends: int | None = None


def read_conll(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read tagged tokens; items are sentences, with counts of chunks and of correct tokens.

    Gold labels stand in a file of their own, or beside the predicted ones (conlleval's input).
    """
    options.check_format_options(
        "conll", scheme=tuple(SCHEMES), docstart=("skip", "token"), column=(), tokens=(), **{"gold-column": ()}
    )
    options = _resolve_columns(sources, gold, options)
    path = sources[0].path
    mark = None if gold is None or options.own else find_mark(path, gold)
    settings = {} if mark is not None or is_json_file(path) else find_plain_options(sources, gold, options)
    options = options.with_format_options(settings)
    labels, tokens = Codes(), Codes()
    columns = _split_by_column(sources, gold, options)
    sources = [source for source, _ in columns]
    if mark is not None and gold is not None:
        first, *files = (read_tagged_lines(path, mark, labels, tokens) for path in (gold, *(s.path for s in sources)))
    else:
        files = [_read_file(s.path, settings, labels, tokens, has_gold=gold is None) for s, settings in columns]
        first = files[0] if gold is None else _read_file(gold, options, labels, tokens, only_gold=True)
    files = [file.reorder_like(first) for file in files]
    if mark is not None or is_json_file(path):
        options = _set_raw_scheme(labels, options)
    check_structure(first, files if gold is not None else files[1:])
    scope = describe_scope([f.columns for f in files if f.columns], None if gold is None else first.columns)
    first, *files = (file.split_at(first.marked_ends) for file in (first, *files))
    other_files = files if gold is not None else files[1:]
    gold_labels = check_gold(files, labels) if gold is None else first.labels
    scheme = options.own.get("scheme", "conlleval")
    tags = _TagCodes.from_labels(labels, scheme, options)
    for file in (first, *other_files):
        tags.check(file, scheme)
    notes = [
        *([_describe_plain_labels(settings)] if settings else []),
        *describe_missing_breaks(first),
        *describe_altered_tokens(first, other_files, tokens),
    ]
    return replace(_build_counts(sources, files, first, gold_labels, tags, options, notes), scope=scope)


def _resolve_columns(sources: Sequence[Source], gold: Path | None, options: Options) -> Options:
    """Return the options with column numbers: the requested columns, or those of a known layout."""
    path = sources[0].path
    if is_json_file(path):
        return options
    names = find_column_names(path)
    gold_names = find_column_names(gold) if gold is not None and not is_json_file(gold) else names
    options = _number_columns(options, names or gold_names, gold_names or names)
    ner = next((k for k, name in enumerate(names or gold_names, start=1) if is_ner_column(name)), None)
    requested = options.own.get("column") or options.prediction_column
    conllu = is_conllu(path)
    if gold is None and ((ner is not None and not options.own.get("gold-column")) or (conllu and requested is None)):
        layout = "CoNLL-U" if conllu else f"a file of columns {', '.join(names)}"
        raise InputError(f"{path}: {layout} holds no gold labels beside predicted ones; give --gold FILE")
    if ner is not None:
        column = requested or str(ner)
        gold_setting = {} if "+" in column else {"gold-column": options.gold_column or column}
        name = (
            (names or gold_names)[int(column) - 1]
            if column.isdecimal() and int(column) <= len(names or gold_names)
            else ""
        )
        scheme = {"scheme": "conlleval"} if is_ner_column(name) else {}
        return options.with_format_options({**gold_setting, **scheme, "column": column, **options.own})
    return options.with_format_options({**CONLLU_OPTIONS, **options.own}) if conllu and requested is None else options


def _number_columns(options: Options, names: Sequence[str], gold_names: Sequence[str]) -> Options:
    """Return the options with column numbers instead of column names."""

    def number(text: str, known: Sequence[str]) -> str:
        lowered = [name.lower() for name in known]
        parts = (str(lowered.index(part.lower()) + 1) if part.lower() in lowered else part for part in text.split("+"))
        return "+".join(parts)

    columns = {"column": names, "tokens": names, "gold-column": gold_names}
    settings = {key: number(options.own[key], known) for key, known in columns.items() if key in options.own}
    column, gold_column = options.prediction_column, options.gold_column
    return replace(
        options.with_format_options(settings),
        prediction_column=None if column is None else number(column, names),
        gold_column=None if gold_column is None else number(gold_column, gold_names),
    )


def _set_raw_scheme(labels: Codes, options: Options) -> Options:
    """Return options with the scheme "raw" (no chunks) if the labels are not chunk tags, else the options unchanged."""
    if "scheme" in options.own or not are_plain(labels.strings):
        return options
    return options.with_format_options({"scheme": "raw"})


def _read_file(
    path: Path, options: Options, labels: Codes, tokens: Codes, *, has_gold: bool = False, only_gold: bool = False
) -> TaggedFile:
    """Read a file of columns or of JSON: a system's file with or without gold labels, or a gold file."""
    if is_json_file(path):
        keys = choose_keys(options, has_gold=has_gold, only_gold=only_gold)
        return read_tagged_records(path, keys, options, labels, tokens)
    scheme = options.own.get("scheme", "conlleval")
    return _read_columns(path, _choose_columns(options, scheme, has_gold=has_gold, only_gold=only_gold), labels, tokens)


def _describe_plain_labels(settings: Mapping[str, str]) -> str:
    column = settings.get("column", "-1")
    column_text = "the last column" if column == "-1" else f"column {column}"
    return (
        f"{column_text} holds plain labels, compared token by token (others: conll:scheme=raw,column=N,gold-column=N)"
    )


def _build_counts(
    sources: Sequence[Source],
    files: Sequence[TaggedFile],
    first: TaggedFile,
    gold_labels: Integers,
    tags: _TagCodes,
    options: Options,
    warnings: Sequence[str],
) -> Counts:
    scheme = SCHEMES[options.own.get("scheme", "conlleval")]
    gold = tags.find_file_chunks(gold_labels, first, scheme)
    predicted = tuple(tags.find_file_chunks(file.labels, first, scheme) for file in files)
    correct = [sum_sentences(tags.same[file.labels] == tags.same[gold_labels], first.starts) for file in files]
    fields = ChunkFields(gold, predicted, np.column_stack(correct), first.lengths[:, None], tags.types)
    gold_types = {tags.types[k] for k in np.unique(gold.type)}
    other_types = {tags.types[k] for chunks in predicted for k in np.unique(chunks.type)} - gold_types
    return Counts(
        systems=tuple(list_system_names(sources)),
        fields=fields,
        n_items=len(first.starts),
        name=options.name,
        ids=first.ids,
        groups=build_groups((first, *files), options.groups),
        labels=tuple(sorted(gold_types)),
        predicted_labels=tuple(sorted(other_types)),
        outputs=build_outputs(gold_labels, [file.labels for file in files], first.starts, tags.names),
        suggested=("accuracy",) if options.own.get("scheme") == "raw" else ("f1", "precision", "recall"),
        warnings=(*warnings, *tags.unused),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _TagCodes:
    """The tag that each label code stands for: its prefix and its type.

    Attributes
    ----------
    names : list of str
        The labels, mapped.
    prefix : int8 array
        Place in `PREFIXES`, -1 for what is no tag.
    type, same : int32 array
        Code of the type; code of prefix and type, by which tokens are right.
    types : list of str
        Types by their codes.
    unused : list of str
        Warnings of labels to be mapped that do not occur.
    """

    names: list[str]
    prefix: np.ndarray[tuple[int], np.dtype[np.int8]]
    type: Integers
    same: Integers
    types: list[str]
    unused: list[str]

    @staticmethod
    def from_labels(labels: Codes, scheme: str, options: Options) -> _TagCodes:
        """Return the parsed tags of all labels, with the label map applied to whole labels or to types."""
        label_map = options.label_mapping
        names, parsed, used = [], [], set()
        is_suffixed = scheme not in UNPREFIXED and are_suffixed(labels.strings)
        for label in map(to_prefixed, labels.strings) if is_suffixed else labels.strings:
            tag = parse_tag(label_map.get(label, label), scheme)
            if tag is not None and tag[1] in label_map:
                used.add(tag[1])
                tag = tag[0], label_map[tag[1]]
            used.add(label)
            parsed.append(tag)
            names.append(label_map.get(label, label) if tag is None else _format_tag(*tag, scheme))
        types = Codes({"": 0})
        pairs = Codes()
        return _TagCodes(
            names=names,
            prefix=np.array([-1 if tag is None else PREFIXES.index(tag[0]) for tag in parsed], np.int8),
            type=np.array([0 if tag is None else types.encode(tag[1]) for tag in parsed], np.int32),
            same=np.array([pairs.encode("-".join(tag or ())) for tag in parsed], np.int32),
            types=types.strings,
            unused=options.describe_unused_labels(used),
        )

    def check(self, file: TaggedFile, scheme: str) -> None:
        """Raise if labels are not tags of the scheme."""
        for codes in filter(lambda codes: codes is not None, (file.labels, file.gold)):
            assert codes is not None
            wrong = np.flatnonzero(self.prefix[codes] < 0)
            if len(wrong):
                allowed = SCHEMES[scheme].prefixes.replace("O", "")
                raise InputError(
                    f"{file.get_location(wrong[0])}: label {self.names[codes[wrong[0]]]!r}, expected O "
                    f"or one that begins with {', '.join(f'{letter}-' for letter in allowed)}; "
                    f"{'give the gold labels with --gold FILE, ' if codes is file.gold else ''}choose the column "
                    "(conll:column=N, conll:gold-column=N), read it as another (--map O=LABEL), or take "
                    "plain labels with conll:scheme=raw (a chunk a token) or conll:scheme=IO"
                )

    def find_file_chunks(self, codes: Integers, first: TaggedFile, scheme: ChunkScheme) -> Chunks:
        """Find the chunks of a file's labels."""
        return find_chunks(self.prefix[codes], self.type[codes], first.lengths, scheme)


def _split_by_column(sources: Sequence[Source], gold: Path | None, options: Options) -> list[tuple[Source, Options]]:
    """Return the file and options of each system; if several columns are requested or detected, each is a system."""
    requested = options.own.get("column", "")
    columns, settings = requested.split("+"), {}
    if not requested and gold is None and len(sources) == 1 and not is_json_file(sources[0].path):
        gold_column, *columns = find_tag_columns(sources[0].path) or [""]
        settings = {"gold-column": gold_column} if options.gold_column is None else {}
    if len(columns) < 2:
        return [(source, options) for source in sources]
    is_unnamed = len(sources) == 1 and sources[0].name is None
    return [
        (
            replace(
                source,
                name=(f"column {column}" if column.isdecimal() else column)
                if is_unnamed
                else f"{source.system}:{column}",
            ),
            options.with_format_options({**settings, **options.own, "column": column}),
        )
        for source in sources
        for column in columns
    ]


def _format_tag(prefix: str, type_: str, scheme: str) -> str:
    if prefix == "O":
        return "O"
    return type_ if scheme == "raw" else f"{prefix}-{type_}"


def _choose_columns(options: Options, scheme: str, *, has_gold: bool, only_gold: bool = False) -> TagColumns:
    """Return which columns to read from a system's file (with or without gold labels) or from a gold file."""
    settings = options.own
    gold = parse_column(
        "gold-column", settings.get("gold-column") or options.gold_column or ("-1" if only_gold else "-2")
    )
    label = parse_column("column", settings.get("column") or options.prediction_column or "-1")
    token = parse_column("tokens", settings.get("tokens") or "1")
    return TagColumns(
        label=gold if only_gold else label,
        gold=gold if has_gold else None,
        token=token,
        is_tag=lambda cell: scheme in UNPREFIXED or cell == "O" or TAG.fullmatch(cell) is not None,
        docstart=settings.get("docstart", "skip"),
        option="gold-column" if only_gold else "column",
    )


def _read_columns(path: Path, columns: TagColumns, labels: Codes, tokens: Codes) -> TaggedFile:
    width, token_line = find_width(path)
    _check_columns(path, columns, width, token_line)
    # a column alone holds labels and no tokens
    label_columns = {columns.label % width, (columns.label if columns.gold is None else columns.gold) % width}
    has_tokens = columns.token is not None and columns.token % width not in label_columns
    columns = replace(
        columns,
        label=columns.label % width,
        gold=None if columns.gold is None else columns.gold % width,
        token=columns.token % width if columns.token is not None and has_tokens else None,
        conllu=is_conllu(path),
        names=(names := find_column_names(path)),
        ends=names.index("MISC") if "MISC" in names and any(map(is_ner_column, names)) else None,
    )
    collector = SentenceCollector(path, labels, tokens)
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            cells = trim_cells(split_cells(line), width)
            if is_end(cells, line):
                collector.end_sentence()
                continue
            if line.startswith(DOCSTART):
                collector.start_document(None)
                if columns.docstart == "skip":
                    continue
            if _is_header_or_comment(line, cells, width, columns, collector):
                _start_document(line, collector)
                continue
            if len(cells) != width:
                raise _width_error(path, number, cells, width, token_line)
            if not columns.conllu or cells[0].isdecimal():
                _add_token(number, cells, columns, collector)
            if line.startswith(DOCSTART):
                collector.end_sentence()
    file = FileColumns(path, columns.names, (), columns.label, columns.gold, columns.token)
    return _replace_empty_labels(collector.build_file(file), labels, columns)


def _add_token(number: int, cells: Sequence[str], columns: TagColumns, collector: SentenceCollector) -> None:
    gold, token = (None if column is None else cells[column] for column in (columns.gold, columns.token))
    collector.add_token(number, cells[columns.label], gold, token)
    collector.add_row(cells)
    if columns.ends is not None and SENTENCE_END in cells[columns.ends].split("|"):
        collector.mark_end()


def _replace_empty_labels(tagged: TaggedFile, labels: Codes, columns: TagColumns) -> TaggedFile:
    """Return the file with `NOT_APPLICABLE` replaced by O in an entity column; raise if no other label occurs."""
    empty_code = labels.get(NOT_APPLICABLE)
    assert tagged.columns is not None
    if empty_code is not None and (tagged.labels == empty_code).all():
        raise InputError(
            f"{tagged.path}: {tagged.columns.format_name(columns.label)} holds {NOT_APPLICABLE!r} alone, so no "
            "labels (is "
            f"the file masked?); choose another column with conll:{columns.option}=N"
        )
    if empty_code is None or not any(map(is_ner_column, columns.names[columns.label : columns.label + 1])):
        return tagged
    outside = labels.encode("O")
    gold = None if tagged.gold is None else np.where(tagged.gold == empty_code, outside, tagged.gold).astype(np.int32)
    return replace(
        tagged, labels=np.where(tagged.labels == empty_code, outside, tagged.labels).astype(np.int32), gold=gold
    )


def _is_header_or_comment(
    line: str, cells: list[str], width: int, columns: TagColumns, collector: SentenceCollector
) -> bool:
    """Return whether a line is a header or comment, and not a token "#", which has all columns and a label."""
    if not collector.between:  # a comment within a sentence shows itself among cells that tabs part
        return len(cells) != width > 1 and line.startswith("#") and "\t" not in line and COMMENT.match(line) is not None
    if not collector.has_tokens and is_header(cells):
        return True
    is_other = len(cells) != width or COMMENT.match(line) is not None or not columns.is_tag(cells[columns.label])
    return line.startswith("#") and is_other


def _start_document(line: str, collector: SentenceCollector) -> None:
    if match := NEWDOC.match(line):
        collector.start_document((match[1] or match[2] or "").strip() or None)


def _check_columns(path: Path, columns: TagColumns, width: int, where: int) -> None:
    if not width:
        raise build_empty_error(path)
    for option, column in ((columns.option, columns.label), ("gold-column", columns.gold)):
        if column is not None and not -width <= column < width:
            hint = "the label's column is missing" if column == columns.label else "give --gold FILE"
            raise InputError(
                f"{path}, line {where}: found {width} column{'s' * (width != 1)}, but {option} is "
                f"{column + 1 if column >= 0 else column}; {hint}, or choose with conll:{option}=N"
            )
    if columns.gold is not None and columns.gold % width == columns.label % width:
        raise InputError(f"{path}: gold and predicted labels are both column {columns.label % width + 1}")


def _width_error(path: Path, number: int, cells: list[str], width: int, where: int) -> InputError:
    return InputError(
        f"{path}, line {number}: found {len(cells)} column{'s' * (len(cells) != 1)} ({' '.join(cells)[:40]!r}), "
        f"expected {width} as on line {where}; complete the line (is the label missing?)"
    )
