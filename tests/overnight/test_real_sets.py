"""A plan over six real sets of different formats: its counts are those of `sigdask compare --name` on each."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SETS = {
    "hans": ("class_hans", ["*_preds*.txt"], "gold.csv", ["accuracy", "macro-f1"],
             {"map": {"non-entailment": ["neutral", "contradiction"]}}),
    "wnut": ("seqlab_wnut17", ["submissions/*"], "emerging.test.annotated", ["f1"], {"format": "conll"}),
    "robust": ("ir_trec_robust03", ["runs/*.gz"], "robust03_qrels.txt", ["AP"], {"format": "trec"}),
    "terms": ("terms_ateit2026", ["system_results/*"], "subtask_a_test_with_labels.json", ["f1"], {"format": "terms"}),
    "ted": ("mt_ted_comparemt", ["ted.sys1.detok.eng", "ted.sys2.detok.eng"], "ted.ref.detok.eng", ["BLEU"],
            {"format": "segments"}),
    "web": ("matrix_trec_urbano", ["web2010_ndcg20.csv"], None, ["mean"], {"format": "wide"}),
}  # fmt: skip


def sigdask(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "sigdask", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def files(folder, patterns):
    return [path for pattern in patterns for path in sorted(folder.glob(pattern))]


def test_six_sets_of_different_formats(shared_data, tmp_path):
    lines = ["trials = 20000", 'adjust = "none"', 'interval = "auto"']
    for name, (folder, patterns, gold, metrics, more) in SETS.items():
        given = files(shared_data / folder, patterns)
        systems = given[0] if len(given) == 1 else [str(path) for path in given]
        lines += ["[[test_set]]", f'name = "{name}"', f"systems = {json.dumps(systems, default=str)}"]
        lines += [f"metrics = {json.dumps(metrics)}"]
        lines += [f'gold = "{shared_data / folder / gold}"'] if gold else []
        lines += [f'format = "{more["format"]}"'] if "format" in more else []
        if "map" in more:
            lines += ["map = { " + ", ".join(f'"{k}" = {json.dumps(v)}' for k, v in more["map"].items()) + " }"]
    plan = tmp_path / "six.toml"
    plan.write_text("\n".join(lines) + "\n")
    found = sigdask("run", plan, "--json", "-")
    by_set = {name: [row for row in found["results"] if row["test_set"] == name] for name in SETS}
    for name, (folder, patterns, gold, metrics, more) in SETS.items():
        options = ["--gold", shared_data / folder / gold] if gold else []
        options += ["--format", more["format"]] if "format" in more else []
        options += [x for to, labels in more.get("map", {}).items() for x in ("--map", f"{to}={','.join(labels)}")]
        options += [x for metric in metrics for x in ("--metric", metric)]
        alone = sigdask(
            "compare", *files(shared_data / folder, patterns), *options,
            "--name", name, "--trials", 20000, "--adjust", "none", "--interval", "auto", "--json", "-",
        )  # fmt: skip
        assert by_set[name] == alone["results"], name
        assert len(by_set[name]) >= 1
