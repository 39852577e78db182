"""Files of one name: runs with the same items, parts of one run without common items, or an error."""

import itertools
import json
import random

import pytest

import sigdask
from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import read

N_FOLDS = 3


@pytest.fixture
def topics():
    """Return topics with three ranked documents each, of which some are relevant, by system."""
    rng = random.Random(5)
    names = [f"q{k}" for k in range(1, 13)]
    qrels = {topic: {document: rng.random() < 0.5 for document in "abc"} | {"z": True} for topic in names}
    runs = {name: {topic: rng.sample("abc", 3) for topic in names} for name in ("new", "old")}
    return qrels, runs


def write_trec(folder, topics):
    qrels, runs = topics
    lines = [f"{topic} 0 {document} {int(rel)}\n" for topic, own in qrels.items() for document, rel in own.items()]
    (folder / "gold").write_text("".join(lines))
    for name, run in runs.items():
        rows = {
            topic: [f"{topic} Q0 {d} {rank} {9 - rank} {name}\n" for rank, d in enumerate(documents, 1)]
            for topic, documents in run.items()
        }
        yield name, rows


def write_scores(folder, topics):
    (folder / "gold").write_text("")
    for name, run in topics[1].items():
        yield name, {topic: [f"{topic},{'abc'.index(documents[0]) / 4}\n"] for topic, documents in run.items()}


@pytest.mark.parametrize(
    ("write", "header", "metric"), [(write_trec, "", "AP"), (write_scores, "qid,score\n", "mean")], ids=["trec", "csv"]
)
def test_parts_of_a_run_score_as_one_file(tmp_path, topics, write, header, metric):
    whole, parts = [], []
    for name, rows in write(tmp_path, topics):
        for k in range(N_FOLDS):
            own = [*itertools.islice(rows.values(), k, None, N_FOLDS)]
            (tmp_path / f"{name}{k}").write_text(header + "".join(itertools.chain(*own)))
            parts.append(f"{name}={tmp_path / name}{k}")
        (tmp_path / name).write_text(header + "".join(itertools.chain(*rows.values())))
        whole.append(f"{name}={tmp_path / name}")
    gold = tmp_path / "gold" if metric == "AP" else None
    joined = read(*parts, gold=gold)
    assert (joined.systems, joined.n_items, joined.replicates) == (("new", "old"), 12, ())
    assert joined.scope[:2] == tuple(f"{s}: 3 files are parts of one run, and were joined" for s in joined.systems)
    [r], [expected] = (compare_all(counts, metrics=[metric]) for counts in (joined, read(*whole, gold=gold)))
    assert (r.score_a, r.score_b, r.p_value) == (expected.score_a, expected.score_b, expected.p_value)
    [r] = compare_all(read(*parts[:3], whole[1], gold=gold), metrics=[metric])  # of one system alone
    assert (r.score_a, r.score_b, r.p_value) == (expected.score_a, expected.score_b, expected.p_value)


def test_runs_of_parts_are_replicates_of_joined_runs(tmp_path):
    files = []
    for system, seed, part in itertools.product("xy", range(2), range(3)):
        path = tmp_path / f"{system}{seed}{part}.csv"
        path.write_text("id,score\n" + "".join(f"{part}-{k},{(k + seed + (system == 'x')) % 4}\n" for k in range(4)))
        files.append(f"{system}={path}")
    counts = read(*files)
    assert (len(counts.replicates), counts.of_one.n_items) == (2, 12)
    with pytest.raises(InputError, match="different numbers of files"):
        read(*files[:-1])


def test_lists_of_one_name_are_runs(tmp_path):
    labels = {"gold": "a, b\nc\n", "x1": "a, b\nc\n", "x2": "a, b\nd, e\n", "y1": "c\nc\n", "y2": "a, b\nc\n"}
    for name, text in labels.items():
        (tmp_path / name).write_text(text)
    files = [f"{name[0]}={tmp_path / name}" for name in labels if name != "gold"]
    counts = read(*files, gold=tmp_path / "gold", format="labels:list=yes")
    assert [run.field("correct").tolist() for run in counts.replicates] == [[[1, 0], [1, 1]], [[1, 1], [0, 1]]]


def test_parts_of_a_run_keep_the_types_of_their_columns(tmp_path):
    names = [f"{system}{part}" for system in "xy" for part in range(2)]
    for name in names:
        records = ({"id": f"{name[1]}{k}", "passed": name[0] == "x" or k == 1} for k in range(2))
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    counts = read(*(f"{name[0]}={tmp_path / name}.jsonl" for name in names), format="wide")
    assert counts.field("score[passed]").tolist() == [[1, 0], [1, 1]] * 2


def test_rows_that_a_column_of_runs_does_not_tell_apart_are_refused_with_ways_that_work(tmp_path):
    """Seeds times prompts without the column of prompts: averaging them would drop the runs."""
    path = tmp_path / "long.csv"
    cells = [*itertools.product("ab", "12", "1234", "xy")]
    rows = [
        f"{model},{seed},{question},{prompt},{k % 3 % 2}" for k, (model, seed, question, prompt) in enumerate(cells)
    ]
    path.write_text("\n".join(["model,seed,question_id,prompt_no,score", *rows]) + "\n")
    with pytest.raises(InputError, match=r"seed.*'question_id\+COLUMN'.*ignore=.*seed"):
        sigdask.read(path, ignore=["prompt_no"])
    assert sigdask.read(path, ignore=["prompt_no", "seed"]).runs is None
    counts = sigdask.read(path, columns={"item": "question_id+prompt_no"})
    assert (counts.runs.column, counts.of_one.n_items) == ("seed", 8)
    assert [*counts.of_one.groups] == ["question_id", "prompt_no"]  # dependence within each is checked


def test_an_error_names_the_system_and_the_run_that_it_lacks(tmp_path):
    rows = [f"{k},{run},{system},{k}" for system in "ab" for run in "123" for k in range(4) if system + run != "b2"]
    (tmp_path / "scores.csv").write_text("\n".join(["id,run,system,score", *rows]))
    with pytest.raises(InputError, match=r"'b' has no run '2'.* leave out this run"):
        read(tmp_path / "scores.csv")
