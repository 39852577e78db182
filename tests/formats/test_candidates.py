"""Files of candidates: mwetoolkit's XML and UCS's data sets, well-formed and hostile."""

import gzip

import numpy as np
import pytest

from sigdask.errors import InputError
from sigdask.formats.candidates import CandidateColumns, read

XML = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE candidates SYSTEM "dtd/mwetoolkit-candidates.dtd">
<!-- MWETOOLKIT: filetype="XML" -->
<candidates>
<meta>
    <corpussize name="corpus" value="2570" />
    <metafeat name="n" type="integer" />
    <metafeat name="pos_pattern" type="{N N,A N}" />
    <metafeat name="t_corpus" type="real" />
    <metafeat name="ll_corpus" type="real" />
    <metatpclass name="reference" type="{True,False}" />
</meta>
<cand candid="7">
    <ngram><w lemma="come" pos="VVG" ><freq name="corpus" value="1" /></w> <w lemma="in" pos="II" /></ngram>
    <occurs>
    <ngram><w surface="came" lemma="come" /> <w surface="in" /> <freq name="corpus" value="1" /></ngram>
    </occurs>
    <features>
        <feat name="n" value="2" />
        <feat name="pos_pattern" value="A N" />
        <feat name="t_corpus" value="0.98" />
        <feat name="ll_corpus" value="5.7" />
    </features>
    <tpclass name="reference" value="True" />
</cand>
<cand>
    <ngram><w lemma="hold" /><w surface="on" /></ngram>
    <features><feat name="n" value="2" /><feat name="t_corpus" value="1.5" /><feat name="ll_corpus" value="-3e-1" /></features>
    <tpclass name="reference" value="False" />
</cand>
</candidates>
"""

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


@pytest.mark.parametrize("packed", [False, True])
def test_xml_of_mwetoolkit_gives_its_real_features_and_its_class(file, packed):
    # the layout of mwetoolkit-candidates.dtd, as its own reference output eval.xml has it
    content = gzip.compress(XML.encode()) if packed else XML
    candidates = read(file(content, "eval.xml.gz" if packed else "eval.xml"))
    assert candidates.measures == ("t_corpus", "ll_corpus")
    assert candidates.ids.tolist() == ["7", "hold on"]
    assert candidates.gold.tolist() == [1, 0]
    np.testing.assert_array_equal(candidates.scores, [[0.98, 1.5], [5.7, -0.3]])
    assert "n, pos_pattern" in candidates.notes[0]


def test_ranks_of_ucs_are_measures_where_they_are_asked_for(file):
    candidates = read(file(UCS, "pairs.ds"), CandidateColumns(measures=("am.MI", "r.MI"), smaller=("r.MI",)))
    np.testing.assert_array_equal(np.argsort(-candidates.oriented, axis=1), [[1, 0, 2], [1, 0, 2]])


def test_of_several_annotations_one_is_to_be_named(file):
    names, *rows = UCS.splitlines()[2:]
    path = file("\n".join([names + "\tb.fig", *(f"{row}\t{k % 2}" for k, row in enumerate(rows))]), "x.ds")
    with pytest.raises(InputError, match=r"columns=\{'gold': 'b\.TP'\}, or columns=\{'gold': 'b\.fig'\}"):
        read(path)
    assert read(path, CandidateColumns(columns={"gold": "b.TP"})).gold.sum() == 2


BOMB = XML.replace(
    'SYSTEM "dtd/mwetoolkit-candidates.dtd"',
    '[<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]',
).replace('lemma="come"', 'lemma="&b;"')
EXTERNAL_ENTITY = XML.replace(
    'SYSTEM "dtd/mwetoolkit-candidates.dtd"', '[<!ENTITY x SYSTEM "file:///etc/passwd">]'
).replace('<tpclass name="reference" value="False" />', "&x;")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (BOMB, r"line 2: XML entities and external files are not read"),
        (EXTERNAL_ENTITY, r"line 2: XML entities and external files are not read"),
        (XML.replace('value="0.98"', ""), r"line 21: <feat> without a value"),
        (XML.replace('value="0.98"', 'value="?"'), r"line 13, column 't_corpus': found '\?'"),
        (XML.replace('<feat name="t_corpus" value="1.5" />', ""), r"line 26, column 't_corpus': no score"),
        (XML.replace('name="ll_corpus" value="5.7"', 'name="t_corpus" value="5.7"'), r"'t_corpus' occurs twice"),
        (XML.replace("</candidates>", ""), r"line 32: invalid XML"),
        (XML[: XML.index("<cand ")] + "</candidates>", r"no candidate"),
        (XML.replace('<tpclass name="reference" value="True" />', ""), r"line 13: column 'reference'"),
        (XML.replace("<cand>", '<cand candid="7">'), r"line 26: id '7'"),
        (XML.replace("come", "c\x00me"), r"invalid XML"),
    ],
)
def test_hostile_and_broken_xml_is_refused_by_its_line(file, content, words):
    with pytest.raises(InputError, match=words):
        read(file(content, "eval.xml"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (UCS.replace("\t3\t1\n", "\t3\n"), r"line 6: found 10 fields, expected 11"),
        ("##:: size = 0\n", r"only comments"),
        (UCS.replace("1.71", "high"), r"line 5, column 'am\.MI': found 'high'"),
        (
            UCS.replace("3\tum\tUhr", "3\tin\tBetracht"),
            r"line 6: id 'in Betracht' \(columns 'l1', 'l2'\) is on line 5",
        ),
    ],
)
def test_broken_data_sets_are_refused_by_their_line(file, content, words):
    with pytest.raises(InputError, match=words):
        read(file(content, "pairs.ds"))
