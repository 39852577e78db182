"""Answers to questions: exact match and F1 of SQuAD's official scripts, from its files and those of Hugging Face."""

import json

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, Source, detect, read
from sigdask.formats.texts.squad import compute_scores, normalize_words

# answer, gold answers, then exact match and F1 as compute_score of evaluate's metrics/squad (the official evaluate-v1.1.py)
# and get_raw_scores of metrics/squad_v2 (evaluate-v2.0.py) return them
SCORED_ANSWERS = [
    ("the Denver team!", ["Denver Broncos", "Broncos"], (0.0, 0.5), (0.0, 0.5)),
    ("Super-Bowl", ["super bowl", "The Superbowl"], (1.0, 1.0), (1.0, 1.0)),
    ("", ["a"], (1.0, 0.0), (1.0, 1.0)),
    ("the", ["an"], (1.0, 0.0), (1.0, 1.0)),
    ("U.S. of A", ["US of a", "usa"], (1.0, 1.0), (1.0, 1.0)),
    ("10 10 2", ["10, 2"], (0.0, 0.8), (0.0, 0.8)),
    ("café", ["Café au lait"], (0.0, 0.5), (0.0, 0.5)),
]


@pytest.mark.parametrize(("given", "gold", "first", "second"), SCORED_ANSWERS)
def test_exact_match_and_f1_are_those_of_the_official_scripts(given, gold, first, second):
    words = [normalize_words(answer) for answer in gold]
    assert compute_scores(given, words, nothing_is_an_answer=False) == first
    assert compute_scores(given, [tokens for tokens in words if tokens] or [[]], nothing_is_an_answer=True) == second


# the README of evaluate's metrics/squad: "Partial match (2 out of 3 answers correct)", exact_match and f1 66.66666666666667
PREDICTIONS = [
    {"prediction_text": "1976", "id": "56e10a3be3433e1400422b22"},
    {"prediction_text": "Beyonce", "id": "56d2051ce7d4791d0090260b"},
    {"prediction_text": "climate change", "id": "5733b5344776f419006610e1"},
]
REFERENCES = [
    {"answers": {"answer_start": [97], "text": ["1976"]}, "id": "56e10a3be3433e1400422b22"},
    {"answers": {"answer_start": [233], "text": ["Beyoncé and Bruno Mars"]}, "id": "56d2051ce7d4791d0090260b"},
    {"answers": {"answer_start": [891], "text": ["climate change"]}, "id": "5733b5344776f419006610e1"},
]
WRONG = {row["id"]: "1999" for row in PREDICTIONS}


def format_squad(references, version="1.1"):
    qas = [
        {
            "id": row["id"],
            "question": "?",
            "answers": [{"text": text, "answer_start": 0} for text in row["answers"]["text"]],
            **({"is_impossible": not row["answers"]["text"]} if version == "v2.0" else {}),
        }
        for row in references
    ]
    paragraphs = [{"context": "one", "qas": qas[:1]}, {"context": "two", "qas": qas[1:]}]
    return json.dumps({"version": version, "data": [{"title": "A", "paragraphs": paragraphs}]})


def format_json_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


GOLD_FORMATS = {"squad": format_squad, "array": json.dumps, "lines": format_json_lines}
PREDICTION_FORMATS = {
    "by id": lambda rows: json.dumps({row["id"]: row["prediction_text"] for row in rows}),
    "array": json.dumps,
    "lines": format_json_lines,
}


@pytest.mark.parametrize("gold", GOLD_FORMATS)
@pytest.mark.parametrize("given", PREDICTION_FORMATS)
def test_predictions_and_gold_answers_are_read_as_they_are_published(tmp_path, gold, given):
    (tmp_path / "gold.json").write_text(GOLD_FORMATS[gold](REFERENCES))
    (tmp_path / "x.json").write_text(PREDICTION_FORMATS[given](PREDICTIONS))
    (tmp_path / "y.json").write_text(json.dumps(WRONG))
    systems = [Source(tmp_path / "x.json"), Source(tmp_path / "y.json")]
    assert detect(systems, tmp_path / "gold.json") == "squad"
    counts = read(*systems, gold=tmp_path / "gold.json")
    assert list(counts.ids) == [row["id"] for row in REFERENCES]
    results = list(compare_all(counts))
    assert [(r.metric, r.score_a, r.score_b) for r in results] == [
        ("exact_match", pytest.approx(0.6666666666666667), 0),
        ("f1", pytest.approx(0.6666666666666667), 0),
    ]


def test_a_question_that_is_not_answered_counts_0_in_version_1_and_is_asked_about_in_2(tmp_path):
    for version in ("1.1", "v2.0"):
        (tmp_path / version).write_text(format_squad(REFERENCES, version))
    (tmp_path / "x").write_text(json.dumps({row["id"]: row["prediction_text"] for row in PREDICTIONS[:2]} | {"7": "!"}))
    (tmp_path / "y").write_text(json.dumps(WRONG))
    counts = read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "1.1")
    assert counts.field("score[f1]").T.tolist() == [[1, 0, 0], [0, 0, 0]]
    assert counts.warnings[0].endswith("x: 1 answer ('7') to no question of 1.1: left out")
    assert counts.scope[0].startswith("x lacks 1 of 3 items: scored 0")
    with pytest.raises(InputError, match="system 'x' has no score 'exact_match' for item '5733b5344776f419006610e1'"):
        read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "v2.0")
    counts = read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "v2.0", options=Options(missing="pairwise"))
    assert counts.present.tolist() == [[True, True], [True, True], [False, True]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"56e10a3be3433e1400422b22": 1976}', "x, key '56e10a3be3433e1400422b22': found 1976, expected an answer"),
        ('{"other": "1976"}', "x: answers none of the questions of .*gold.json; its first id is 'other'"),
        (
            '{"id": "a", "prediction_text": "b"}\n{"id": "a", "prediction_text": "c"}\n',
            "line 2: id 'a' is on line 1 already",
        ),
        ('{"a": "b"', "x, line 1: invalid JSON"),
    ],
)
def test_what_is_no_answer_is_an_error_that_names_it(tmp_path, text, message):
    (tmp_path / "gold.json").write_text(format_squad(REFERENCES))
    (tmp_path / "x").write_text(text)
    (tmp_path / "y").write_text(json.dumps(WRONG))
    with pytest.raises(InputError, match=message):
        read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "gold.json")
    (tmp_path / "bad.json").write_text('{"data": [{"title": "A", "paragraphs": [{"qas": [{"id": "a"}]}]}]}')
    with pytest.raises(InputError, match="bad.json, record 1: found .* expected questions with `id`"):
        read(tmp_path / "y", gold=tmp_path / "bad.json", format="squad")


@pytest.mark.parametrize(
    "article",
    [{"paragraphs": {"a": 1}}, {"paragraphs": [7]}, {"paragraphs": [{"qas": None}]},
     {"paragraphs": [{"qas": [{"id": "b", "answers": {"text": "c"}}]}]}],
)  # fmt: skip
def test_an_article_without_its_lists_is_an_error_that_names_it(tmp_path, article):
    good = {"title": "T", "paragraphs": [{"qas": [{"id": "a", "answers": [{"text": "b"}]}]}]}
    (tmp_path / "gold.json").write_text(json.dumps({"data": [good, {"title": "U", **article}]}))
    (tmp_path / "x").write_text('{"a": "b"}')
    with pytest.raises(InputError, match="gold.json, record 2: found .*`qas` of `paragraphs`"):
        read(tmp_path / "x", gold=tmp_path / "gold.json", format="squad")
