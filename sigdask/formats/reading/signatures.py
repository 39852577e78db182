"""What the files of each format look like: one signature for each format, which `registry.FORMATS` names.

A signature looks at the first 64 kB of a file, or at the names in a folder. Readers are imported when their format is
known, and share what is said here of their files: names of keys and columns, and patterns of lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from sigdask.errors import InputError
from sigdask.formats.reading import files, json_records
from sigdask.formats.reading.columns import NUMBER
from sigdask.formats.reading.files import cache_result, find_delimiter, parse_header, read_head
from sigdask.formats.reading.options import Source
from sigdask.formats.roles import name_role


@cache_result
def read_keys(path: Path) -> tuple[str, ...]:
    """Return the columns of a table, or the dotted keys of the first record of other files.

    Lists add nothing to the keys of the objects in them. JSON may be cut off at the end of the file's head.
    """
    head = read_head(path)
    if head.is_arrow:
        return tuple(_iter_key_paths(next((record for _, record in json_records.iter_records(path)), {})))
    if not head.is_json:
        return tuple(name.strip() for line in head.filled_lines[:1] for name in parse_header(line))
    from pydantic_core import from_json

    try:
        value = from_json(head.text, allow_partial="trailing-strings")
    except ValueError:
        return ()
    return tuple(dict.fromkeys(_iter_key_paths(value[:1] if isinstance(value, list) else value)))


def _iter_key_paths(value: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(value, list):
        for part in value:
            yield from _iter_key_paths(part, prefix)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield prefix + key
            yield from _iter_key_paths(part, f"{prefix}{key}.")


def is_list(path: Path) -> bool:
    """Return whether a file holds lines of text, rather than columns or JSON: no column is named, nor tabs align."""
    head = read_head(path)
    is_named = path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
    if is_named or head.is_arrow or not (lines := head.filled_lines):
        return False
    if lines[0].lstrip()[:1] in "{[" and head.is_json:
        return False
    names = parse_header(lines[0])
    return len(names) < 2 or not ("\t" in lines[0] or any(map(name_role, names)))


WMT_ROOT = re.compile(rb"(?s)(?:\s|<\?xml[^>]*+>|(?><!--.*?-->)|(?><!DOCTYPE[^>\[]*+(?:>|\[.*?\]\s*+>)))*+<dataset\b")


def is_wmt_xml(path: Path) -> bool:
    """Return whether a file is WMT XML, by its first element."""
    return WMT_ROOT.match(read_head(path).start.removeprefix(files.BOM)) is not None


def fits_segments(sources: Sequence[Source], _gold: Path | None) -> bool:
    """Return whether the first file is WMT XML. Lines of text have no signature."""
    return is_wmt_xml(sources[0].path)


TRN = re.compile(r"(?P<text>.*)\((?P<id>[^()\s]+)\)\s*")
"""Pattern of a line of NIST trn, with an id in parentheses at its end."""


def drop_comments(lines: Sequence[str]) -> list[str]:
    """Return the lines of NIST trn that have text and are no comments, which begin with two semicolons."""
    return [line for line in lines if line.strip() and not line.startswith(";;")]


def fits_speech(sources: Sequence[Source], _gold: Path | None) -> bool:
    """Return whether the first lines of the first file are NIST trn."""
    lines = drop_comments(read_head(sources[0].path).filled_lines)
    return bool(lines) and all(map(TRN.fullmatch, lines))


PAIR_LINE = re.compile(
    r"(?P<id>\S+?):?(?:\t(?=(?:ref|hyp)=)| +(?=(?:ref|hyp|op|#csid)\b))(?P<kind>ref|hyp|op|#csid)=?(?P<text>.*)"
)
"""Pattern of a line of icefall (id, tab, ref=) and of Kaldi (id, blanks, ref)."""


def has_text_pairs(path: Path) -> bool:
    """Return whether a file holds references and hypotheses, as icefall and Kaldi write them."""
    lines = read_head(path).filled_lines
    return bool(lines) and all(map(PAIR_LINE.fullmatch, lines[:5]))


def fits_ref_hyp(sources: Sequence[Source], _gold: Path | None) -> bool:
    """Return whether all files hold references and hypotheses."""
    return all(has_text_pairs(source.path) for source in sources)


LIST_NAMES = ("term_list", "terms", "termlist", "predicted_terms", "extracted_terms", "gold_terms",
              "keyphrases", "keywords")  # fmt: skip
"""Keys and columns of lists of terms."""

TERM_NAMES = ("term", "predicted_term", "keyphrase", "keyword")
"""Columns of single terms."""

TERM_ENDINGS = (".key", ".keys", ".term", ".terms")
"""Endings of files in a folder of lists."""

ACTER = re.compile(r"[^\t]+\t(Specific_Term|Common_Term|OOD_Term|Named_Entity)")
"""Line of ACTER's lists: a term and its label."""


def is_acter(path: Path) -> bool:
    """Return whether the first lines are terms with labels of ACTER."""
    lines = read_head(path).filled_lines
    return bool(lines) and all(ACTER.fullmatch(line.strip()) for line in lines)


def fits_terms(sources: Sequence[Source], gold: Path | None) -> bool:
    """Return whether the first is a folder of lists, has a key or column of terms, or gold is a list of ACTER."""
    path = sources[0].path
    if path.is_dir():
        return any(file.suffix in TERM_ENDINGS for file in path.rglob("*"))
    names = [name.lower() for name in read_keys(path)]
    if any(name in TERM_NAMES or name.rpartition(".")[2] in LIST_NAMES for name in names):
        return True
    return gold is not None and not read_head(path).is_json and is_acter(gold)


BRAT = ".ann"
"""Ending of annotations in brat's notation."""

SPANS = re.compile(
    r'"(spans|entities|ents|gold_extracts|pred_extracts|extracts)"\s*:\s*[\[{]'
    r'|"annotations"\s*:\s*\[\s*\{[^\[]*"result"'
    r'|"labels?"\s*:\s*\[\s*(\[\s*\d+\s*,\s*\d+|\{[^{}]*"(start|end)(_offset)?")'
    r'|"(gold_|predicted_)?relations"\s*:\s*\[\s*\{[^{}]*"(head|tail|from_id)"\s*:'
)
"""JSON of a declared layout: keys of spans, or keys that other formats have, too, with offsets within."""

START_NAMES = ("start", "startoffset", "startchar", "begin", "off0")
END_NAMES = ("end", "endoffset", "endchar", "off1")
"""Columns of offsets, in lower case without underscores."""


def is_brat(path: Path) -> bool:
    """Return whether a file has brat's ending."""
    return path.name.removesuffix(".gz").endswith(BRAT)


def normalize_name(name: str) -> str:
    """Return a name in lower case without underscores."""
    return name.strip().lower().replace("_", "")


def find_offsets(names: Iterable[str]) -> list[str]:
    """Return the columns of offsets."""
    return [name for name in names if normalize_name(name) in {*START_NAMES, *END_NAMES}]


def fits_spans(sources: Sequence[Source], _gold: Path | None) -> bool:
    """Return whether the first file or folder is brat's, or has keys of spans or columns of offsets."""
    path = sources[0].path
    if path.is_dir():
        return any(map(is_brat, path.rglob("*")))
    head = read_head(path)
    if head.is_json:
        return SPANS.search(head.text) is not None
    return is_brat(path) or len(find_offsets(parse_header(head.text))) >= 2


MORPH_MARKS = re.compile(r" @@|@@ ")
"""Mark before each morph except the first, and mark after each except the last, as byte-pair encoders write it."""


def fits_pairs(_sources: Sequence[Source], gold: Path | None) -> bool:
    """Return whether the gold file has words, morphs with marks, and perhaps categories."""
    lines = [] if gold is None else [line.split("\t") for line in read_head(gold).filled_lines]
    return all(2 <= len(cells) <= 3 for cells in lines) and any(MORPH_MARKS.search(cells[1]) for cells in lines)


DOCSTART = "-DOCSTART-"
COMMENT = re.compile(r"# ?(newpar|newdoc|[\w.:-]+ *=)")
NEWDOC = re.compile(r"# ?newdoc(?: id *= *(.+))?")
"""Patterns of lines that are no tokens, and of those that begin a document."""

TOKEN_NAMES = frozenset({"token", "tokens", "word", "words", "form", "text"})
GOLD_NAMES = frozenset({"gold", "gold_label", "gold_tag"})
LABEL_NAMES = GOLD_NAMES | frozenset({"tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "ne", "entity",
                                      "chunk", "chunks", "chunk_tag", "chunk_tags", "pos", "pos_tag", "pos_tags",
                                      "upos", "xpos", "pred", "prediction", "predicted"})  # fmt: skip
"""Names of columns in a header of tagged tokens."""

CONLLU_NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
CONLLU_ID = re.compile(r"\d+(?:[-.]\d+)?")
CONLLU_HEAD, CONLLU_RELATION = CONLLU_NAMES.index("HEAD"), CONLLU_NAMES.index("DEPREL")

TAG = re.compile(r"([BIESLUMW])(?:-(.*))?", re.DOTALL)
"""Pattern of the tag of a token in a chunk."""

TagRow = list[str] | tuple[str, ...] | str | None
"""The cells of a token, or of a header as a tuple; the name of a document that begins, "" for one without a name; or
None at the end of a sentence.
"""


def is_chunk_tag(label: str) -> bool:
    """Return whether a label is O, or a letter of a scheme with or without a type, as in B-PER."""
    return label == "O" or TAG.fullmatch(label) is not None


def iter_tag_rows(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, TagRow]]:
    """Yield the number and content of lines of tagged tokens, without comments."""
    is_start = True
    for number, line in lines:
        if not line.strip():
            yield number, None
        elif line.startswith(DOCSTART):
            yield number, ""
        elif line.startswith("#") and COMMENT.match(line):
            if match := NEWDOC.match(line):
                yield number, (match[1] or "").strip()
        else:
            cells = split_cells(line)
            is_names, is_start = is_start and is_tag_header(cells), False
            yield number, tuple(cell.lstrip("# ") for cell in cells) if is_names else cells


def split_cells(line: str) -> list[str]:
    r"""Split a line at tabs, or else at runs of blanks; cells between or after tabs may be empty.

    Other white space (no-break, ideographic) is part of tokens.

    Examples
    --------
    >>> split_cells("New York\tB-LOC\r\n"), split_cells("\tO\n"), split_cells("the  DT O \n"), split_cells("York\t\n")
    (['New York', 'B-LOC'], ['', 'O'], ['the', 'DT', 'O'], ['York', ''])
    """
    if "\t" in line:
        return line.rstrip("\r\n").rstrip(" ").split("\t")
    return [cell for cell in line.rstrip("\r\n").split(" ") if cell]


def is_tag_header(cells: Sequence[str]) -> bool:
    """Return whether the first row names columns: a token column, followed by a label column.

    Examples
    --------
    >>> is_tag_header(["# Word", "POS", "ner_tags"]), is_tag_header(["word", "label"]), is_tag_header(["text", "NN"])
    (True, True, False)
    """
    names = [cell.lstrip("# ").lower() for cell in cells]
    has_labels = any(name in LABEL_NAMES or is_entity_name(name) for name in names[1:])
    return has_labels and not TOKEN_NAMES.isdisjoint(names[:2])


def is_entity_name(name: str) -> bool:
    """Return whether a column has tags of historical named entities, as NE-COARSE-LIT of HIPE."""
    return name.lower().startswith("ne-")


def read_tag_head(path: Path) -> tuple[list[list[str]], tuple[str, ...]]:
    """Return the cells of the first rows of a file, [] for the end of a sentence, and the names of its columns."""
    rows = [row for _, row in iter_tag_rows(enumerate(read_head(path).lines))]
    header = next((row for row in rows if isinstance(row, tuple)), ())
    contents = [row or [] for row in rows if isinstance(row, list | None)]
    tokens = [*filter(None, contents)]
    is_conllu = all(len(cells) == len(CONLLU_NAMES) and CONLLU_ID.fullmatch(cells[0]) for cells in tokens)
    return contents, CONLLU_NAMES if header == CONLLU_NAMES or (tokens and is_conllu) else header


TOKEN_KEYS = ("tokens", "words")
TAG_KEYS = ("ner_tags", "tags", "labels", "ner", "bio_tags", "chunk_tags", "pos_tags", "pos", "upos")
"""Keys of lists. Tags may also be under a key of the role "gold" or "prediction"."""


def is_json_object(path: Path) -> bool:
    """Return whether a file begins with a JSON object; a line of columns may also begin with a bracket."""
    return re.match(r'\s*(\[\s*)?\{\s*"', read_head(path).text) is not None


def is_plain_list(value: Any) -> bool:
    """Return whether a value is a list of single values."""
    return isinstance(value, list) and not any(isinstance(part, dict | list) for part in value)


def is_tagged_record(value: Mapping[str, Any]) -> bool:
    """Return whether an object may be a record of tagged tokens: some value is a list of single values."""
    return any(map(is_plain_list, value.values()))


def list_tag_keys(record: Mapping[str, Any], role: str) -> list[str]:
    """Return the keys of lists with a name of a role, or of tags in general."""
    lists = [key for key, value in record.items() if is_plain_list(value)]
    return [key for key in lists if role in name_role(key) and key not in TAG_KEYS] or [
        key for key in lists if key.lower() in TAG_KEYS
    ]


def _has_tagged_records(path: Path) -> bool:
    """Return whether the first record has a list of tokens and a list of as many tags."""
    try:
        record = next(iter(json_records.read_records(path, is_tagged_record)), None)
    except InputError:
        return False
    if record is None or not isinstance(record.value, dict):
        return False
    sizes = {key: len(part) for key, part in record.value.items() if is_plain_list(part)}
    n_tokens = {sizes[key] for key in TOKEN_KEYS if key in sizes}
    keys = (*list_tag_keys(record.value, "gold"), *list_tag_keys(record.value, "prediction"))
    return any(sizes[key] in n_tokens for key in keys)


def fits_conll(sources: Sequence[Source], gold: Path | None) -> bool:
    """Return whether the first lines of the first file, or of the gold file, have the pattern of tagged tokens."""
    path = sources[0].path
    paths = (path,) if gold is None else (path, gold)
    if is_json_object(path):
        return any(is_json_object(file) and _has_tagged_records(file) for file in paths)
    heads = [read_tag_head(file) for file in paths]
    rows, names = heads[0]
    if names is CONLLU_NAMES:
        return not any(row and row[CONLLU_HEAD].isdecimal() for row in rows)
    return not path.is_dir() and any(_are_tagged(rows, names, has_gold=gold is not None) for rows, names in heads)


def _are_tagged(rows: Sequence[list[str]], names: Sequence[str], *, has_gold: bool) -> bool:
    """Return whether rows have equally many columns, with chunk tags in the last one or an empty line between rows.

    Of plain labels only a gold file tells that they are labels.
    """
    if any(map(is_entity_name, names)):
        return True
    has_breaks = not all(rows[:-2])
    rows = [row for row in rows if row]
    if len({len(row) for row in rows}) != 1:
        return False
    tags = {row[-1] for row in rows} - {""}
    are_chunks, has_words = all(map(is_chunk_tag, tags)), len(rows[0]) > 1
    has_types = any("-" in tag for tag in tags)  # as in B-PER
    return (are_chunks and (has_breaks or (has_types and has_words))) or (has_breaks and has_gold and has_words)


PARSED_ROW = re.compile(r"#.*|\d+[-.]\d+(\t[^\t]*){9}|\d+(\t[^\t]*){5}\t\d+\t[^\t]+(\t[^\t]*){2}")
"""Pattern of a comment, of a multiword token or empty node, and of a word with its head and relation."""


def _are_parses(path: Path) -> bool:
    lines = read_head(path).filled_lines
    rows = (cells for line in lines if len(cells := line.split("\t")) == len(CONLLU_NAMES))
    return not {cells[CONLLU_RELATION] for cells in rows} <= {"_"} and all(map(PARSED_ROW.fullmatch, lines))


def fits_conllu(sources: Sequence[Source], gold: Path | None) -> bool:
    """Return whether gold and systems have ten columns with heads and relations."""
    return gold is not None and all(map(_are_parses, (gold, *(source.path for source in sources))))


TREE = re.compile(r"\([^()]*(?=\().*?\([^()\s]+ [^()\s]+\)", re.DOTALL)
"""Pattern of a bracket in a bracket, and a word with its part of speech in one."""


def fits_trees(sources: Sequence[Source], gold: Path | None) -> bool:
    """Return whether the first line with text of the first file or the gold file opens a bracket around words."""
    heads = (read_head(path) for path in (sources[0].path, gold) if path is not None)
    return any(TREE.match("\n".join(line.strip() for line in head.filled_lines)) for head in heads)


NUMBER_OR_NONE = r"-?(?:(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?|nan|inf)"
TRAILER = (
    rf"(?:\s+\[[^\[\]]*+\])?(?:\s+\{{(?:\s.*)?\}})?(?:(?:\s\s+|(?<=[\]}}])\s){NUMBER_OR_NONE})*(?:\s+\d++:[LN])?\s*"
)
"""Pattern of what follows TiMBL's classes: confidence, distribution, distances after two blanks, and depth."""

INSTANCES = {
    mark: re.compile(rf"((?:.*?{mark})??)([^{mark[0]}\s]+){mark}([^{mark[0]}\s]+)({TRAILER})")
    for mark in (",", "\t", " +")
}
"""Pattern of features, class and predicted class by separator: the first two classes that only a trailer follows."""

UTTERANCE_END = "<utt>"
WORD_MARKS = ("/", "//")
"""Mbt's end of a sentence, and its marks of known and unknown words."""


def find_separator(path: Path) -> tuple[str, int]:
    """Return the first separator by which the first line of TiMBL has two classes, and the number of its features."""
    first_line = next(iter(read_head(path).filled_lines), "")
    matches = ((mark, match_instance(first_line, mark)) for mark in INSTANCES)
    return next(((mark, len(re.findall(mark, match[1]))) for mark, match in matches if match), (",", 0))


def match_instance(line: str, mark: str, n_features: int | None = None) -> re.Match[str] | None:
    """Return the match of a line, None if it has no classes or another number of features."""
    match = INSTANCES[mark].fullmatch(line.rstrip("\r\n"))
    return match if match and n_features in {None, len(re.findall(mark, match[1]))} else None


def fits_timbl(sources: Sequence[Source], _gold: Path | None) -> bool:
    """Return whether a file has classes followed by distributions or distances on every line."""
    lines = read_head(sources[0].path).filled_lines[:50]
    mark, n_features = find_separator(sources[0].path)
    matches = (match_instance(line, mark, n_features) for line in lines)
    trailers = (match[4] if match else "" for match in matches)
    return bool(lines) and all("{" in trailer or (mark == "," and trailer.strip()) for trailer in trailers)


def fits_mbt(sources: Sequence[Source], _gold: Path | None) -> bool:
    """Return whether a file holds words with Mbt's marks of known and unknown words, and both tags."""
    lines = read_head(sources[0].path).lines[:50]
    rows = [line.split() for line in lines if line.strip() not in {"", UTTERANCE_END}]
    return bool(rows) and all(len(row) > 3 and row[1] in WORD_MARKS for row in rows)


RUN_LINE = re.compile(r"\S+\s+(Q0|0)\s+\S+\s+-?\d+\s+[-+]?[\d.]+([eE][-+]?\d+)?\s+\S.*")
"""Pattern of a line of a TREC run."""

JUDGEMENT = re.compile(r"\S+\s+(Q0|0)\s+\S+\s+-?\d+\s*")
BEIR_NAMES = ("query-id", "corpus-id", "score")
"""Pattern of a line of relevance judgements of TREC, and the columns of BEIR's."""

MEASURE = re.compile(
    r"Z?(runid|topic_id|num_\w+|(gm_|inf|set_|relative_)*(map|ap|p|f|recall|bpref)|set[prf]|r|rr|mrr|recip_rank"
    r"|r-?prec|iprec|n?dcg|rndcg|success|err|rbp|judged|utility|11pt_avg|relstring)([@_(].*)?",
    re.IGNORECASE,
)
"""Pattern of the measures of trec_eval, ir_measures and TAR, by which their column is recognized."""


def is_run(path: Path, pattern: re.Pattern[str] = RUN_LINE) -> bool:
    """Return whether the first lines are those of a run with six columns, or have another pattern."""
    lines = [line for line in read_head(path).filled_lines if not line.startswith("#")][:5]
    return bool(lines) and all(map(pattern.fullmatch, lines))


def is_printed(path: Path) -> bool:
    """Return whether the first lines have three cells, and the first one has a measure by its name and a value."""
    rows = [cells for _, cells in split_scores(enumerate(read_head(path).text.split("\n")))[0][:5]]
    if len(rows) < 2 or any(len(cells) != 3 for cells in rows):
        return False
    *names, value = rows[0]
    has_value = NUMBER.fullmatch(value) is not None or value in names or "runid" in names  # unlike a header
    return has_value and sum(map(bool, map(MEASURE.fullmatch, names))) == 1


def split_scores(lines: Iterable[tuple[int, str]]) -> tuple[list[tuple[int, list[str]]], list[tuple[int, str]]]:
    """Return the cells of lines of scores, and the messages among them: lines without tabs, if scores have tabs."""
    filled = [(number, line) for number, line in lines if line.strip()]
    tabbed = [(number, [cell.strip() for cell in line.split("\t")]) for number, line in filled if "\t" in line]
    if tabbed:
        return tabbed, [(number, line) for number, line in filled if "\t" not in line]
    return [(number, line.split()) for number, line in filled], []


def fits_trec(sources: Sequence[Source], gold: Path | None) -> bool:
    """Return whether the first file is a run, gold holds judgements, or without gold it holds printed scores."""
    path = sources[0].path
    if gold is None:
        return is_run(path) or is_printed(path)
    return is_run(path) or is_run(gold, JUDGEMENT) or read_keys(gold) == BEIR_NAMES


RATING_COLUMNS = {
    "system": ("system", "sys", "system_id", "system_name", "mt_system", "sys_id", "model", "model_id", "model_name"),
    "item": ("globalsegid", "seg_id", "segid", "segment_id", "segmentid", "seg", "segment", "sid", "docsegid", "itemid",
             "item_id", "item", "question_id", "id"),
    "score": ("z.scr", "score", "rating", "mqm_avg_score", "mqm_score", "mqm", "esa_score", "esa", "da_score", "da",
              "sqm_score", "sqm", "hter"),
    "rater": ("rater", "rater_id", "annotator", "annotator_id", "annotatorid", "judge", "judge_id", "user", "user_id",
              "username", "worker", "workerid", "worker_id", "evaluator", "login"),
    "doc": ("doc", "document", "doc_id", "docid", "document_id", "documentid"),
    "category": ("category",),
    "severity": ("severity",),
    "scope": ("lp", "langpair", "language_pair", "input.src", "src_lang", "source_lang", "source_language",
              "sourcelanguage", "input.trg", "tgt_lang", "target_lang", "target_language", "targetlanguage", "testset",
              "test_set", "turn"),
    "type": ("type", "item_type", "itemtype"),
    "whole": ("isdoc", "is_doc", "iscompletedocument", "is_complete_document"),
}  # fmt: skip
"""Names of columns of ratings by their role, compared without case. The first one present is used; scopes are all
columns within which segments may be numbered.
"""

RATING_NAMES = frozenset({"z.scr", "mqm_avg_score", "mqm_score", "esa_score", "da_score", "sqm_score", "globalsegid"})
"""Names that only files of ratings have. Without one of them, a column of raters tells that rows are ratings."""


def split_rating_header(path: Path) -> list[str]:
    """Return the names of columns split by tabs or blanks, with quotes as part of the text; none of other files."""
    head = read_head(path)
    line = next(iter(head.lines), "")
    if head.is_arrow or head.is_json or find_delimiter(line) not in {"\t", None}:
        return []
    header = [name.strip() for name in (line.split("\t") if "\t" in line else line.split())]
    while header and header[-1].startswith("#"):  # a remark, as Marot writes it
        header.pop()
    return header


def find_rating_columns(header: Iterable[str]) -> dict[str, list[str]]:
    """Return the columns of each role that some column has, in the order of its names."""
    lowered = {re.sub(r"[ -]", "_", name.lower()): name for name in header}
    found = {role: [lowered[name] for name in names if name in lowered] for role, names in RATING_COLUMNS.items()}
    return {role: columns for role, columns in found.items() if columns}


def fits_ratings(sources: Sequence[Source], _gold: Path | None) -> bool:
    """Return whether the columns of the first file are those of ratings."""
    path = sources[0].path
    header = split_rating_header(path) or read_keys(path)
    found = find_rating_columns(header)
    if not {"system", "item"} <= found.keys() or any("metric" in name_role(name) for name in header):
        return False  # format long keeps the scores of several metrics apart
    is_rated = "rater" in found or not RATING_NAMES.isdisjoint(name.lower() for name in header)
    return {"category", "severity"} <= found.keys() or ("score" in found and is_rated)


class BattleLayout(NamedTuple):
    """The fields of a judgement.

    Attributes
    ----------
    models : tuple of str
        Fields that name the two models.
    verdicts : tuple of str
        Fields of the verdict, a choice of a model. The mean of two verdicts counts, of both orders of the models.
    must_agree : bool
        Whether verdicts that differ are a tie, as in `show_result.py` of MT-bench, instead of their mean.
    """

    models: tuple[str, str]
    verdicts: tuple[str, ...]
    must_agree: bool = False


ALPACA = BattleLayout(("generator_1", "generator_2"), ("preference",))
"""AlpacaEval's layout, whose verdict is a number from 1 to 2; a file has the judgements of one model."""

BATTLE_LAYOUTS = (
    BattleLayout(("model_a", "model_b"), ("winner",)),
    BattleLayout(("model_a", "model_b"), ("win_1", "win_2")),  # evalscope, whose two games have both orders
    BattleLayout(("model_1", "model_2"), ("g1_winner", "g2_winner"), must_agree=True),  # MT-bench
    ALPACA,
    BattleLayout(("system_a", "system_b"), ("winner",)),
)
"""Layouts of judgements, of which a file has the first that fits."""


def find_battle_layout(keys: Iterable[str]) -> BattleLayout | None:
    """Return the layout of a record with these keys, or None if it is no judgement."""
    known = {*keys}
    return next((layout for layout in BATTLE_LAYOUTS if known >= {*layout.models, *layout.verdicts}), None)


def fits_battles(sources: Sequence[Source], _gold: Path | None) -> bool:
    """Return whether the first record names two models and a winner."""
    return find_battle_layout(read_keys(sources[0].path)) is not None


ARCHIVE = ".eval"
"""Ending of Inspect's logs that are archives."""

LOG_NAME = re.compile(r"samples_(?P<task>.+?)(_(?P<stamp>\d{4}-\d\d-\d\dT[\d.:-]+?))?\.jsonl?(\.gz)?")
"""Pattern of the file names of lm-evaluation-harness."""

LOG_KEYS = {
    "lm-evaluation-harness": ("doc_id", "resps|filtered_resps|doc_hash|prompt_hash|target_hash"),
    "Inspect": ("status", "eval"),
    "HELM": ("instance_id", "stats.name"),
    "SWE-bench": ("*.patch_exists", "*.resolved"),
    "SWE-bench run": ("submitted_ids", "resolved_ids"),
    "HumanEval": ("task_id", "passed"),
}
"""Keys of the first JSON value of the logs of each tool; `|` separates alternatives."""


def find_log_kind(path: Path) -> str | None:
    """Return the tool that wrote a log of samples, a key of `LOG_KEYS`, or None for other files."""
    if path.suffix == ARCHIVE and path.is_file():
        return "Inspect"
    names = read_keys(path) if read_head(path).is_json else ()
    for tool, keys in LOG_KEYS.items():
        if all(any(fnmatchcase(name, key) for key in one.split("|") for name in names) for one in keys):
            return tool
    return None


def list_logs(folder: Path) -> list[Path]:
    """Return the logs in a folder and below it: those with the harness's names, those of any tool, or JSON lines."""
    listed = files.list_files(folder)
    by_name = [path for path in listed if LOG_NAME.fullmatch(path.name)]
    by_keys = (path for path in listed if path.suffix in {ARCHIVE, ".json"} and find_log_kind(path) is not None)
    return by_name or [*by_keys] or [path for path in listed if path.name.removesuffix(".gz").endswith(".jsonl")]


def list_source_files(source: Source) -> list[Path]:
    """Return the files of a source: the logs in its folder, the files of its parts, or the file itself."""
    parts = source.parts or (source.path,)
    return [file for part in parts for file in (list_logs(part) if part.is_dir() else [part])]


def fits_samples(sources: Sequence[Source], _gold: Path | None) -> bool:
    """Return whether the first file or folder holds logs of samples."""
    first = next(iter(list_source_files(sources[0])), None)
    return first is not None and find_log_kind(first) is not None


COMET = "COMET"


def fits_metrics(sources: Sequence[Source], _gold: Path | None) -> bool:
    """Return whether the first file is COMET's JSON."""
    path = sources[0].path
    keys = read_keys(path) if read_head(path).is_json else ()
    return all(any(fnmatchcase(key, pattern) for key in keys) for pattern in ("*.mt", f"*.{COMET}"))


HUMAN, METRIC = "human-scores", "metric-scores"
"""Folders of a test set of mt-metrics-eval."""


def fits_mt_metrics_eval(sources: Sequence[Source], _gold: Path | None) -> bool:
    """Return whether a folder is a test set of mt-metrics-eval, or holds several."""
    path = sources[0].path
    return path.is_dir() and any(any(path.glob(f"{deep}{name}")) for deep in ("", "*/") for name in (HUMAN, METRIC))


SQUAD_START = re.compile(r'"(paragraphs|qas)"\s{0,9}:\s{0,9}\[')


def fits_squad(sources: Sequence[Source], gold: Path | None) -> bool:
    """Return whether a gold file has SQuAD's paragraphs with questions, or records with lists of answers."""
    if gold is None or sources[0].path.is_dir() or not read_head(gold).is_json:
        return False
    return bool(SQUAD_START.search(read_head(gold).text)) or {"id", "answers.text"} <= {*read_keys(gold)}
