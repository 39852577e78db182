"""CoNLL columns: a token a line, its label in the last column, an empty line between sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import empty, open_text
from sigdask.formats.reading.options import Options, Source, system_names
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
    prefixed,
)
from sigdask.formats.tagging.heads import (
    DOCSTART,
    are_plain,
    cells_of,
    column_names,
    is_conllu,
    is_end,
    is_header,
    place_of,
    plain_labels,
    tag_columns,
    trimmed,
    width_of,
)
from sigdask.formats.tagging.lines import mark_of, tagged_lines
from sigdask.formats.tagging.records import is_tag_records, tag_keys, tagged_records
from sigdask.formats.tagging.scope import FileColumns, is_ner_column, scope_of
from sigdask.formats.tagging.sentences import (
    Codes,
    Integers,
    SentenceCollector,
    TaggedFile,
    altered_tokens,
    check_gold,
    check_structure,
    groups_of,
    outputs_of,
    sums,
    unbroken,
)

COMMENT = re.compile(r"#\s*(newdoc|newpar|[\w.:-]+\s*=\s)")
CONLLU = {"scheme": "raw", "column": "4", "gold-column": "4", "tokens": "2"}
"""What is compared of CoNLL-U where no column is asked for: universal parts of speech."""

NEWDOC = re.compile(r"#\s*(?:newdoc(?:\s+id\s*=\s*(.+))?|(?:[\w.-]+:)?document(?:_id)?\s*=\s*(.+))")
"""What begins a document, and its name: as CoNLL-U marks it, and as HIPE does."""

NOT_APPLICABLE = "_"

SENTENCE_END = "EndOfSentence"
"""What the column MISC of HIPE holds beside the last token of a sentence."""


@dataclass(frozen=True, slots=True)
class TagColumns:
    """Which columns a file has.

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
    """Read tagged tokens; items are sentences, chunks are counted, and right tokens for accuracy.

    Gold labels stand in a file of their own, or beside the predicted ones (conlleval's input).
    """
    options.only(
        "conll", scheme=tuple(SCHEMES), docstart=("skip", "token"), column=(), tokens=(), **{"gold-column": ()}
    )
    options = _with_columns(sources, gold, options)
    path = sources[0].path
    mark = None if gold is None or options.own else mark_of(path, gold)
    own = {} if mark is not None or is_tag_records(path) else plain_labels(sources, gold, options)
    options = options.with_own(own)
    labels, tokens = Codes(), Codes()
    columns = _by_column(sources, gold, options)
    sources = [source for source, _ in columns]
    if mark is not None and gold is not None:
        first, *files = (tagged_lines(path, mark, labels, tokens) for path in (gold, *(s.path for s in sources)))
    else:
        files = [_read_file(s.path, own, labels, tokens, beside=gold is None) for s, own in columns]
        first = files[0] if gold is None else _read_file(gold, options, labels, tokens, only_gold=True)
    files = [file.in_order_of(first) for file in files]
    if mark is not None or is_tag_records(path):
        options = _with_plain_tags(labels, options)
    check_structure(first, files if gold is not None else files[1:])
    scope = scope_of([f.columns for f in files if f.columns], None if gold is None else first.columns)
    first, *files = (file.broken_at(first.marked_ends) for file in (first, *files))
    others = files if gold is not None else files[1:]
    right = check_gold(files, labels) if gold is None else first.labels
    scheme = options.own.get("scheme", "conlleval")
    tags = _TagCodes.of(labels, scheme, options)
    for file in (first, *others):
        tags.check(file, scheme)
    notes = [*([_plain_note(own)] if own else []), *unbroken(first), *altered_tokens(first, others, tokens)]
    return replace(_counts(sources, files, first, right, tags, options, notes), scope=scope)


def _with_columns(sources: Sequence[Source], gold: Path | None, options: Options) -> Options:
    """Return the options with the columns that are read, by number: those asked for, or those of a known layout."""
    path = sources[0].path
    if is_tag_records(path):
        return options
    names = column_names(path)
    of_gold = column_names(gold) if gold is not None and not is_tag_records(gold) else names
    options = _numbered(options, names or of_gold, of_gold or names)
    ner = next((k for k, name in enumerate(names or of_gold, start=1) if is_ner_column(name)), None)
    asked = options.own.get("column") or options.prediction_column
    conllu = is_conllu(path)
    if gold is None and ((ner is not None and not options.own.get("gold-column")) or (conllu and asked is None)):
        what = "CoNLL-U" if conllu else f"a file of columns {', '.join(names)}"
        raise InputError(f"{path}: {what} holds no gold labels beside predicted ones; give --gold FILE")
    if ner is not None:
        column = asked or str(ner)
        given = {} if "+" in column else {"gold-column": options.gold_column or column}
        name = (
            (names or of_gold)[int(column) - 1] if column.isdecimal() and int(column) <= len(names or of_gold) else ""
        )
        scheme = {"scheme": "conlleval"} if is_ner_column(name) else {}
        return options.with_own({**given, **scheme, "column": column, **options.own})
    return options.with_own({**CONLLU, **options.own}) if conllu and asked is None else options


def _numbered(options: Options, names: Sequence[str], of_gold: Sequence[str]) -> Options:
    """Return the options with numbers of columns instead of their names."""

    def number(text: str, known: Sequence[str]) -> str:
        lowered = [name.lower() for name in known]
        parts = (str(lowered.index(part.lower()) + 1) if part.lower() in lowered else part for part in text.split("+"))
        return "+".join(parts)

    columns = {"column": names, "tokens": names, "gold-column": of_gold}
    own = {key: number(options.own[key], known) for key, known in columns.items() if key in options.own}
    column, gold_column = options.prediction_column, options.gold_column
    return replace(
        options.with_own(own),
        prediction_column=None if column is None else number(column, names),
        gold_column=None if gold_column is None else number(gold_column, of_gold),
    )


def _with_plain_tags(labels: Codes, options: Options) -> Options:
    """Return the options that compare tags of JSON token by token, where they are no tags of chunks."""
    if "scheme" in options.own or not are_plain(labels.strings):
        return options
    return options.with_own({"scheme": "raw"})


def _read_file(
    path: Path, options: Options, labels: Codes, tokens: Codes, *, beside: bool = False, only_gold: bool = False
) -> TaggedFile:
    """Read a file of columns or of JSON, with gold labels beside or not, or a gold file."""
    if is_tag_records(path):
        keys = tag_keys(options, beside=beside, only_gold=only_gold)
        return tagged_records(path, keys, options, labels, tokens)
    scheme = options.own.get("scheme", "conlleval")
    return _tagged(path, _columns(options, scheme, beside=beside, only_gold=only_gold), labels, tokens)


def _plain_note(own: Mapping[str, str]) -> str:
    column = own.get("column", "-1")
    where = "the last column" if column == "-1" else f"column {column}"
    return f"{where} holds plain labels, compared token by token (others: conll:scheme=raw,column=N,gold-column=N)"


def _counts(
    sources: Sequence[Source],
    files: Sequence[TaggedFile],
    first: TaggedFile,
    right: Integers,
    tags: _TagCodes,
    options: Options,
    warnings: Sequence[str],
) -> Counts:
    scheme = SCHEMES[options.own.get("scheme", "conlleval")]
    gold = tags.chunks(right, first, scheme)
    predicted = tuple(tags.chunks(file.labels, first, scheme) for file in files)
    correct = [sums(tags.same[file.labels] == tags.same[right], first.starts) for file in files]
    fields = ChunkFields(gold, predicted, np.column_stack(correct), first.lengths[:, None], tags.types)
    known = {tags.types[k] for k in np.unique(gold.type)}
    others = {tags.types[k] for chunks in predicted for k in np.unique(chunks.type)} - known
    return Counts(
        systems=tuple(system_names(sources)),
        fields=fields,
        n_items=len(first.starts),
        name=options.name,
        ids=first.ids,
        groups=groups_of((first, *files), options.groups),
        labels=tuple(sorted(known)),
        predicted_labels=tuple(sorted(others)),
        outputs=outputs_of(right, [file.labels for file in files], first.starts, tags.names),
        suggested=("accuracy",) if options.own.get("scheme") == "raw" else ("f1", "precision", "recall"),
        warnings=(*warnings, *tags.unused),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _TagCodes:
    """What each label code means.

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
    def of(labels: Codes, scheme: str, options: Options) -> _TagCodes:
        """Take all labels apart; those to be mapped are whole labels or types."""
        mapped = options.mapped
        names, parsed, seen = [], [], set()
        suffixed = scheme not in UNPREFIXED and are_suffixed(labels.strings)
        for label in map(prefixed, labels.strings) if suffixed else labels.strings:
            tag = parse_tag(mapped.get(label, label), scheme)
            if tag is not None and tag[1] in mapped:
                seen.add(tag[1])
                tag = tag[0], mapped[tag[1]]
            seen.add(label)
            parsed.append(tag)
            names.append(mapped.get(label, label) if tag is None else _write(*tag, scheme))
        types = Codes({"": 0})
        pairs = Codes()
        return _TagCodes(
            names=names,
            prefix=np.array([-1 if tag is None else PREFIXES.index(tag[0]) for tag in parsed], np.int8),
            type=np.array([0 if tag is None else types.of(tag[1]) for tag in parsed], np.int32),
            same=np.array([pairs.of("-".join(tag or ())) for tag in parsed], np.int32),
            types=types.strings,
            unused=options.unmapped(seen),
        )

    def check(self, file: TaggedFile, scheme: str) -> None:
        """Refuse labels that are no tags of the scheme."""
        for codes in filter(lambda codes: codes is not None, (file.labels, file.gold)):
            assert codes is not None
            wrong = np.flatnonzero(self.prefix[codes] < 0)
            if len(wrong):
                allowed = SCHEMES[scheme].prefixes.replace("O", "")
                raise InputError(
                    f"{file.place(wrong[0])}: label {self.names[codes[wrong[0]]]!r}, expected O "
                    f"or one that begins with {', '.join(f'{letter}-' for letter in allowed)}; "
                    f"{'give the gold labels with --gold FILE, ' if codes is file.gold else ''}choose the column "
                    "(conll:column=N, conll:gold-column=N), read it as another (--map O=LABEL), or take "
                    "plain labels with conll:scheme=raw (a chunk a token) or conll:scheme=IO"
                )

    def chunks(self, codes: Integers, first: TaggedFile, scheme: ChunkScheme) -> Chunks:
        """Find the chunks of a file's labels."""
        return find_chunks(self.prefix[codes], self.type[codes], first.lengths, scheme)


def _by_column(sources: Sequence[Source], gold: Path | None, options: Options) -> list[tuple[Source, Options]]:
    """Return each system's file and options: a column is a system where several are asked for, or one file has them."""
    asked = options.own.get("column", "")
    columns, own = asked.split("+"), {}
    if not asked and gold is None and len(sources) == 1 and not is_tag_records(sources[0].path):
        first, *columns = tag_columns(sources[0].path) or [""]
        own = {"gold-column": first} if options.gold_column is None else {}
    if len(columns) < 2:
        return [(source, options) for source in sources]
    alone = len(sources) == 1 and sources[0].name is None
    return [
        (
            replace(
                source,
                name=(f"column {column}" if column.isdecimal() else column) if alone else f"{source.system}:{column}",
            ),
            options.with_own({**own, **options.own, "column": column}),
        )
        for source in sources
        for column in columns
    ]


def _write(prefix: str, type_: str, scheme: str) -> str:
    if prefix == "O":
        return "O"
    return type_ if scheme == "raw" else f"{prefix}-{type_}"


def _columns(options: Options, scheme: str, *, beside: bool, only_gold: bool = False) -> TagColumns:
    """Return the columns of a system's file, with gold labels beside or not, or of a gold file."""
    own = options.own
    gold = place_of("gold-column", own.get("gold-column") or options.gold_column or ("-1" if only_gold else "-2"))
    label = place_of("column", own.get("column") or options.prediction_column or "-1")
    token = place_of("tokens", own.get("tokens") or "1")
    return TagColumns(
        label=gold if only_gold else label,
        gold=gold if beside else None,
        token=token,
        is_tag=lambda cell: scheme in UNPREFIXED or cell == "O" or TAG.fullmatch(cell) is not None,
        docstart=own.get("docstart", "skip"),
        option="gold-column" if only_gold else "column",
    )


def _tagged(path: Path, columns: TagColumns, labels: Codes, tokens: Codes) -> TaggedFile:
    width, where = width_of(path)
    _check_columns(path, columns, width, where)
    # a column alone holds labels and no tokens
    places = {columns.label % width, (columns.label if columns.gold is None else columns.gold) % width}
    has_tokens = columns.token is not None and columns.token % width not in places
    columns = replace(
        columns,
        label=columns.label % width,
        gold=None if columns.gold is None else columns.gold % width,
        token=columns.token % width if columns.token is not None and has_tokens else None,
        conllu=is_conllu(path),
        names=(names := column_names(path)),
        ends=names.index("MISC") if "MISC" in names and any(map(is_ner_column, names)) else None,
    )
    collector = SentenceCollector(path, labels, tokens)
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            cells = trimmed(cells_of(line), width)
            if is_end(cells, line):
                collector.end()
                continue
            if line.startswith(DOCSTART):
                collector.document(None)
                if columns.docstart == "skip":
                    continue
            if _is_aside(line, cells, width, columns, collector):
                _take_aside(line, collector)
                continue
            if len(cells) != width:
                raise _ragged(path, number, cells, width, where)
            if not columns.conllu or cells[0].isdecimal():
                _take_token(number, cells, columns, collector)
            if line.startswith(DOCSTART):
                collector.end()
    file = FileColumns(path, columns.names, (), columns.label, columns.gold, columns.token)
    return _filled(collector.tagged(file), labels, columns)


def _take_token(number: int, cells: Sequence[str], columns: TagColumns, collector: SentenceCollector) -> None:
    gold, token = (None if place is None else cells[place] for place in (columns.gold, columns.token))
    collector.token(number, cells[columns.label], gold, token)
    collector.row(cells)
    if columns.ends is not None and SENTENCE_END in cells[columns.ends].split("|"):
        collector.mark_end()


def _filled(tagged: TaggedFile, labels: Codes, columns: TagColumns) -> TaggedFile:
    """Refuse a column without any label; elsewhere in a column of entities the mark of no label is O."""
    none = labels.get(NOT_APPLICABLE)
    assert tagged.columns is not None
    if none is not None and (tagged.labels == none).all():
        raise InputError(
            f"{tagged.path}: {tagged.columns.name(columns.label)} holds {NOT_APPLICABLE!r} alone, so no labels (is "
            f"the file masked?); choose another column with conll:{columns.option}=N"
        )
    if none is None or not any(map(is_ner_column, columns.names[columns.label : columns.label + 1])):
        return tagged
    outside = labels.of("O")
    gold = None if tagged.gold is None else np.where(tagged.gold == none, outside, tagged.gold).astype(np.int32)
    return replace(tagged, labels=np.where(tagged.labels == none, outside, tagged.labels).astype(np.int32), gold=gold)


def _is_aside(line: str, cells: list[str], width: int, columns: TagColumns, collector: SentenceCollector) -> bool:
    """Tell a header, and a comment, from tokens: the token "#" has all columns, and a label."""
    if not collector.between:  # a comment within a sentence shows itself among cells that tabs part
        return len(cells) != width > 1 and line.startswith("#") and "\t" not in line and COMMENT.match(line) is not None
    if not collector.has_tokens and is_header(cells):
        return True
    is_other = len(cells) != width or COMMENT.match(line) is not None or not columns.is_tag(cells[columns.label])
    return line.startswith("#") and is_other


def _take_aside(line: str, collector: SentenceCollector) -> None:
    if match := NEWDOC.match(line):
        collector.document((match[1] or match[2] or "").strip() or None)


def _check_columns(path: Path, columns: TagColumns, width: int, where: int) -> None:
    if not width:
        raise empty(path)
    for option, place in ((columns.option, columns.label), ("gold-column", columns.gold)):
        if place is not None and not -width <= place < width:
            hint = "the label's column is missing" if place == columns.label else "give --gold FILE"
            raise InputError(
                f"{path}, line {where}: found {width} column{'s' * (width != 1)}, but {option} is "
                f"{place + 1 if place >= 0 else place}; {hint}, or choose with conll:{option}=N"
            )
    if columns.gold is not None and columns.gold % width == columns.label % width:
        raise InputError(f"{path}: gold and predicted labels are both column {columns.label % width + 1}")


def _ragged(path: Path, number: int, cells: list[str], width: int, where: int) -> InputError:
    return InputError(
        f"{path}, line {number}: found {len(cells)} column{'s' * (len(cells) != 1)} ({' '.join(cells)[:40]!r}), "
        f"expected {width} as on line {where}; complete the line (is the label missing?)"
    )
