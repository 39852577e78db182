"""Files of candidates: UCS's data sets, well-formed and hostile."""

import numpy as np
import pytest

from sigdask.errors import InputError
from sigdask.formats.candidates import CandidateColumns, read

UCS = """##:: size = 3
# made from an example
id\tl1\tl2\tf\tf1\tf2\tN\tam.MI\tam.log.likelihood\tr.MI\tb.TP
1\t"in\tFrage\t9\t10\t11\t1000\t0.76\t93.34\t2\t1
2\tin\tBetracht\t3\t10\t11\t1000\t1.71\t262.11\t1\t0
3\tum\tUhr\t3\t10\t11\t1000\t-0.2\t2.5\t3\t1
"""


@pytest.fixture
def file(tmp_path):
    def write(content, name):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_ranks_of_ucs_are_measures_where_they_are_asked_for(file):
    candidates = read(file(UCS, "pairs.ds"), CandidateColumns(measures=("am.MI", "r.MI"), smaller=("r.MI",)))
    orders = [np.argsort(-scores).tolist() for scores in candidates.oriented.values()]
    assert orders == [[1, 0, 2], [1, 0, 2]]
    assert [*read(file(UCS, "pairs.ds"), CandidateColumns(ignore=("am.MI",))).scores] == ["am.log.likelihood"]


@pytest.mark.parametrize("cell", ["-inf", "1,5", "x"])
def test_the_first_cell_of_a_measure_that_is_no_number_is_shown(file, cell):
    path = file(f"gold,word,MI,LL\n1,a,1,1\n0,b,'{cell}',2\n0,c,'{cell}',3\n".replace("'", '"'), "t.csv")
    with pytest.raises(InputError, match=f"(?s)line 3, column 'MI': found '{cell}'.*no measures.*ignore"):
        read(path)


def test_of_several_annotations_one_is_to_be_named(file):
    names, *rows = UCS.splitlines()[2:]
    path = file("\n".join([names + "\tb.fig", *(f"{row}\t{k % 2}" for k, row in enumerate(rows))]), "x.ds")
    with pytest.raises(InputError, match=r"columns=\{'gold': 'b\.TP'\}, or"):
        read(path)
    assert read(path, CandidateColumns(columns={"gold": "b.TP"})).gold.sum() == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (UCS.replace("\t3\t1\n", "\t3\n"), r"line 6: found 10 fields, expected 11"),
        ("##:: size = 0\n", r"only comments"),
        (
            UCS.replace("3\tum\tUhr", "3\tin\tBetracht"),
            r"line 6: id 'in\\tBetracht' \(l1 and l2\) is on line 5",
        ),
    ],
)
def test_broken_data_sets_are_refused_by_their_line(file, content, words):
    with pytest.raises(InputError, match=words):
        read(file(content, "pairs.ds"))
