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
    Scheme,
    are_suffixed,
    find_chunks,
    parse_tag,
    prefixed,
)
from sigdask.formats.tagging.heads import (
    DOCSTART,
    cells_of,
    is_conllu,
    is_end,
    is_header,
    place_of,
    plain_labels,
    tag_columns,
    trimmed,
    width_of,
)
from sigdask.formats.tagging.sentences import (
    Codes,
    Collector,
    Integers,
    Tagged,
    altered_tokens,
    check_gold,
    check_structure,
    groups_of,
    outputs_of,
    sums,
    unbroken,
)

COMMENT = re.compile(r"#\s*(newdoc|newpar|[\w.:]+\s*=\s)")
CONLLU = {"scheme": "raw", "column": "4", "gold-column": "4", "tokens": "2"}
"""What is compared of CoNLL-U where no column is asked for: universal parts of speech."""

NEWDOC = re.compile(r"#\s*newdoc(?:\s+id\s*=\s*(.+))?")


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
    """

    label: int
    gold: int | None
    token: int | None
    is_tag: Callable[[str], bool]
    docstart: str = "skip"
    option: str = "column"
    conllu: bool = False


def read_conll(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read tagged tokens; items are sentences, chunks are counted, and right tokens for accuracy.

    Gold labels stand in a file of their own, or beside the predicted ones (conlleval's input).
    """
    options.only(
        "conll", scheme=tuple(SCHEMES), docstart=("skip", "token"), column=(), tokens=(), **{"gold-column": ()}
    )
    words = "column" not in options.own and options.prediction_column is None and is_conllu(sources[0].path)
    if words and gold is None:
        raise InputError(f"{sources[0].path}: CoNLL-U holds no gold labels beside predicted ones; give --gold FILE")
    if words:
        options = options.with_own({**CONLLU, **options.own})
    own = plain_labels(sources, gold, options)
    options = options.with_own(own)
    scheme = options.own.get("scheme", "conlleval")
    labels, tokens = Codes(), Codes()
    columns = _by_column(sources, gold, options)
    sources = [source for source, _ in columns]
    files = [_tagged(s.path, _columns(own, scheme, beside=gold is None), labels, tokens) for s, own in columns]
    if gold is None:
        first, others = files[0], files[1:]
    else:
        of_gold = _columns(options, scheme, beside=False, only_gold=True)
        first, others = _tagged(gold, of_gold, labels, tokens), files
    check_structure(first, others)
    right = check_gold(files, labels) if gold is None else first.labels
    tags = _Tags.of(labels, scheme, options)
    for file in (first, *others):
        tags.check(file, scheme)
    notes = [*([_plain_note(own)] if own else []), *unbroken(first)]
    return _counts(sources, files, first, right, tags, options, [*notes, *altered_tokens(first, others, tokens)])


def _plain_note(own: Mapping[str, str]) -> str:
    column = own.get("column", "-1")
    where = "the last column" if column == "-1" else f"column {column}"
    return f"{where} holds plain labels, compared token by token (others: conll:scheme=raw,column=N,gold-column=N)"


def _counts(
    sources: Sequence[Source],
    files: Sequence[Tagged],
    first: Tagged,
    right: Integers,
    tags: _Tags,
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
        groups=groups_of((first, *files), options.groups),
        labels=tuple(sorted(known)),
        predicted_labels=tuple(sorted(others)),
        outputs=outputs_of(right, [file.labels for file in files], first.starts, tags.names),
        suggested=("accuracy",) if options.own.get("scheme") == "raw" else ("f1", "precision", "recall"),
        warnings=(*warnings, *tags.unused),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Tags:
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
    def of(labels: Codes, scheme: str, options: Options) -> _Tags:
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
        return _Tags(
            names=names,
            prefix=np.array([-1 if tag is None else PREFIXES.index(tag[0]) for tag in parsed], np.int8),
            type=np.array([0 if tag is None else types.of(tag[1]) for tag in parsed], np.int32),
            same=np.array([pairs.of("-".join(tag or ())) for tag in parsed], np.int32),
            types=types.strings,
            unused=options.unmapped(seen),
        )

    def check(self, file: Tagged, scheme: str) -> None:
        """Refuse labels that are no tags of the scheme."""
        for codes in filter(lambda codes: codes is not None, (file.labels, file.gold)):
            assert codes is not None
            wrong = np.flatnonzero(self.prefix[codes] < 0)
            if len(wrong):
                allowed = SCHEMES[scheme].prefixes.replace("O", "")
                raise InputError(
                    f"{file.path}, line {file.lines[wrong[0]]}: label {self.names[codes[wrong[0]]]!r}, expected O "
                    f"or one that begins with {', '.join(f'{letter}-' for letter in allowed)}; "
                    f"{'give the gold labels with --gold FILE, ' if codes is file.gold else ''}choose the column "
                    "(conll:column=N, conll:gold-column=N), read it as another (--map O=LABEL), or take "
                    "plain labels with conll:scheme=raw (a chunk a token) or conll:scheme=IO"
                )

    def chunks(self, codes: Integers, first: Tagged, scheme: Scheme) -> Chunks:
        """Find the chunks of a file's labels."""
        return find_chunks(self.prefix[codes], self.type[codes], first.lengths, scheme)


def _by_column(sources: Sequence[Source], gold: Path | None, options: Options) -> list[tuple[Source, Options]]:
    """Return each system's file and options: a column is a system where several are asked for, or one file has them."""
    asked = options.own.get("column", "")
    columns, own = asked.split("+"), {}
    if not asked and gold is None and len(sources) == 1:
        first, *columns = tag_columns(sources[0].path) or [""]
        own = {"gold-column": first} if options.gold_column is None else {}
    if len(columns) < 2:
        return [(source, options) for source in sources]
    alone = len(sources) == 1 and sources[0].name is None
    return [
        (
            replace(source, name=f"column {column}" if alone else f"{source.system}:{column}"),
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


def _tagged(path: Path, columns: TagColumns, labels: Codes, tokens: Codes) -> Tagged:
    width, where = width_of(path)
    _check_columns(path, columns, width, where)
    # a column alone holds labels and no tokens
    places = {columns.label % width, (columns.label if columns.gold is None else columns.gold) % width}
    token_at = columns.token if columns.token is not None and columns.token % width not in places else None
    columns = replace(columns, conllu=is_conllu(path))
    collector = Collector(path, labels, tokens)
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
            if collector.between and _is_aside(line, cells, width, columns, first=not collector.has_tokens):
                _take_aside(line, collector)
                continue
            if len(cells) != width:
                raise _ragged(path, number, cells, width, where)
            if columns.conllu and not cells[0].isdecimal():
                continue
            gold = None if columns.gold is None else cells[columns.gold]
            collector.token(number, cells[columns.label], gold, None if token_at is None else cells[token_at])
            if line.startswith(DOCSTART):
                collector.end()
    return collector.tagged()


def _is_aside(line: str, cells: list[str], width: int, columns: TagColumns, *, first: bool) -> bool:
    """Tell a header, and a comment before a sentence, from tokens: the token "#" has all columns, and a label."""
    if first and is_header(cells):
        return True
    is_other = len(cells) != width or COMMENT.match(line) is not None or not columns.is_tag(cells[columns.label])
    return line.startswith("#") and is_other


def _take_aside(line: str, collector: Collector) -> None:
    if match := NEWDOC.match(line):
        collector.document((match[1] or "").strip() or None)


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
