"""Numbers of a table that may be no scores of systems on items are doubted in the first lines, or refused."""

import re
import subprocess

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, read

A = [0.31, 0.42, 0.55, 0.12, 0.77, 0.64, 0.28, 0.93, 0.36, 0.49, 0.58, 0.21]
B = [0.35, 0.38, 0.61, 0.19, 0.71, 0.69, 0.33, 0.88, 0.44, 0.41, 0.66, 0.25]


def _write(folder, columns, ids=None, name="t.csv"):
    ids = ids or [f"q{k}" for k in range(len(A))]
    rows = zip(ids, *columns.values(), strict=True)
    path = folder / name
    path.write_text("\n".join(",".join(map(str, row)) for row in [("id", *columns), *rows]) + "\n")
    return path


@pytest.mark.parametrize("row", ["mean,0.4717,0.4917", "p-value,0.03,0.04"])
def test_a_last_row_that_may_be_no_item_is_noted(tmp_path, row):
    path = _write(tmp_path, {"x": A, "y": B})
    n_notes = len(read(path).scope)
    path.write_text(f"{path.read_text()}{row}\n")
    assert len(read(path).scope) > n_notes


@pytest.mark.parametrize("corner", ["", "gold\\pred"])
def test_confusion_matrices_are_refused(tmp_path, corner):
    path = tmp_path / "confusions.csv"
    path.write_text(f"{corner},cat,dog,bird\ncat,50,3,2\ndog,4,60,1\nbird,2,2,40\n")
    with pytest.raises(InputError, match="confusion matrix"):
        read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "id,x,y\na,0.5,0.6\nid,x,y\nb,0.1,0.2\nc,0.3,0.1\n",
            "t.csv, line 3, column 'x': found 'x', expected a number",
        ),
        (
            "# made today\nid,x,y\na,0.5,0.6\nb,1,0\nc,1,1\nd,0,1\n",
            "t.csv, line 2: is this the header.*remove the lines",
        ),
        ("| id | x | y |\n|---|---|---|\n| a | 1 | 0 |\n| b | 0 | 1 |\n", r"columns are separated by '\|'"),
        ("id,x,y,\na,1,0,\nb,0,1,\n", "column 4 has no name in the header; name it, or remove it"),
        ("x,y\na,1,0\nb,0,1\n", "line 2: found 3 fields.*the header lacks a name"),
    ],
)
def test_errors_about_tables_name_the_line_and_a_remedy(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "t.csv")


def test_metrics_of_parses_name_the_line_of_a_word_without_head(tmp_path):
    parse = "1\ta\ta\tDET\tDT\t_\t2\tdet\t_\t_\n2\tdog\tdog\tNOUN\tNN\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "gold").write_text(parse)
    (tmp_path / "a").write_text(parse.replace("\t2\tdet", "\t_\t_").replace("\t0\troot", "\t_\t_"))
    with pytest.raises(InputError, match="a, line 1: word 1 has no head"):
        read(tmp_path / "a", tmp_path / "gold", gold=tmp_path / "gold", options=Options(metrics=("LAS",)))


def test_conll_2009_is_refused_with_commands_that_convert_it(tmp_path):
    """The commands are run, and their outputs read as CoNLL-X."""
    row = "{k}\tw{k}\tlemma\tplemma\tNN\tVB\t_\t_\t{head}\t{other}\tdep\tobj\t_\t_\n"
    sentence = row.format(k=1, head=0, other=2) + row.format(k=2, head=1, other=0) + "\n"
    for name in ("gold", "a", "b"):
        (tmp_path / name).write_text(sentence * 2)
    with pytest.raises(InputError, match="CoNLL-2009") as error:
        read(tmp_path / "a", tmp_path / "b", gold=tmp_path / "gold")
    programs = re.findall(r"awk .*?'(\{.*?\})'", str(error.value))
    for name, program in zip(("gold", "a", "b"), (programs[0], programs[1], programs[1]), strict=True):
        command = ["awk", "-F", "\t", "-v", "OFS=\t", program, str(tmp_path / name)]
        converted = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        (tmp_path / f"{name}.conll").write_text(converted)
    files = [tmp_path / f"{name}.conll" for name in ("a", "b", "gold")]
    counts = read(*files[:2], gold=files[2], format="conllx")
    assert {result.metric: result.score_a for result in compare_all(counts, metrics=["UAS"])} == {"UAS": 0.0}
    assert counts.n_items == 2


def test_variants_of_a_system_are_not_averaged_as_samples(tmp_path):
    rows = [f"{s},{v},q{k},{k % 3}\n" for s in "ab" for v in ("zero", "few") for k in range(12)]
    (tmp_path / "t.csv").write_text(f"model,prompt_template,item,score\n{''.join(rows)}")
    with pytest.raises(InputError, match="2 values of 'prompt_template' for each 'item'"):
        read(tmp_path / "t.csv")


def test_further_columns_of_conll_u_are_no_conll_2009(tmp_path):
    """In CoNLL-U Plus, whose ninth and tenth columns are no heads, column 13 may be empty in every row."""
    words = [("1", "Ann", "B-PER"), ("2", "ran", "O")]
    rows = "".join("\t".join([k, word, *"_" * 11, tag]) + "\n" for k, word, tag in words)
    for name in ("gold", "a", "b"):
        (tmp_path / name).write_text(f"{rows}\n" * 3)
    assert read(tmp_path / "a", tmp_path / "b", gold=tmp_path / "gold").n_items == 3
