"""Peculiarities of formats: a file for each system, alignment, missing scores, label maps."""

import numpy as np
import pytest

from sigdask.errors import InputError
from sigdask.formats import Options, parse_map, read


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return a function that writes files into a new working directory."""
    monkeypatch.chdir(tmp_path)

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / name.replace("__", ".")).write_text(text)

    return write


def test_gold_and_a_file_a_system_are_joined_by_id_with_a_warning(files):
    files(
        gold="id,gold_label\na,P\nb,Q\nc,P\n",
        one__csv="id,gold_label\nc,P\na,Q\nb,Q\n",
        two__csv="id,gold_label\na,P\nb,P\nc,P\n",
    )
    counts = read("one.csv", "B=two.csv", gold="gold")
    assert counts.systems == ("one", "B")
    assert counts.field("correct").tolist() == [[0, 1], [1, 0], [1, 1]]
    assert read(["one.csv", "B=two.csv"], gold="gold").systems == ("one", "B")
    assert len(counts.notices) == 1
    assert "one.csv: ids stand in another order" in counts.notices[0]


def test_labels_one_a_line_are_aligned_by_position(files):
    files(gold="P\nQ\nP\n", one="P\nP\nP\n", two="Q\nQ\nP\n")
    assert read("one", "two", gold="gold").field("correct").tolist() == [[1, 0], [0, 1], [1, 1]]


def test_labels_without_a_header_lose_no_row(files):
    files(
        gold="8001\tMT(e1,e2)\n8002\tPP(e2,e1)\n8003\tOther\n",
        one="8003\tOther\n8002\tPP(e2,e1)\n8001\tPP(e2,e1)\n",
        two="8001\tMT(e1,e2)\n8002\tOther\n8003\tMT(e1,e2)\n",
    )
    counts = read("one", "two", gold="gold")
    assert counts.ids == ("8001", "8002", "8003")
    assert counts.field("correct").tolist() == [[0, 1], [1, 0], [1, 0]]


@pytest.mark.parametrize("text", ["", "\tthe other sentence {}"])
def test_texts_before_labels_need_no_header(files, text):
    rows = [("a film", "P"), ("a bore", "Q"), ("so so", "P"), ("no", "Q")]
    files(
        gold="".join(f"{prefix}{text.format(k)}\t{label}\n" for k, (prefix, label) in enumerate(rows)),
        one="P\nP\nP\nP\n",
        two="Q\nQ\nP\nP\n",
    )
    counts = read("one", "two", gold="gold")
    assert counts.field("correct").tolist() == [[1, 0], [0, 1], [1, 1], [0, 0]]
    assert len(counts.notices) == (1 if text else 0)
    if text:
        assert "gold: has no header; column 3 is taken for labels" in counts.notices[0]


def test_texts_after_labels_need_no_header_either(files):
    files(
        gold="1\tP\ta film\n2\tQ\ta bore\n3\tP\tso so\n4\tP\tso\n",
        one="1\tP\n2\tP\n3\tP\n4\tQ\n",
        two="4\t1\n3\t1\n2\t0\n1\t1\n",
    )
    counts = read("one", "two", gold="gold")
    assert counts.field("correct").tolist() == [[1, 0], [0, 0], [1, 0], [0, 0]]
    assert "two: none of its labels occurs in the gold standard (such as '1' where gold has 'P')" in counts.scope[0]
    assert any("gold: has no header; column 2 is taken" in warning for warning in counts.warnings)


def test_the_index_of_pandas_is_an_id(files):
    files(gold=",text,label\n0,a,P\n1,b,Q\n", one=",prediction\n1,Q\n0,P\n", two="index,prediction\n0,Q\n1,Q\n")
    counts = read("one", "two", gold="gold")
    assert counts.ids == ("0", "1")
    assert counts.field("correct").tolist() == [[1, 0], [1, 1]]
    files(t__csv=",x,y\n0,1,2\n1,2,1\n")
    assert read("t.csv").systems == ("x", "y")


def test_columns_without_a_header_go_by_number(files):
    files(one="a\tP\tQ\nb\tQ\tQ\nc\tP\tP\n", two="a\tP\tP\nb\tQ\tP\nc\tP\tP\n")
    with pytest.raises(InputError, match="one: cannot tell the format .no header; columns: 1, 2, 3"):
        read("one", "two")
    counts = read("one", "two", options=Options(columns={"gold": "2", "prediction": "3"}))
    assert counts.field("correct").tolist() == [[0, 1], [1, 0], [1, 1]]


def test_scores_without_a_header_are_refused(files):
    files(t="a\t0.5\t0.5\nb\t0.5\t0.25\n")
    with pytest.raises(InputError, match="t, line 1: found data, expected a header"):
        read("t", format="wide")


def test_headers_that_stand_in_joined_files_again_are_headers(files):
    files(t__csv="x,y\n1,2\nx,y\n3,4\n")
    with pytest.raises(InputError, match="line 3, column 'x': found 'x', expected a number"):
        read("t.csv", format="wide")


def test_gold_and_predicted_labels_beside_a_text_are_known_by_their_names(files):
    rows = [("so, so", "P", "Q"), ("a film", "Q", "Q")]
    files(
        one__csv="text,label,pred\n" + "".join(f'"{t}",{g},{p}\n' for t, g, p in rows),
        two__csv="text,label,pred\n" + "".join(f'"{t}",{g},P\n' for t, g, _ in rows),
    )
    assert read("one.csv", "two.csv").field("correct").tolist() == [[0, 1], [1, 0]]


def test_predictions_alone_ask_for_gold_labels(files):
    files(one__csv="id,prediction,confidence\na,P,0.5\nb,Q,0.7\n", two__csv="id,prediction,confidence\na,P,1\nb,P,1\n")
    with pytest.raises(InputError, match="one.csv: no gold labels; give --gold FILE"):
        read("one.csv", "two.csv")


def test_bare_files_called_alike_are_systems_of_their_own(files):
    files(gold="P\nQ\nP\n", x__out1="P\nP\nP\n", x__out2="Q\nQ\nP\n", y__out1="P\nQ\nQ\n")
    assert read("x.out1", "x.out2", "y.out1", gold="gold").systems == ("x.out1", "x.out2", "y")


def test_replicates_have_a_name_that_was_given(files):
    files(gold="P\nQ\nP\n", x__1="P\nP\nP\n", x__2="Q\nQ\nP\n", y__1="P\nQ\nQ\n", y__2="P\nQ\nP\n")
    assert len(read("x=x.1", "x=x.2", "y=y.1", "y=y.2", gold="gold").replicates) == 2
    with pytest.raises(InputError, match="give each system equally many"):
        read("x=x.1", "x=x.2", "y.1", "y.2", gold="gold")
    with pytest.raises(InputError, match="x.1 and x.1 would both be system 'x.1'"):
        read("x.1", "x.1", gold="gold")


def test_labels_are_mapped(files):
    files(t__csv="gold,x,y\nE,E,N\nNE,N,C\n")
    counts = read("t.csv", options=Options(label_map=(parse_map("NE=N,C"),)))
    assert counts.labels == ("E", "NE")
    assert counts.predicted_labels == ()


@pytest.mark.parametrize(
    ("one", "message"),
    [
        ("id,p\na,P\nb,Q\n", r"one.csv: lacks 1 id \('c'\)"),
        ("id,p\na,P\nb,Q\nc,P\nd,Q\n", r"one.csv, line 5: 1 id \('d'\) not among"),
        ("id,p\na,P\nb,Q\nb,P\n", "one.csv, line 4: id 'b' is on line 3 already"),
        ("id,p\na,P\n,Q\nc,P\n", "one.csv, line 3: column 'id' is empty"),
        ("id,p,q\na,P,1\nb,Q,2\nc,P,3\n", "which column holds predictions"),
        ("id,p\na,P\nb,\nc,P\n", "has no label for item 'b'"),
    ],
)
def test_ids_that_do_not_fit_are_named(files, one, message):
    files(gold="id,gold\na,P\nb,Q\nc,P\n", one__csv=one, two__csv="id,p\na,P\nb,Q\nc,P\n")
    with pytest.raises(InputError, match=message):
        read("one.csv", "two.csv", gold="gold")


def test_different_numbers_of_rows_by_position_are_an_error(files):
    files(gold="P\nQ\n", one="P\n", two="P\nQ\n")
    with pytest.raises(InputError, match="one: 1 row, but gold has 2"):
        read("one", "two", gold="gold", format="labels")


def test_gold_in_each_file_must_agree(files):
    files(one__csv="id,g,p\na,P,P\nb,Q,P\n", two__csv="id,g,p\na,P,P\nb,P,P\n")
    options = Options(columns={"gold": "g", "prediction": "p"})
    with pytest.raises(InputError, match="two.csv, line 3: gold 'P', but 'Q' in one.csv, line 3"):
        read("one.csv", "two.csv", format="labels", options=options)


def test_units_may_come_from_the_gold_file(files):
    files(gold="id,gold,doc\na,P,1\nb,Q,2\n", one__csv="id,p\na,P\nb,Q\n", two__csv="id,p\na,P\nb,P\n")
    assert read("one.csv", "two.csv", gold="gold", options=Options(groups=("doc",))).groups == {"doc": ("1", "2")}


def test_scores_one_a_line_a_file_a_system(files):
    files(x__scores="1.0\n0.5\n", y__scores="0\n-2e-3\n")
    counts = read("x.scores", "y.scores")
    assert counts.systems == ("x", "y")
    assert counts.field("score").tolist() == [[1.0, 0.0], [0.5, -0.002]]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("nan", "line 3, column 'y': found nan"),
        ("inf", "line 3, column 'y': found inf"),
        ("x", "line 3, column 'y': found 'x', expected a number"),
        ("", "'y' has no score for item 'b'"),
    ],
)
def test_cells_that_are_no_scores_are_named(files, cell, message):
    files(t__csv=f"item,x,y\na,1,2\nb,1,{cell}\n")
    with pytest.raises(InputError, match=message):
        read("t.csv", format="wide")


def test_missing_scores_follow_the_policy(files):
    files(t__csv="item,x,y\na,1,2\nb,1,NA\n")
    assert read("t.csv", options=Options(missing="zero")).field("score").tolist() == [[1, 2], [1, 0]]
    pairwise = read("t.csv", options=Options(missing="pairwise"))
    assert pairwise.present.tolist() == [[True, True], [True, False]]


def test_a_second_score_of_an_item_is_named(files):
    files(t__csv="system,item,score\nx,a,1\ny,a,2\nx,a,3\n")
    with pytest.raises(InputError, match="line 4: id 'a' of system 'x' is on line 2 already"):
        read("t.csv")


def test_a_group_that_varies_within_an_item_is_named(files):
    files(t__csv="system,item,score,doc\nx,a,1,d1\ny,a,2,d2\n")
    with pytest.raises(InputError, match="line 3: item 'a'"):
        read("t.csv", options=Options(groups=("doc",)))


def test_columns_are_named_or_ignored(files):
    files(t__csv="item,x,y,comment,doc\na,1,2,good,d\nb,2,1,bad,e\n")
    with pytest.raises(InputError, match="column 'comment': found 'good'.*--ignore"):
        read("t.csv", options=Options(groups=("doc",)))
    counts = read("t.csv", options=Options(groups=("doc",), ignore=("comment",)))
    assert counts.systems == ("x", "y")
    with pytest.raises(InputError, match="no column 'dok'.*did you mean 'doc'"):
        read("t.csv", options=Options(groups=("dok",), ignore=("comment", "doc")))


def test_lists_of_ids_a_system_are_responses(files):
    files(gold="a\nb\nc\n", one="a\nd\n", two="b\nc\n")
    counts = read("one", "two", gold="gold")
    assert counts.ids == ("a", "b", "c", "d")
    assert np.asarray(counts.field("tp")).sum(0).tolist() == [1, 2]
    assert np.asarray(counts.field("predicted")).sum(0).tolist() == [2, 2]


def test_a_truth_that_is_none_is_named(files):
    files(t__csv="id,gold,x,y\na,1,1,0\nb,1,maybe,0\n")
    with pytest.raises(InputError, match="line 3, column 'x': found 'maybe', expected 1 or 0"):
        read("t.csv", format="responses")


def test_one_system_only_is_refused(files):
    files(t__csv="item,x\na,1\nb,2\n")
    with pytest.raises(InputError, match="two systems or more, found only 'x'"):
        read("t.csv", format="wide")


@pytest.mark.slow
def test_a_million_scores_are_read_in_seconds(files, tmp_path):
    rng = np.random.default_rng(0)
    np.savetxt(tmp_path / "big.csv", rng.random((250_000, 4)), delimiter=",", header="a,b,c,d", comments="", fmt="%.4f")
    assert read("big.csv").n_items == 250_000


def test_the_columns_of_a_gold_file_that_group_items_are_kept(tmp_path):
    rows = [f"i{k},{'xy'[k % 2]},{'01'[k % 2]},d{k // 4},text {k},{'' if k else 'z'}" for k in range(12)]
    (tmp_path / "gold.csv").write_text("\n".join(["id,gold,number,document,text,note", *rows]))
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,prediction", *(f"i{k},x" for k in range(12))]))
    systems = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert list(read(*systems, gold=tmp_path / "gold.csv").groups) == ["document"]
    ignoring = read(*systems, gold=tmp_path / "gold.csv", options=Options(ignore=("document",)))
    assert not ignoring.groups
    with_number = read(*systems, gold=tmp_path / "gold.csv", options=Options(groups=("number",)))
    assert list(with_number.groups) == ["number", "document"]


def test_a_column_of_repeated_texts_beside_scores_groups_items(tmp_path):
    rows = [f"i{k},{'news' if k < 5 else 'doc1'},{k / 4},{k % 3}" for k in range(10)]
    (tmp_path / "t.csv").write_text("item,kind,a,b\n" + "\n".join(rows))
    counts = read(tmp_path / "t.csv")
    assert counts.systems == ("a", "b")
    assert counts.groups["kind"] == ("news",) * 5 + ("doc1",) * 5
    assert counts.notices == ("column 'kind' holds no numbers: taken as groups of items",)
    (tmp_path / "t.csv").write_text("item,kind,a,b\n" + "\n".join([*rows[:-1], "i9,7,1,2"]))
    with pytest.raises(InputError, match="column 'kind': found 'news', expected a number.*--columns id="):
        read(tmp_path / "t.csv")


PLAIN = 'id\tgold\ttext\tx\ty\na\tP\t"Yes," he said.\tP\tQ\nb\tQ\t5" wide\tP\tQ\nc\tP\t"No\tP\tP\n'


def test_quotation_marks_that_enclose_no_cells_are_text(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text(PLAIN)
    counts = read(path, options=Options(ignore=("text",)))
    assert counts.field("correct").tolist() == [[1, 0], [0, 1], [1, 1]]
    assert "quotation marks do not enclose whole cells everywhere" in counts.notices[0]
    path.write_text('id\tgold\ttext\tx\ty\na\tP\t"tab\there ""x"""\tP\tQ\nb\tQ\tq\tP\tQ\n')
    assert not read(path, options=Options(ignore=("text",))).notices


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAIN.replace("P\tP\n", "P\n"), "t.tsv, line 2: a quoted field does not end"),
        (PLAIN.replace("\t", ","), "t.tsv, line 2: a quoted field does not end"),
        (PLAIN.replace("he said.", "he\nsaid."), "t.tsv, line 2: a quoted field does not end"),
    ],
)
def test_broken_quotes_swallow_no_rows(tmp_path, text, message):
    path = tmp_path / "t.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read(path, options=Options(ignore=("text",)))


@pytest.mark.parametrize("kind", ["labels", "wide", "auto"])
def test_a_column_that_occurs_twice_can_be_left_out(tmp_path, kind):
    path = tmp_path / "t.csv"
    path.write_text("id,gold,note,x,y,note\n" + "a,1,n,1,0,m\nb,2,n,3,1,m\n")
    with pytest.raises(InputError, match="column 'note' occurs twice in the header; .* --ignore 'note'"):
        read(path, format=kind)
    assert read(path, format=kind, options=Options(ignore=("note",))).systems[-2:] == ("x", "y")


def test_errors_of_guessed_tables_say_so(files):
    files(x__tsv="id\ta\tb\n1\tx\ty\n2\n", gold__tsv="id\tlabel\n1\tx\n2\ty\n")
    pattern = r"x.tsv, line 3: found 1 field, .* \[read as a table; choose with --format\]"
    for gold in ("gold.tsv", None):
        with pytest.raises(InputError, match=pattern):
            read("x.tsv", gold=gold)
    with pytest.raises(InputError, match="no such file$"):
        read("none.tsv")


def test_a_column_of_measurements_groups_no_items(tmp_path):
    rows = [f"i{k},{'xy'[k % 3 == 0]},{0.25 * (k % 4)},{k // 4},news{k // 6}" for k in range(12)]
    (tmp_path / "gold.csv").write_text("\n".join(["id,gold,length,document,domain", *rows]))
    (tmp_path / "a.csv").write_text("\n".join(["id,prediction", *(f"i{k},x" for k in range(12))]))
    (tmp_path / "b.csv").write_text("\n".join(["id,prediction", *(f"i{k},y" for k in range(12))]))
    counts = read(tmp_path / "a.csv", tmp_path / "b.csv", gold=tmp_path / "gold.csv")
    assert list(counts.groups) == ["document", "domain"]


def test_scores_that_may_be_none_are_doubted(files):
    files(a__txt="0\n1\n2\n1\n", b__txt="0\n1\n1\n1\n", c__txt="0\n0.5\n2\n1\n", d__txt="0\n1\n0\n1\n")
    assert "are they class labels? Then give --gold FILE" in read("a.txt", "b.txt").notices[0]
    assert not read("a.txt", "c.txt").notices
    assert not read("b.txt", "d.txt").notices
    files(board__csv=",win_rate,standard_error\ngpt,50.5,1.5\nllama,20,2\n")
    assert "columns win_rate, standard_error look like a summary" in read("board.csv").notices[0]
