"""--groups and --documents: groups of items from a separate table, in every format."""

import pytest

from sigdask import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, read

WIDE = "topic,x,y\n301,0.1,0.3\n302,0,1\n303,0.25,0.5\n304,1,0\n"


def write_wide(folder):
    (folder / "scores.csv").write_text(WIDE)
    return folder / "scores.csv"


def read_groups(folder, text, name="groups.tsv", **options):
    (folder / name).write_text(text)
    return read(write_wide(folder), options=Options(group_file=folder / name, **options)).groups


def test_a_table_may_hold_several_columns_of_groups(tmp_path):
    groups = read_groups(tmp_path, "id\tspeaker\tday\n301\ts\t1\n302\tt\t1\n303\ts\t2\n304\tt\t2\n", groups=("day",))
    assert {name: list(column) for name, column in groups.items()} == {"speaker": [*"stst"], "day": [*"1122"]}
    assert list(read_groups(tmp_path, "day,item\n1,304\n1,303\n2,302\n2,301\n", "groups.csv")["day"]) == [*"2211"]


def test_a_column_that_is_named_as_a_unit_is_no_id(tmp_path):
    table = "doc_id\ttopic\n1\t301\n1\t302\n2\t303\n2\t304\n"
    assert list(read_groups(tmp_path, table, groups=("doc_id",))["doc_id"]) == [*"1122"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "topic\tc\n301\ta\n302\ta\n",
            r"groups.tsv: 2 items \('303', '304'\) not in this table; add a row with the group of each item",
        ),
        ("topic\tc\n301\ta\n302\ta\n303\tb\n304\tb\n301\tb\n", "line 6: item '301' is on line 2 already"),
        ("topic\tc\n301\ta\n302\t\n303\tb\n304\tb\n", "line 3: no group in column 'c'; every item needs one"),
        (
            "a\na\nb\nb\n",
            r"groups.tsv: no column of items, but items have ids \('301'\)",
        ),
    ],
)
def test_what_is_wrong_with_a_table_of_groups_is_named(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_groups(tmp_path, text)


@pytest.mark.parametrize("text", ["d1\nd1\nd2\n", "document\nd1\nd1\nd2\n", "news\td1\nnews\td1\ntalk\td2\n"])
def test_items_without_ids_have_a_row_each(tmp_path, text):
    for name, scores in {"a": "0.5\n1\n0\n", "b": "1\n1\n0.25\n"}.items():
        (tmp_path / name).write_text(scores)
    (tmp_path / "docs").write_text(text)
    counts = read(tmp_path / "a", tmp_path / "b", options=Options(documents=tmp_path / "docs", groups=("document",)))
    assert counts.group("document").codes.tolist() == [0, 0, 1]
    assert ("domain" in counts.groups) is ("news" in text)
    (tmp_path / "docs").write_text("d1\nd2\n")
    with pytest.raises(InputError, match="docs: 2 rows for 3 items"):
        read(tmp_path / "a", tmp_path / "b", options=Options(documents=tmp_path / "docs"))


def read_tagged(folder, text, unit):
    for name, labels in {"gold": "ABA", "x": "ABB", "y": "BBA"}.items():
        (folder / name).write_text("".join(f"word\tB-{label}\n\n" for label in labels))
    (folder / "docs").write_text(text)
    options = Options(group_file=folder / "docs", groups=(unit,))
    return read(folder / "x", folder / "y", gold=folder / "gold", format="conll", options=options)


def test_an_error_about_a_missing_group_names_the_columns_of_the_group_file(tmp_path):
    with pytest.raises(InputError, match="docs has the columns group"):
        read_tagged(tmp_path, "d1\nd1\nd2\n", "document")
    with pytest.raises(InputError, match=r"no column 'page'.*docs has the columns item, chapter\."):
        read_tagged(tmp_path, "item\tchapter\n1\td1\n2\td1\n3\td2\n", "page")


@pytest.mark.parametrize("first", ["", "x"])
def test_a_column_of_groups_may_lack_some(tmp_path, first):
    groups = [first, *["x", "y"] * 5, ""]
    rows = "".join(f"{k},{k % 2},{k % 3 // 2},{group}\n" for k, group in enumerate(groups))
    (tmp_path / "scores.csv").write_text(f"id,a,b,subset\n{rows}")
    counts = read(tmp_path / "scores.csv")
    assert counts.systems == ("a", "b")
    assert list(counts.groups["subset"]) == groups
    with pytest.raises(InputError, match="'subset' is empty"):
        compare_all(counts, by="subset")
