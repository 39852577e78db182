"""Labels that gold does not have: a system without any other is refused, in files and in memory."""

import re
import shlex

import pytest

from sigdask import InputError
from sigdask.formats import Options, parse_maps, read
from sigdask.interface import use_interface


@pytest.mark.parametrize(
    ("labels", "others"),
    [
        (("PER", "LOC"), ("per", "loc")),
        (("1", "0"), ("1.0", "0.0")),
        (("Cause-Effect(e1,e2)", "a=b"), ("cause-effect(E1,e2)", "A=B")),
        (("x y", "it's"), ("X y", "It's")),
    ],
)
def test_the_remedy_replaces_all_labels_that_are_equal_as_numbers_or_but_for_case(tmp_path, labels, others):
    rows = [(labels[k % 2], others[k % 2], labels[k % 3 % 2]) for k in range(8)]
    (tmp_path / "t.csv").write_text("gold,svm,bert\n" + "".join('"{}","{}","{}"\n'.format(*row) for row in rows))
    with (
        use_interface("command line"),
        pytest.raises(InputError, match="'svm': the values of all its 8 labels") as refusal,
    ):
        read(tmp_path / "t.csv")
    remedy = refusal.value.remedy.removesuffix(", or leave the system out").partition("labels: ")[2]
    if match := re.fullmatch(r"--map @FILE with the lines '(.*)', '(.*)'", remedy):
        (tmp_path / "map").write_text("\n".join(match.groups()).replace("<tab>", "\t") + "\n")
        maps = parse_maps([f"@{tmp_path / 'map'}"])
    else:
        maps = parse_maps([word for word in shlex.split(remedy) if word != "--map"])
    counts = read(tmp_path / "t.csv", options=Options(label_map=maps))
    assert counts.field("correct")[:, 0].tolist() == [1] * 8


def test_no_map_of_labels_of_other_kinds_is_proposed(tmp_path):
    (tmp_path / "t.csv").write_text("gold,svm,bert\nA,x,A\nB,y,A\n")
    with pytest.raises(InputError, match="correct its labels, or leave the system out"):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize(("more", "where"), [("", ""), ("1,x,x,x\n2,y,q,y\n", " in one run")])
def test_labels_that_gold_lacks_are_one_warning_for_each_system(tmp_path, more, where):
    (tmp_path / "t.csv").write_text("id,gold,a,b\n1,x,x,y\n2,y,z,y\n" + more)
    notes = "".join(read(tmp_path / "t.csv").notices)
    assert (f"a 1 of 2{where} (such as 'z')" in notes, notes.count("gold never")) == (True, 1)
