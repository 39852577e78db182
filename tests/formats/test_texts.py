"""Texts: lines, WMT XML and transcripts agree in any encoding, and errors name the place."""

import json
import re

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read

XML = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="test">
  <collection id="general">
    <doc origlang="de" id="one" domain="news">
      <src lang="de"><p><seg id="1">Hallo Welt</seg></p><p><seg id="2">Gut &amp; schön</seg></p></src>
      <ref lang="en" translator="A"><p><seg id="1">hello world</seg></p><p><seg id="2">good and nice it is</seg></p></ref>
      <ref lang="en" translator="B"><p><seg id="1">hi world</seg><seg id="2">good &amp; nice</seg></p></ref>
      <hyp system="x" lang="en"><p><seg id="1">hello the world</seg><seg id="2">good
         and nice</seg></p></hyp><hyp system="y" lang="en"><p><seg id="2"/><seg id="1">hello world</seg></p></hyp>
    </doc>
    <doc origlang="de" id="two" domain="social">
      <src lang="de"><p><seg id="1">Ja</seg></p></src>
      <ref lang="en" translator="A"><p><seg id="1">yes it is</seg></p></ref>
      <hyp system="x" lang="en"><p><seg id="1">yes</seg></p></hyp>
      <hyp system="y" lang="en"><p><seg id="1">yes it was</seg></p></hyp>
    </doc>
  </collection>
</dataset>
"""

TRN = {
    "gold": "hello world how are you (ann-1)\nyes (ann-2)\nthat is (all) right (bob-1)\n",
    "x": "that is right (bob-1)\n(ann-2)\nhello word how are you (ann-1)\n",
    "y": ";; a comment\n(ann-1)\nyes yes (ann-2)\nthat is (all) right (bob-1)",
}
KALDI = {
    "gold": "ann-1 hello world how are you\nann-2 yes\nbob-1 that is (all) right\n",
    "x": "bob-1 that is right\nann-2\nann-1\thello word how are you\n",
    "y": "ann-1\nann-2 yes yes\nbob-1 that is (all) right\n",
}
LINES = {
    "gold": "hello world how are you\nyes\nthat is (all) right\n",
    "x": "hello word how are you\n\nthat is right\n",
    "y": "\nyes yes\nthat is (all) right\n",
}


def write_files(folder, texts):
    for name, text in texts.items():
        (folder / name).write_text(text, newline="")
    return [folder / name for name in texts]


def compare_exactly(counts, metric, **options):
    results = compare_all(counts, metrics=[metric], method="exact", interval="none", **options)
    return [(r.a, r.b, r.score_a, r.score_b, r.n_items, r.n_extreme) for r in results]


def write_xml(tmp_path, text=XML, name="test.xml"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


# lines and transcripts


def test_transcripts_have_the_same_errors_in_every_shape(tmp_path):
    results = []
    for texts, format_ in ((TRN, "auto"), (KALDI, "speech:ids=first"), (LINES, "speech:ids=none")):
        gold, *systems = write_files(tmp_path, texts)
        results.append(compare_exactly(read(*systems, gold=gold, format=format_), "WER"))
    # x: one substitution, one word deleted twice; y: five deleted, one inserted; 10 reference words
    assert results[0] == results[1] == results[2] == [("x", "y", 0.3, 0.6, 3, results[0][0][-1])]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": TRN["x"] + "yes (ann-2)\n"}, r"x, line 4: id 'ann-2' is on line 2 already"),
        ({"x": "yes (ann-2)\n"}, r"'x' has no text for item 'ann-1' \(2 missing in total\); choose missing="),
        ({"x": TRN["x"] + "no (eve-9)\n"}, r"x: utterance 'eve-9' is not in .*gold"),
        ({"x": TRN["x"] + "no id\n"}, r"x, line 4: found 'no id', expected \(id\) at its end"),
        ({"x": ";; nothing\n"}, r"x: is empty"),
        ({"gold": ""}, r"gold: is empty"),
    ],
)
def test_a_damaged_transcript_is_an_error_that_names_the_place(tmp_path, changed, message):
    gold, *systems = write_files(tmp_path, {**TRN, **changed})
    with pytest.raises(InputError, match=message):
        read(*systems, gold=gold, format="speech:ids=trn")


def test_a_missing_transcript_is_left_out_of_its_pairs_or_empty(tmp_path):
    gold, *systems = write_files(tmp_path, {**TRN, "x": "yes (ann-2)\nthat is right (bob-1)\n"})
    pairwise = read(*systems, gold=gold, options=Options(missing="pairwise"))
    assert compare_exactly(pairwise, "WER")[0][2:5] == (pytest.approx(1 / 5), pytest.approx(1 / 5), 2)
    empty = read(*systems, gold=gold, options=Options(missing="zero"))
    assert compare_exactly(empty, "WER")[0][2] == pytest.approx(6 / 10)
    assert all(counts.notices[0].startswith("x lacks 1 of 3 items") for counts in (pairwise, empty))


def test_transcripts_need_one_reference_by_gold(tmp_path):
    gold, *systems = write_files(tmp_path, TRN)
    with pytest.raises(InputError, match="format speech needs the gold standard; give gold=FILE"):
        read(*systems, format="speech")
    with pytest.raises(InputError, match="one reference"):
        read(*systems, gold=gold, format="speech", options=Options(references=(gold,)))
    with pytest.raises(InputError, match="no option 'id'; did you mean 'ids'"):
        read(*systems, gold=gold, format="speech:id=trn")
    with pytest.raises(InputError, match="choose unit='speaker'"):
        read(*systems, gold=gold, format="speech", options=Options(documents=gold))


# WMT XML


def test_references_are_chosen_by_translator(tmp_path):
    path = write_xml(tmp_path)
    only_b = read(path, format="segments:reference=B")
    assert only_b.outputs.gold.tolist() == [("hi world",), ("good & nice",)]
    assert only_b.warnings == ("1 segments without a reference are left out",)
    both_references = read(path, format="segments:reference=A+B")
    assert both_references.outputs.gold.tolist()[0] == ("hello world", "hi world")
    assert both_references.outputs.gold.tolist()[2] == ("yes it is", None)
    import sacrebleu

    [r] = compare_all(both_references, metrics=["BLEU"])
    streams = [["hello world", "good and nice it is", "yes it is"], ["hi world", "good & nice", None]]
    assert r.score_a == pytest.approx(
        sacrebleu.corpus_bleu(["hello the world", "good and nice", "yes"], streams).score, rel=1e-12
    )
    assert "nrefs:var" in r.signature
    [r] = compare_all(both_references, metrics=["TER"])
    tool = sacrebleu.TER()
    assert r.score_b == pytest.approx(tool.corpus_score(["hello world", "", "yes it was"], streams).score, rel=1e-12)
    for format_ in ("segments:reference=C", "segments"):
        with pytest.raises(InputError, match="references of translators A, B; choose format='segments:reference=A'"):
            read(path, format=format_)


def test_a_test_suite_or_collection_of_several_is_chosen(tmp_path):
    suite = XML.split("  <collection")[1].split("<doc", 1)[1].rsplit("</doc>", 1)[0]
    suite = "<doc" + suite.replace('id="one"', 'id="s" testsuite="talks"', 1).replace('id="two"', 'id="one"') + "</doc>"
    text = XML.replace("</dataset>", f'<collection id="more">{suite}</collection></dataset>')
    path = write_xml(tmp_path, text)
    collections = {"general": ("one:1", "one:2", "two:1"), "talks": ("s:1", "s:2"), "more": ("one:1",)}
    for name, ids in collections.items():
        assert read(path, format=f"segments:reference=A,collection={name}").ids == ids
    for format_ in ("segments:collection=x", "segments"):
        with pytest.raises(InputError, match="suites general, talks, more; choose .*collection=general"):
            read(path, format=format_)


def test_one_xml_a_system_and_one_of_references(tmp_path):
    without_references = re.sub(r"<ref.*?</ref>", "", XML, flags=re.DOTALL)
    x = write_xml(tmp_path, re.sub(r'<hyp system="y".*?</hyp>', "", without_references, flags=re.DOTALL), "x.xml")
    y = write_xml(tmp_path, re.sub(r'<hyp system="x".*?</hyp>', "", without_references, flags=re.DOTALL), "y.xml")
    gold = write_xml(tmp_path, re.sub(r"<hyp.*?</hyp>", "", XML, flags=re.DOTALL), "gold.xml")
    by_file, together = (read(*files, format="segments:reference=A", **options) for files, options in
                         (((x, y), {"gold": gold}), ((write_xml(tmp_path),), {})))  # fmt: skip
    assert compare_exactly(by_file, "BLEU") == compare_exactly(together, "BLEU")
    with pytest.raises(InputError, match=r"x.xml: no reference \(<ref>\); give gold=FILE"):
        read(x, y)
    with pytest.raises(InputError, match=r"gold.xml: no output of a system \(<hyp system=...>"):
        read(gold, format="segments:reference=A")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t: t.replace("</src>", "", 1), r"test.xml: invalid XML \(mismatched tag: line \d+"),
        (lambda t: t.replace("?>", '?><!DOCTYPE dataset [<!ENTITY a "b">]>'), r"test.xml: defines XML entities"),
        (lambda t: t.replace('system="x"', ""), r"test.xml, document 'one': <hyp> has no attribute system"),
        (
            lambda t: t.replace('<seg id="2"/>', '<seg id="1"/>'),
            r"document 'one': segment '1' of <hyp> y has two texts",
        ),
        (lambda t: '<dataset id="x"></dataset>', r"test.xml: no document"),
        (lambda t: t.replace("utf-8", "utf-99"), r"test.xml: invalid XML"),
    ],
)
def test_damaged_xml_is_an_error_that_names_the_place(tmp_path, spoil, message):
    path = write_xml(tmp_path, spoil(XML))
    with pytest.raises(InputError, match=message):
        read(path)


def test_xml_takes_no_references_in_lines(tmp_path):
    path = write_xml(tmp_path)
    with pytest.raises(InputError, match="WMT's XML holds references and documents"):
        read(path, options=Options(references=(path,)))


@pytest.mark.slow
def test_wmt22_has_its_official_scores(shared_data):
    folder = shared_data / "mt_wmt22_liv-en_xml"
    path = folder / "wmttest2022.liv-en.all.xml"
    official = json.loads((folder / "reference_scores.json").read_text())
    assert detect([parse_source(str(path))]) == "segments"
    counts = read(path)
    assert (counts.n_items, len(set(counts.group("document")))) == (420, 420)
    assert set(counts.systems) == set(official["scores"])
    for r in compare_all(counts, metrics=["BLEU", "chrF"], baseline="Liv4ever", trials=256, interval="none"):
        name, signature = {"BLEU": ("BLEU", "BLEU_signature"), "chrF": ("chrF2", "chrF_signature")}[r.metric]
        for system, score in ((r.a, r.score_a), (r.b, r.score_b)):
            expected = official["scores"][system]["ref"]
            assert round(score, 6) == expected[name]
            assert r.signature.rpartition("|")[0] == expected[signature].rpartition("|")[0]


def test_a_lost_line_is_an_error(tmp_path):
    gold, x, y = write_files(tmp_path, {**LINES, "y": "yes yes\nthat is (all) right\n"})
    for order in ((x, y), (y, x)):
        with pytest.raises(InputError, match="y: 2 lines, but .*gold has 3"):
            read(*order, gold=gold, format="segments")


SENTENCES = [
    f"The {noun} of {k} people was seen by Ann again." for k, noun in enumerate(["house", "dog"] * 10, start=1)
]


@pytest.mark.parametrize(
    ("start", "line", "layout"),
    [
        ("WEBVTT\n\n", "00:0{k}.000 --> 00:0{k}.900\n{text}\n\n", "subtitles"),
        ("", "{k}\n00:00:0{k},000 --> 00:00:0{k},900\n{text}\n\n", "subtitles"),
        (";; made by hand\n", "rec{k} 1 ann 0.0 1.5 <o> {text}\n", "STM"),
        ("", "rec1 1 {k}.0 0.5 word 0.9\n", "CTM"),
        ("<?xml version='1.0'?>\n<tmx><body>\n", "<tu><tuv><seg>{text}</seg></tuv></tu>\n", "XML"),
        ("<xliff>\n", "<target>{text}</target>\n", "XML"),
    ],
)
@pytest.mark.parametrize("format_", ["segments", "speech"])
def test_times_and_markup_are_not_scored_as_words(tmp_path, start, line, layout, format_):
    text = start + "".join(line.format(k=k, text=text) for k, text in enumerate(SENTENCES[:9]))
    paths = write_files(tmp_path, dict.fromkeys(["a", "b", "ref"], text))
    with pytest.raises(InputError, match=f"is {layout}"):
        read(*paths[:2], gold=paths[2], format=format_)


# tabs, and references beside hypotheses


def _write_tabbed(tmp_path, **columns):
    """Write files of 8 lines with the given columns: words of a reference that differs by its letter, or ids."""
    rows = {
        name: [[f"{c}{k} big old {c} {k} house" for c in letters] for k in range(8)]
        for name, letters in columns.items()
    }
    return write_files(tmp_path, {name: "".join("\t".join(row) + "\n" for row in rows[name]) for name in columns})


def test_references_beside_each_other_are_refused_until_their_columns_are_chosen(tmp_path):
    gold, x, y = _write_tabbed(tmp_path, ref="ab", x="a", y="c")
    plain = _write_tabbed(tmp_path / "..", first="a", second="b")
    with pytest.raises(InputError) as caught:
        read(x, y, gold=gold, format="segments")
    for way in re.findall(r"segments:[\w=,]+", str(caught.value)):
        assert read(x, y, gold=gold, format=way).n_items == 8
    both = read(x, y, gold=plain[0], format="segments", options=Options(references=(plain[1],)))
    assert read(x, y, gold=gold, format="segments:references=tab").outputs.gold.tolist() == both.outputs.gold.tolist()
    alone = read(x, y, gold=plain[0], format="segments")
    assert read(x, y, gold=gold, format="segments:column=1").outputs.gold.tolist() == alone.outputs.gold.tolist()


@pytest.mark.parametrize("columns", [{"ref": "a", "x": "ia", "y": "ib"}, {"ref": "ia", "x": "ia", "y": "ib"}])
@pytest.mark.parametrize("format_", ["segments", "speech:ids=none"])
def test_every_way_to_read_outputs_with_tabs_works(tmp_path, columns, format_):
    gold, *systems = _write_tabbed(tmp_path, **columns)
    with pytest.raises(InputError) as caught:
        read(*systems, gold=gold, format=format_)
    ways = re.findall(r"(?:segments|speech):[\w=,]+", str(caught.value))
    assert len(ways) >= 2
    for way in ways:
        assert read(*systems, gold=gold, format=way).n_items == 8
    chosen = read(*systems, gold=gold, format=f"{ways[-1].partition(':')[0]}:column=2")
    assert chosen.outputs.systems[1][0].startswith("b0 big")


def test_first_words_that_all_files_share_are_ids_only_if_the_user_says_so(tmp_path):
    texts = {name: f"001 hello {name}\n002 yes\n003 no\n" for name in ("ref", "x", "y")}
    gold, *systems = write_files(tmp_path, texts)
    with pytest.raises(InputError, match="speech:ids=first.*speech:ids=none"):
        read(*systems, gold=gold, format="speech")
    assert read(*systems, gold=gold, format="speech:ids=first").ids == ("001", "002", "003")
    assert read(*systems, gold=gold, format="speech:ids=none").ids is None


def test_texts_that_are_all_empty_are_refused(tmp_path):
    gold, x, empty = write_files(tmp_path, {"ref": "one\ntwo\n", "x": "one\nto\n", "y": " \n \n"})
    with pytest.raises(InputError, match="outputs of system 'y' are empty"):
        read(x, empty, gold=gold, format="segments")
    with pytest.raises(InputError, match="references are empty"):
        read(x, f"z={x}", gold=empty, format="speech:ids=none")


UTTERANCES = {"ann-1": ("hello world", "hello word"), "bob-1": ("that is right", "that is"), "bob-2": ("yes", "oh yes")}
ALIGNED = {
    "ann-1": ("hello world", "hello word"),
    "bob-1": ("that is right", "that is ***"),
    "bob-2": ("*** yes", "oh yes"),
}


def _write_icefall(utterance, ref, hyp, colon=":"):
    return "".join(f"{utterance}{colon}\t{kind}={text.split()}\n" for kind, text in (("ref", ref), ("hyp", hyp)))


def _write_kaldi(utterance, ref, hyp):
    return f"{utterance} ref  {ref}\n{utterance} hyp  {hyp}\n{utterance} op   C S\n{utterance} #csid 1 1 0 0\n"


@pytest.mark.parametrize(
    ("write", "texts"),
    [
        (_write_icefall, UTTERANCES),
        (lambda *texts: _write_icefall(*texts, colon=""), UTTERANCES),
        (_write_kaldi, ALIGNED),
    ],
)
def test_references_beside_hypotheses_are_read_as_programs_write_them(tmp_path, write, texts):
    x = "".join(write(utterance, *pair) for utterance, pair in texts.items())
    y = "".join(write(utterance, ref, ref.replace("***", "oh")) for utterance, (ref, _) in reversed(texts.items()))
    paths = write_files(tmp_path, {"x": x, "y": y})
    counts = read(*paths)
    assert (counts.format, counts.ids) == ("ref-hyp", tuple(UTTERANCES))
    assert counts.outputs.gold.tolist() == [(ref,) for ref, _ in UTTERANCES.values()]
    assert compare_exactly(counts, "WER")[0][2] == 0.5  # by hand: 3 errors in 6 words
    with pytest.raises(InputError, match="leave out gold"):
        read(*paths, gold=paths[0], format="speech")
    write_files(tmp_path, {"y": y.replace("hello", "hallo")})
    with pytest.raises(InputError, match="has the reference"):
        read(*paths)


def test_a_gap_of_kaldi_is_three_stars(tmp_path):
    x, y = write_files(tmp_path, dict.fromkeys("xy", "u-1 ref  a * ***\nu-1 hyp  a * b\n"))
    assert read(x, y).outputs.gold.tolist() == [("a *",)]  # Kaldi writes three
