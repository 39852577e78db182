"""Tables that look alike are asked about once; the formats of all others are found as without it."""

import pytest

from sigdask import formats
from sigdask.formats import Source, detect, remember_shapes

TABLES = {
    "scores": "item,x,y\ni1,0.5,0.25\ni2,1.5,0.75\ni3,0.5,0.5\n",
    "same": "item,x,y\ni7,2.5,0.5\ni8,1.5,0.75\ni9,0.25,9.5\n",
    "labels": "item,gold,y\ni1,noun,verb\ni2,verb,verb\n",
    "tags": "item,x,y\ni1,B-PER,O\ni2,I-PER,B-LOC\n",
    "counts": "item,gold,y\ni1,1,0\ni2,0,1\n",
    "repeated": "item,x,y\ni1,0.5,0.25\ni1,0.5,0.25\n",
    "ratings": "system,segment,rater,score\na,1,r1,3\nb,1,r1,4\na,1,r2,4\nb,1,r2,5\n",
    "spaces": "q1 Q0 d1 1 0.5 run\nq1 Q0 d2 2 0.25 run\n",
}


def detect_all(paths):
    found = {}
    for path in paths:
        try:
            found[path.name] = detect([Source(path)])
        except formats.InputError as error:
            found[path.name] = str(error)
    return found


def test_tables_that_look_alike_are_sniffed_once_and_others_are_found_as_alone(tmp_path, monkeypatch):
    paths = []
    for name, text in TABLES.items():
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(text)
    alone = detect_all(paths)
    calls, load = [], formats.FileFormat.load
    monkeypatch.setattr(
        formats.FileFormat, "load", lambda format_, *names: [calls.append(format_.reader), load(format_, *names)][1]
    )
    for order in (paths, paths[::-1]):
        with remember_shapes():
            assert detect_all(order) == alone
    with remember_shapes():
        detect([Source(paths[0])])
        assert calls
        calls.clear()
        detect([Source(paths[1])])
        assert calls == []
        detect([Source(paths[2])])
        assert calls


@pytest.mark.parametrize("change", ["-2.5", "x", '"2.5"', "1e3", ""])
def test_a_cell_of_another_kind_is_no_table_that_looks_alike(tmp_path, change):
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text(TABLES["scores"])
    second.write_text(TABLES["same"].replace("2.5", change, 1))
    with remember_shapes():
        detect([Source(first)])
        shapes = [formats._describe_score_table([Source(path)], None, formats.DEFAULTS) for path in (first, second)]
    assert shapes[1] is None or not shapes[1][1] <= shapes[0][1]
