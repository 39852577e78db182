"""Folders as systems: files of the same names in all folders are parts of one test set."""

import json

import pytest
from command import call_sigdask

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, read

CONLL = {
    "gold": {"de": "Wien B-LOC\nliegt O\n\nAnna B-PER\n", "sub/fr": "Paris B-LOC\n\nEve B-PER\nest O\nlà O\n"},
    "a": {"de": "Wien B-LOC\nliegt O\n\nAnna B-LOC\n", "sub/fr": "Paris B-LOC\n\nEve B-PER\nest O\nlà O\n"},
    "b": {"de": "Wien O\nliegt O\n\nAnna B-PER\n", "sub/fr": "Paris O\n\nEve O\nest B-LOC\nlà O\n"},
}
TEXTS = {
    "gold": {"de": "das ist ein kleines Haus\nja das ist gut so\n", "sub/fr": "une petite maison est ici\n"},
    "a": {"de": "das ist ein kleines Haus\nnein das ist gut so\n", "sub/fr": "une petite maison est là\n"},
    "b": {"de": "das ist das kleine Haus\nes ist gut\n", "sub/fr": "maison\n"},
}
SCORES = {name: {"de": f"id,score\nx,{k}\ny,1\n", "sub/fr": f"id,score\nx,{k + 1}\n"} for k, name in enumerate("ab")}


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write_folders(folders, ending):
        for folder, texts in folders.items():
            for name, text in texts.items():
                path = tmp_path / folder / f"{name}.{ending}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            whole = "\n".join(texts.values()) if ending == "conll" else "".join(texts.values())
            (tmp_path / f"{folder}.{ending}").write_text(whole)

    return write_folders


@pytest.mark.parametrize(
    ("folders", "ending", "metric"), [(CONLL, "conll", "f1"), (TEXTS, "txt", "BLEU"), (TEXTS, "txt", "chrF")]
)
def test_folders_score_as_their_files_joined(write, folders, ending, metric):
    write(folders, ending)
    options = Options(metrics=(metric,))
    counts = read("a/", "b/", gold="gold/", options=options)
    assert (counts.systems, counts.n_items) == (("a", "b"), 4 if ending == "conll" else 3)
    assert f"de.{ending}" in counts.scope[0]
    assert [*counts.group("file")] == [f"de.{ending}"] * 2 + [f"sub/fr.{ending}"] * (counts.n_items - 2)
    expected = read(f"a.{ending}", f"b.{ending}", gold=f"gold.{ending}", options=options)
    results = [compare_all(c, metrics=[metric], method="exact")[0] for c in (counts, expected)]
    assert results[0].score_a == results[1].score_a
    assert results[0].score_b == results[1].score_b
    assert results[0].p_value == results[1].p_value


def test_the_command_compares_folders_by_file(write):
    write(CONLL, "conll")
    arguments = ["compare", "a/", "b/", "--gold", "gold/", "-m", "f1", "--json", "-"]
    by_file = json.loads(call_sigdask(*arguments, "--by", "file", cwd=".").stdout)["results"]
    assert [r["subset"]["value"] for r in by_file] == ["de.conll", "sub/fr.conll"]
    [joined] = json.loads(call_sigdask(*arguments, cwd=".").stdout)["results"]
    assert (joined["a"], joined["b"], joined["n_items"]) == ("a", "b", 4)


def test_folders_of_scores_need_no_gold_and_keep_equal_ids_apart(write):
    write(SCORES, "csv")
    counts = read("new=a", "old=b")
    assert counts.systems == ("new", "old")
    assert [*counts.ids] == ["de.csv/x", "de.csv/y", "sub/fr.csv/x"]
    assert counts.field("score").tolist() == [[0, 1], [1, 1], [1, 2]]


def test_folders_with_other_files_are_refused_with_both_lists(write, tmp_path):
    write(SCORES, "csv")
    (tmp_path / "b" / "it.csv").write_text("id,score\nx,1\n")
    with pytest.raises(InputError, match=r"a has de.csv, sub/fr.csv and b has de.csv, it.csv, sub/fr.csv") as error:
        read("a", "b")
    assert "sigdask init" in error.value.remedy


def test_one_gold_file_for_all_files_of_a_folder(write, tmp_path):
    folds = {name: {f"fold{k}": f"id,prediction\ni{k},{'xy'[k]}\n" for k in range(2)} for name in "ab"}
    write(folds, "csv")
    (tmp_path / "gold.csv").write_text("id,gold\ni0,x\ni1,x\n")
    counts = read("a", "b", gold="gold.csv")
    assert (counts.systems, counts.n_items) == (("a", "b"), 2)
    assert counts.field("correct").tolist() == [[1, 1], [0, 0]]
