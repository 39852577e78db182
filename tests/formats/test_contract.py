"""What every format guarantees: encodings and row order do not matter, and errors name the place."""

import gzip
import json
import re

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import FORMATS, Options, detect, parse_source, read

TABLES = {
    "responses": ("item\tof_interest\tx\ty\n", ["a\t1\t1\t0\n", "b\t0\t1\t0\n", "c\t1\t0\t1\n", "d\t1\t0\t0\n"], "f1"),
    "labels": ("item,gold,x,y\n", ["a,P,P,Q\n", "b,Q,P,Q\n", "c,P,Q,P\n", "d,Q,Q,Q\n"], "macro-f1"),
    "numbers": ("item,gold,x,y\n", ["a,0.1,0.3,0.2\n", "b,0,1.0,0.5\n", "c,0.25,0.5,0\n", "d,1,0,2\n"], "MAE"),
    "wide": ("topic,x,y\n", ["a,0.1,3e-04\n", "b,0,1.0\n", "c, 0.25 ,0.5\n", "d,1,0\n"], "mean"),
    "long": (
        "system;item;score\n",
        ["x;a;0.1\n", "x;b;2\n", "y;a;0.5\n", "y;b;1\n", "x;c;1\n", "y;c;0\n"],
        "mean",
    ),
    "ratings": (
        "system;globalsegid;score\n",
        ["x;a;0.1\n", "x;b;2\n", "y;a;0.5\n", "y;b;1\n", "x;c;1\n", "y;c;0\n"],
        "mean",
    ),
}


# the formats that are no tables: files by name, gold first where there is one; the metric; whether ids align rows
PROSE = "the cat sat on the mat .\n", "a dog ran away today\n", "it was cold in here again\n"
WORSE = "the cat sat on a mat .\n", "a dog ran today\n", "it was cold in here again\n"
SAMPLE = '{"doc_id": %d, "doc": {"q": %d}, "target": "x", "resps": [["a"]], "filtered_resps": ["a"], "acc": %d}\n'
BATTLE = '{"question_id": %d, "model_a": "%s", "model_b": "%s", "winner": "%s"}\n'
SPAN = '{"id": "d%d", "text": "%s", "spans": [%s]}\n'
SPAN_P, SPAN_Q = '{"start": 0, "end": 2, "label": "P"}', '{"start": 3, "end": 5, "label": "Q"}'
PARSE = "".join(f"{k}\tw{k}\t_\tX\t_\t_\t{{{k - 1}}}\tdep\t_\t_\n" for k in (1, 2, 3)) + "\n"
FILES = {
    "segments": ({"gold": [*PROSE], "x": [*WORSE], "y": [*PROSE]}, "chrF", False),
    "speech": (
        {
            "gold": ["one two (s-1)\n", "three four (s-2)\n"],
            "x": ["one two (s-1)\n", "three for (s-2)\n"],
            "y": ["won two (s-1)\n", "four (s-2)\n"],
        },
        "WER",
        True,
    ),
    "terms": (
        {
            name: ["id\tterm_list\n", *(f"{k}\t{term}\n" for k, term in enumerate(terms))]
            for name, terms in {"gold": ["cat", "dog", "ant"], "x": ["cat", "cow", "ant"], "y": ["cow"] * 3}.items()
        },
        "f1",
        True,
    ),
    "spans": (
        {
            name: [SPAN % (k, "ab cd", spans) for k, spans in enumerate(found)]
            for name, found in {
                "gold": [SPAN_P, SPAN_Q, SPAN_P],
                "x": [SPAN_P, SPAN_P, ""],
                "y": [f"{SPAN_P}, {SPAN_Q}", SPAN_Q, SPAN_P],
            }.items()
        },
        "f1",
        True,
    ),
    "pairs": (
        {
            "gold": ["undo\tun @@do\n", "redo\tre @@do\n", "cat\tcat\n"],
            "x": ["undo\tun @@do\n", "redo\tred @@o\n", "cat\tcat\n"],
            "y": ["undo\tund @@o\n", "redo\tre @@do\n", "cat\tc @@at\n"],
        },
        "f1",
        True,
    ),
    "conll": (
        {
            "gold": ["EU\tB-ORG\n", "runs\tO\n", "\n", "Ann\tB-PER\n", "\n"],
            "x": ["EU\tB-ORG\n", "runs\tO\n", "\n", "Ann\tB-LOC\n", "\n"],
            "y": ["EU\tO\n", "runs\tO\n", "\n", "Ann\tB-PER\n", "\n"],
        },
        "f1",
        False,
    ),
    "conllu": (
        {
            name: ["# text\n" + PARSE.format(*heads) for heads in parses]
            for name, parses in {"gold": ["012", "011"], "x": ["012", "012"], "y": ["011", "031"]}.items()
        },
        "LAS",
        False,
    ),
    "trees": (
        {
            "gold": ["(S (NP (DT the) (NN dog)) (VP (VB ran)))\n", "(S (NP (NN it)) (VP (VB ran)))\n"],
            "x": ["(S (NP (DT the) (NN dog)) (VP (VB ran)))\n", "(S (NP (NN it)) (VB ran))\n"],
            "y": ["(S (DT the) (NP (NN dog)) (VP (VB ran)))\n", "(S (NN it) (VP (VB ran)))\n"],
        },
        "bracket-f1",
        False,
    ),
    "timbl": (
        {
            name: [f"{row} {{ T 2, J 1 }}\n" for row in rows]
            for name, rows in {
                "x": ["a,b,T,T", "c,d,J,T", "e,f,T,T"],
                "y": ["a,b,T,J", "c,d,J,J", "e,f,T,J"],
            }.items()
        },
        "accuracy",
        False,
    ),
    "mbt": (
        {
            "x": ["the\t/\tD\tD\n", "cat\t/\tN\tV\n", "<utt>\n", "it\t/\tP\tP\n", "<utt>\n"],
            "y": ["the\t/\tD\tN\n", "cat\t/\tN\tN\n", "<utt>\n", "it\t/\tP\tV\n", "<utt>\n"],
        },
        "accuracy",
        False,
    ),
    "trec": (
        {
            "gold": ["1 0 a 1\n", "1 0 b 0\n", "2 0 a 0\n", "2 0 b 1\n"],
            "x": ["1 Q0 a 1 2.0 x\n", "1 Q0 b 2 1.0 x\n", "2 Q0 b 1 2.0 x\n", "2 Q0 a 2 1.0 x\n"],
            "y": ["1 Q0 b 1 2.0 y\n", "1 Q0 a 2 1.0 y\n", "2 Q0 b 1 2.0 y\n", "2 Q0 a 2 1.0 y\n"],
        },
        "AP",
        True,
    ),
    "samples": (
        {"x": [SAMPLE % (k, k, k % 2) for k in range(4)], "y": [SAMPLE % (k, k, k // 3) for k in range(4)]},
        "acc",
        True,
    ),
    "squad": (
        {
            "gold": [
                f'{{"id": "q{k}", "answers": {{"text": ["{text}"]}}}}\n' for k, text in enumerate(["a b", "c", "d"])
            ],
            "x": [f'{{"id": "q{k}", "prediction_text": "{text}"}}\n' for k, text in enumerate(["b", "c", "d"])],
            "y": [f'{{"id": "q{k}", "prediction_text": "{text}"}}\n' for k, text in enumerate(["b", "c", "e"])],
        },
        "f1",
        True,
    ),
    "battles": (
        {
            "votes": [
                BATTLE % (k, *models, winner)
                for k, (models, winner) in enumerate(
                    [("xy", "model_a"), ("yx", "model_a"), ("xy", "model_a"), ("xy", "tie")]
                )
            ]
        },
        "win_rate",
        True,
    ),
}


def test_every_format_is_under_contract():
    assert {*TABLES, *FILES, "metrics", "mt-metrics-eval", "meta", "ref-hyp"} == set(FORMATS)  # tested on their own


@pytest.fixture(params=FILES)
def files(request, tmp_path):
    contents, metric, by_id = FILES[request.param]
    return request.param, contents, metric, by_id, tmp_path


def compare_files(folder, contents, metric, suffix="", format="auto"):  # noqa: A002  # as on the command line
    gold = folder / f"gold{suffix}" if "gold" in contents else None
    systems = [folder / f"{name}{suffix}" for name in contents if name != "gold"]
    counts = read(*systems, gold=gold, format=format)
    results = compare_all(counts, metrics=[metric], method="randomization", trials=500, interval="none")
    return [(r.a, r.b, r.score_a, r.score_b, r.n_items, r.n_extreme) for r in results]


def write_files(folder, contents, encode=str.encode, suffix=""):
    folder.mkdir(exist_ok=True)
    for name, lines in contents.items():
        (folder / f"{name}{suffix}").write_bytes(encode("".join(lines)))
    return folder


def test_auto_takes_files_for_what_they_are(files):
    name, contents, metric, _, folder = files
    write_files(folder, contents)
    systems = [parse_source(str(folder / stem)) for stem in contents if stem != "gold"]
    options = Options(metrics=(metric,) if name == "segments" else ())  # lines are texts because the metric says so
    assert detect(systems, folder / "gold" if "gold" in contents else None, options) == name


ENCODED = {
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "bom": lambda text: text.encode("utf-8-sig"),
    "gz": lambda text: gzip.compress(text.encode()),
    "no last newline": lambda text: text.rstrip("\n").encode(),
}


@pytest.mark.parametrize("kind", ENCODED)
def test_encodings_and_line_ends_do_not_matter_to_any_format(files, kind):
    name, contents, metric, _, folder = files
    plain = compare_files(write_files(folder / "plain", contents), contents, metric, format=name)
    encoded = write_files(folder / "other", contents, ENCODED[kind])
    assert compare_files(encoded, contents, metric, format=name) == plain
    assert plain[0][2] != plain[0][3]  # something was read


def test_row_order_changes_nothing_where_rows_have_ids(files):
    name, contents, metric, by_id, folder = files
    if not by_id:
        return
    plain = compare_files(write_files(folder / "plain", contents), contents, metric, format=name)
    # a header stays, and the row that names the first model
    n_headers = (name == "terms") + (name == "battles")
    turned = {
        stem: lines if stem == "gold" else [*lines[:n_headers], *reversed(lines[n_headers:])]
        for stem, lines in contents.items()
    }
    assert compare_files(write_files(folder / "turned", turned), turned, metric, format=name) == plain


def test_a_damaged_file_of_any_format_is_an_error_that_names_it(files):
    name, contents, metric, _, folder = files
    last = list(contents)[-1]
    for bad, message in (
        (b"", "empty"),
        (b"caf\xe9 \xff\n", "not UTF-8|invalid"),
        (gzip.compress(b"x" * 99, mtime=0)[:-9], "gzip"),
    ):
        write_files(folder, contents)
        (folder / last).write_bytes(bad)
        with pytest.raises(InputError, match=message) as error:
            compare_files(folder, contents, metric, format=name)
        assert last in str(error.value)
    (folder / last).unlink()
    with pytest.raises(InputError, match="no such file") as error:
        compare_files(folder, contents, metric, format=name)
    assert last in str(error.value)


N_HEADER_LINES = {"terms": 1}
"""Lines of files that are no items."""

REPETITIONS = {"twice": lambda lines: [line for line in lines for _ in range(2)], "once more": lambda l: [*l, l[0]]}
"""How ids are repeated: all of them, or one."""


def read_repeated(read_files, n_items):
    """Read files with repeated ids, and return the error or the scope, which must mention replicates."""
    try:
        counts, error = read_files(), ""
    except InputError as refused:
        counts, error = None, str(refused)
    if counts is None:
        assert re.search(r"(line|record|key|sentence|sample)\W+\w+|same JSON object", error)
        assert re.search(r"Then |averages them|each document once|give each item|averages several ratings", error)
        return error
    assert counts.of_one.n_items == n_items
    return " ".join(counts.scope)


@pytest.mark.parametrize("kind", REPETITIONS)
def test_repeated_ids_of_any_format_are_replicates_or_an_error(files, kind):
    name, contents, _, by_id, folder = files
    if not by_id:
        return
    systems = [stem for stem in contents if stem != "gold"]
    gold = folder / "gold" if "gold" in contents else None
    n_headers = N_HEADER_LINES.get(name, 0)
    write_files(folder, contents)
    n_items = read(*(folder / stem for stem in systems), gold=gold, format=name).n_items
    repeated = {
        stem: [*lines[:n_headers], *REPETITIONS[kind](lines[n_headers:])]
        for stem, lines in contents.items()
        if stem != "gold"
    }
    write_files(folder, repeated)
    message = read_repeated(lambda: read(*(folder / stem for stem in systems), gold=gold, format=name), n_items)
    assert name == "terms" or re.search(r"replicates|averaged|already|repeated", message)  # rows of an id are its terms


@pytest.mark.parametrize("kind", REPETITIONS)
def test_repeated_ids_of_a_table_are_replicates_or_an_error(case, tmp_path, kind):
    name, header, rows, _ = case
    path = tmp_path / "t.txt"
    path.write_text(header + "".join(REPETITIONS[kind](rows)))
    n_items = 3 if name in {"long", "ratings"} else 4
    message = read_repeated(lambda: read(path, format=name), n_items)
    assert "t.txt" in message
    assert ("replicates of each" in message) == (kind == "twice" and name != "ratings")  # there a rater's column tells


@pytest.fixture(params=TABLES)
def case(request):
    header, rows, metric = TABLES[request.param]
    return request.param, header, rows, metric


def compare_table(path, metric, **options):
    counts = read(path, **{"options": Options(metrics=(metric,)), **options})  # which some formats are known by
    results = compare_all(counts, metrics=[metric], method="randomization", trials=500, interval="none")
    return [(r.a, r.b, r.score_a, r.score_b, r.n_items, r.n_extreme) for r in results]


def compare_plain(case, tmp_path):
    _name, header, rows, metric = case
    path = tmp_path / "plain.txt"
    path.write_text(header + "".join(rows))
    return path, compare_table(path, metric)


def test_auto_takes_it_for_what_it_is(case, tmp_path):
    path, _ = compare_plain(case, tmp_path)
    assert detect([parse_source(str(path))], options=Options(metrics=(case[3],))) == case[0]


@pytest.mark.parametrize("kind", ENCODED)
def test_encodings_and_line_ends_do_not_matter(case, tmp_path, kind):
    _, header, rows, metric = case
    content = ENCODED[kind](header + "".join(rows))
    (tmp_path / "other.txt").write_bytes(content)
    assert compare_table(tmp_path / "other.txt", metric) == compare_plain(case, tmp_path)[1]


def test_json_lines_and_parquet_hold_the_same(case, tmp_path):
    import pandas as pd

    _, header, rows, metric = case
    mark = next(c for c in "\t,;" if c in header)
    records = [dict(zip(header.strip().split(mark), (v.strip() for v in row.split(mark)), strict=True)) for row in rows]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    pd.DataFrame(records).to_parquet(tmp_path / "t.parquet")
    for name in ("t.jsonl", "t.parquet"):
        assert compare_table(tmp_path / name, metric) == compare_plain(case, tmp_path)[1]


def test_row_order_changes_nothing(case, tmp_path):
    _, header, rows, metric = case
    # the long format names systems in order of appearance: keep the first row
    order = [rows[0], *rows[:0:-1]]
    (tmp_path / "turned.txt").write_text(header + "".join(order))
    assert sorted(compare_table(tmp_path / "turned.txt", metric)) == sorted(compare_plain(case, tmp_path)[1])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda h, r: "", "is empty"),
        (lambda h, r: h, "has a header and no rows"),
        (lambda h, r: h + r[0] + "only\n" + r[1], "line 3: found 1 field, expected"),
        (lambda h, r: h + r[0] + r[0], "line 3"),
        (lambda h, r: h.replace("item", "gold").replace("score", "system").replace("x", "y") + r[0], "occurs twice"),
    ],
)
def test_a_damaged_file_is_an_error_that_names_file_and_place(case, tmp_path, spoil, message):
    _, header, rows, _ = case
    path = tmp_path / "bad.txt"
    path.write_text(spoil(header, rows))
    with pytest.raises(InputError, match=message) as error:
        read(path, format=case[0])
    assert "bad.txt" in str(error.value)


def test_an_unknown_format_names_the_nearest(tmp_path):
    with pytest.raises(InputError, match="did you mean 'labels'"):
        read(tmp_path / "x", format="label")
