"""Tests of signatures: they hold what p depends on, and are the same for the same data."""

import csv
import hashlib
import json

import numpy as np
import pytest
from conftest import YEH
from hypothesis import given, settings
from hypothesis import strategies as st

import sigdask
from sigdask import Counts, InputError, compare_all
from sigdask.results.comparisons import get_version
from sigdask.results.signature import Signature

SCORES = {"x": [0.5, 0.25, 1.0, 0.75, 0.5, 0.0], "y": [0.25, 0.5, 0.5, 0.75, 0.0, 0.25], "z": [0.5, 0.5, 0.5, 1, 1, 1]}
IDS = [f"t{k}" for k in range(6)]
SIGNATURE_LINE = (
    "test:ar|metric:f1|alt:two-sided|method:auto|p:exact|seed:0|scheme:1|set:|unit:item"
    "|data:aa6fcc71113b.b4d2e228ea26.ef6e69b2abe4|v:0.2.0"
)


@given(st.text(max_size=12), st.text(min_size=1, max_size=12))
@settings(max_examples=20, deadline=None)
def test_a_signature_is_read_back_with_the_names_of_set_and_subset(name, value):
    counts = Counts.from_scores(SCORES, name=name, groups={"a|b": [value] * 6})
    for result in compare_all(counts, by="a|b", trials=9, second_run=False):
        parsed = Signature.parse(result.test_signature)
        assert (parsed.test_set, parsed.subset) == (result.test_set, tuple(result.subset.values()))
        assert len(result.test_signature.splitlines()) == 1


def test_what_parts_a_signature_is_escaped_within_it():
    counts = Counts.from_scores(SCORES, name="news|50 %\n", groups={"domain": ["a:b"] * 6})
    line = compare_all(counts, by="domain")[0].test_signature
    assert "|set:news%7C50 %25%0A|by:domain|value:a%3Ab|unit:item|" in line
    parsed = Signature.parse(f"  {line}\n")
    assert (parsed.test_set, parsed.subset) == ("news|50 %\n", ("domain", "a:b"))
    assert Signature.parse(line.replace("|", "|\n      ")) == parsed  # copied from a narrow terminal


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (SIGNATURE_LINE.replace("|unit:item", ""), "unit missing"),
        (SIGNATURE_LINE + "|nut:3", "no key 'nut'"),
        (SIGNATURE_LINE.replace("seed:0", "seed:٠"), "seed = '٠'"),
        (SIGNATURE_LINE.replace("seed:0", "seed:0|adj:fdr"), "adj = 'fdr': must be holm|bh"),
        (SIGNATURE_LINE.replace("test:ar", "test:bootstrap"), "test = 'bootstrap': must be ar"),
        (SIGNATURE_LINE.replace("data:aa6fcc71113b.", "data:"), "must be [0-9a-f]+"),
        ("recall", "no key 'recall'"),
        (SIGNATURE_LINE + "|value:%FF", "must be followed by the code"),
    ],
)
def test_what_is_no_signature_is_refused_with_the_key_that_is_wrong(changed, said):
    with pytest.raises(InputError, match="signature: ") as error:
        Signature.parse(changed)
    assert said in str(error.value)


def test_the_signature_of_yehs_example_stays(tmp_path):
    """A pinned digest: a changed digest would make every printed signature wrong."""
    results = compare_all(sigdask.read(YEH))
    version = get_version()
    assert [r.test_signature for r in results] == [
        f"test:ar|metric:{metric}|alt:two-sided|method:auto|p:exact|nt:1048576|seed:0|scheme:1|set:|unit:item"
        f"|data:aa6fcc71113b.{data}|v:{version}"
        for metric, data in (
            ("recall", "62f73a5aeb13.eecd92199478"),
            ("precision", "55ea3ebd2160.efe1d112855a"),
            ("f1", "b4d2e228ea26.ef6e69b2abe4"),
        )
    ]


MIX_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def mix(x):
    """Apply SplitMix64's finalizer to a Python integer."""
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = ((x ^ x >> 30) * MIX_FACTORS[0]) % 2**64
    x = ((x ^ x >> 27) * MIX_FACTORS[1]) % 2**64
    return x ^ x >> 31


def test_the_digest_of_a_system_is_that_of_its_definition():
    """A sum over units in canonical order of hashes of place, size and contribution, of scores and of how many."""
    scores = {"x": [0.3, 0.1, 0.2], "y": [0.1, 0.1, 0.0]}
    [result] = compare_all(Counts.from_scores(scores, ids=["b", "c", "a"]))
    kinds = "".join("<tuple>2:<str>7:decimal><int>1:0>>" for _ in range(2))
    start = int.from_bytes(hashlib.blake2b(f"<tuple>2:{kinds}>".encode(), digest_size=8).digest(), "little")

    def hash_column(values):
        return sum(mix(mix(mix(k) ^ 1) ^ round(x * 10) * 10**8) for k, x in enumerate(values)) % 2**64

    def digest(a, b, c):
        return f"{mix(mix(start ^ hash_column([a, b, c])) ^ hash_column([1, 1, 1])) >> 16:012x}"

    data = Signature.parse(result.test_signature).data
    assert (data.a, data.b) == (digest(0.2, 0.3, 0.1), digest(0.0, 0.1, 0.1))


def get_data(results):
    return {(r.a, r.b): Signature.parse(r.test_signature).data for r in results}


def test_data_are_the_same_in_any_format_order_and_company(tmp_path):
    """Through a CSV table and its reverse, JSON lines by item and system, and values without files."""
    order = [4, 0, 5, 2, 1, 3]
    with (tmp_path / "wide.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["item", *SCORES], *([IDS[k], *(SCORES[s][k] for s in SCORES)] for k in order)])
    json_lines = [
        json.dumps({"item": i, "system": s, "score": SCORES[s][k]}) for s in SCORES for k, i in enumerate(IDS)
    ]
    (tmp_path / "long.jsonl").write_text("\n".join(json_lines[::-1]) + "\n")
    counts = [
        Counts.from_scores(SCORES, ids=IDS),
        sigdask.read(tmp_path / "wide.csv"),
        sigdask.read(tmp_path / "long.jsonl", format="long"),
    ]
    expected, *rest = [get_data(compare_all(form, pairs=[("x", "y")], metrics="mean")) for form in counts]
    assert rest == [expected, expected]
    two_systems = {name: SCORES[name] for name in ("y", "x")}
    [pair_data] = get_data(compare_all(Counts.from_scores(two_systems, ids=IDS))).values()
    xy = expected["x", "y"]
    assert (pair_data.a, pair_data.b, pair_data.units) == (xy.b, xy.a, xy.units)


def test_data_that_are_other_ones_are_told_by_system_and_by_items():
    def sign_pair(scores, ids):
        return get_data(compare_all(Counts.from_scores(scores, ids=ids), pairs=[("x", "y")]))["x", "y"]

    original = sign_pair(SCORES, IDS)
    changed = sign_pair({**SCORES, "y": [0.25, 0.5, 0.5, 0.75, 0.25, 0.0]}, IDS)  # the same mean, of other items
    assert (changed.units, changed.a) == (original.units, original.a)
    assert changed.b != original.b
    assert sign_pair(SCORES, [*IDS[:-1], "t9"]).units != original.units
    assert len({sign_pair(SCORES, IDS[:6]).units, sign_pair(SCORES, None).units}) == 2


def test_units_that_both_systems_share_belong_to_the_data():
    """Items without a difference leave the p of a mean unchanged, but count in an F score's totals."""
    gold = [1, 1, 1, 0, 0]

    def sign_with(shared):
        responses = {"x": [1, 0, 1, 1, shared], "y": [0, 1, 1, 0, shared]}
        [result] = compare_all(Counts.from_responses(gold, responses), metrics="f1")
        return Signature.parse(result.test_signature).data

    assert sign_with(0).a != sign_with(1).a


def test_a_signature_says_what_was_asked_for():
    rng = np.random.default_rng(7)
    gold = rng.integers(0, 2, 60)
    responses = {s: np.where(rng.random(60) < 0.8, gold, 1 - gold) for s in "xyz"}
    groups = {"doc": [f"d{k // 4}" for k in range(60)], "part": ["a:1" if k < 40 else "b|2" for k in range(60)]}
    counts = Counts.from_responses(gold, responses, groups=groups, name="night")
    results = compare_all(
        counts, metrics="f:beta=2", unit="doc", by="part", alternative="greater", method="randomization", trials=5000,
        seed=3, adjust="holm",
    )  # fmt: skip
    signatures = [Signature.parse(r.test_signature) for r in results]
    assert {parsed.subset for parsed in signatures} == {("part", "a:1"), ("part", "b|2")}
    assert {(parsed.adjust, parsed.members, parsed.family) for parsed in signatures} == {
        ("holm", 6, signatures[0].family)
    }
    common, *others = [parsed.replace(by=None, value=None, data=None) for parsed in signatures]
    assert all(other == common for other in others)
    expected = {
        "metric": "f:beta=2", "alternative": "greater", "method": "randomization", "p": "trials", "seed": 3,
        "test_set": "night", "unit": "doc", "n_trials": 5000,
    }  # fmt: skip
    assert {key: getattr(common, key) for key in expected} == expected


def test_a_family_is_other_comparisons_whatever_they_are_called():
    def get_family(scores, **how):
        [digest] = {Signature.parse(r.test_signature).family for r in compare_all(scores, **how)}
        return digest

    original = get_family(SCORES)
    assert get_family({name: SCORES[name] for name in "zyx"}) != original  # z is A now, and less is more
    assert get_family({"1": SCORES["x"], "2": SCORES["y"], "3": SCORES["z"]}) == original
    assert get_family({**SCORES, "z": SCORES["x"]}) != original
    assert get_family(SCORES, adjust="bh") != original
    assert get_family(SCORES, adjust="none") is None


def compute_accuracy(outputs, gold):
    return sum(a == b for a, b in zip(outputs, gold, strict=True)) / len(gold)


def test_black_boxes_and_sets_have_digests_of_outputs_and_the_users_code(tmp_path):
    gold = {"x1": "a", "x2": "b", "x3": "a", "x4": "b"}
    files = {"gold": gold, "new": gold, "old": {**gold, "x1": "b", "x2": "a"}}
    for name, labels in files.items():
        (tmp_path / f"{name}.csv").write_text("id,label\n" + "".join(f"{i},{label}\n" for i, label in labels.items()))
    counts = sigdask.read(tmp_path / "new.csv", tmp_path / "old.csv", gold=tmp_path / "gold.csv")
    box = sigdask.metric(compute_accuracy, of="outputs")
    [result] = compare_all(counts, metrics=box, interval="none", cluster="none")
    parsed = Signature.parse(result.test_signature)
    assert parsed.data.a != parsed.data.b
    assert dict(parsed.options).keys() == {"code"}
    [plain] = compare_all(counts, metrics="accuracy")
    assert Signature.parse(plain.test_signature).options == ()

    @sigdask.metric
    def share(tp, gold):
        return tp / gold

    responses = Counts.from_responses([1, 1, 0, 1], {"x": [1, 0, 0, 1], "y": [0, 1, 1, 0]})
    [result] = compare_all(responses, metrics=share)
    assert dict(Signature.parse(result.test_signature).options).keys() == {"code"}


def test_a_scorers_own_options_are_in_the_signature(tmp_path):
    pytest.importorskip("sacrebleu")
    texts = {"ref": "a b c d e\nf g h i\n", "new": "a b c d e\nf g h j\n", "old": "a b c d x\nf g i h\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    counts = sigdask.read(tmp_path / "new", tmp_path / "old", gold=tmp_path / "ref", format="segments")
    [result] = compare_all(counts, metrics="BLEU")
    options = dict(Signature.parse(result.test_signature).options)
    assert options["tok"] == "13a"
    assert "|metric:BLEU|metric.nrefs:1|" in result.test_signature
    assert "|".join(f"{key}:{value}" for key, value in options.items()) == result.signature
