"""Peculiarities of formats: a file for each system, alignment, missing scores, label maps."""

import pytest

from sigdask.errors import InputError
from sigdask.formats import read


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return a function that writes files into a new working directory."""
    monkeypatch.chdir(tmp_path)

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / name.replace("__", ".")).write_text(text)

    return write


def test_predictions_alone_ask_for_gold_labels(files):
    files(one__csv="id,prediction,confidence\na,P,0.5\nb,Q,0.7\n", two__csv="id,prediction,confidence\na,P,1\nb,P,1\n")
    with pytest.raises(InputError, match=r"(?s)one.csv.*gold=FILE"):
        read("one.csv", "two.csv")


def test_bare_files_called_alike_are_systems_of_their_own(files):
    files(gold="P\nQ\nP\n", x__out1="P\nP\nP\n", x__out2="Q\nQ\nP\n", y__out1="P\nQ\nQ\n")
    assert read("x.out1", "x.out2", "y.out1", gold="gold", format="labels").systems == ("x.out1", "x.out2", "y")


def test_replicates_have_a_name_that_was_given(files):
    files(gold="P\nQ\nP\n", x__1="P\nP\nP\n", x__2="Q\nQ\nP\n", y__1="P\nQ\nQ\n", y__2="P\nQ\nP\n")
    assert len(read("x=x.1", "x=x.2", "y=y.1", "y=y.2", gold="gold", format="labels").replicates) == 2
    with pytest.raises(InputError, match="2 runs, but .* has 1"):
        read("x=x.1", "x=x.2", "y.1", "y.2", gold="gold", format="labels")
    with pytest.raises(InputError, match="x.1 and x.1 would both be system 'x.1'"):
        read("x.1", "x.1", gold="gold", format="labels")


@pytest.mark.parametrize(
    ("one", "message"),
    [
        ("id,p\na,P\nb,Q\n", r"one.csv: lacks 1 id \('c'\)"),
        ("id,p\na,P\nb,Q\nc,P\nd,Q\n", r"one.csv, line 5: 1 id \('d'\) not among"),
        ("id,p\na,P\nb,Q\nb,P\n", "one.csv, line 4: id 'b' is repeated"),
        ("id,p\na,P\n,Q\nc,P\n", "one.csv, line 3: column 'id' is empty"),
        ("id,p,q\na,P,1\nb,Q,2\nc,P,3\n", "no single column holds predictions"),
        ("id,p\na,P\nb,\nc,P\n", r"one.csv: one has no label for item 'b'"),
    ],
)
def test_ids_that_do_not_fit_are_named(files, one, message):
    files(gold="id,gold\na,P\nb,Q\nc,P\n", one__csv=one, two__csv="id,p\na,P\nb,Q\nc,P\n")
    with pytest.raises(InputError, match=message):
        read("one.csv", "two.csv", gold="gold")
    with pytest.raises(InputError, match="no single column holds predictions(?s:.*)Choose gold="):
        read("x=gold", "y=gold")


def test_a_truth_that_is_none_is_named(files):
    files(t__csv="id,gold,x,y\na,1,1,0\nb,1,maybe,0\n")
    with pytest.raises(InputError, match="line 3: column 'x': found 'maybe', expected 1 or 0"):
        read("t.csv", format="responses")
