"""A plan over six real sets of different formats counts as `sigdask compare --name` does on each."""

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


def run_sigdask(*arguments):
    result = subprocess.run(
        [sys.executable, "-m", "sigdask", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def list_files(folder, patterns):
    return [path for pattern in patterns for path in sorted(folder.glob(pattern))]


def test_six_sets_of_different_formats(shared_data, tmp_path):
    lines = ["trials = 20000", 'adjust = "none"', 'interval = "auto"']
    for name, (folder, patterns, gold, metrics, extra) in SETS.items():
        paths = list_files(shared_data / folder, patterns)
        systems = paths[0] if len(paths) == 1 else [str(path) for path in paths]
        lines += ["[[test_set]]", f'name = "{name}"', f"systems = {json.dumps(systems, default=str)}"]
        lines += [f"metrics = {json.dumps(metrics)}"]
        lines += [f'gold = "{shared_data / folder / gold}"'] if gold else []
        lines += [f'format = "{extra["format"]}"'] if "format" in extra else []
        if "map" in extra:
            lines += ["map = { " + ", ".join(f'"{k}" = {json.dumps(v)}' for k, v in extra["map"].items()) + " }"]
    plan = tmp_path / "six.toml"
    plan.write_text("\n".join(lines) + "\n")
    document = run_sigdask("run", plan, "--json", "-")
    by_set = {name: [row for row in document["results"] if row["test_set"] == name] for name in SETS}
    for name, (folder, patterns, gold, metrics, extra) in SETS.items():
        options = ["--gold", shared_data / folder / gold] if gold else []
        options += ["--format", extra["format"]] if "format" in extra else []
        options += [
            x for target, labels in extra.get("map", {}).items() for x in ("--map", f"{target}={','.join(labels)}")
        ]
        options += [x for metric in metrics for x in ("--metric", metric)]
        expected = run_sigdask(
            "compare", *list_files(shared_data / folder, patterns), *options,
            "--name", name, "--trials", 20000, "--adjust", "none", "--interval", "auto", "--json", "-",
        )  # fmt: skip
        assert by_set[name] == expected["results"], name
        assert len(by_set[name]) >= 1
