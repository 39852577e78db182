"""Write the tables of the pages on formats: roles and formats as they are declared, and scores of real data.

    python docs/make_formats.py            # writes the tables of docs/formats.md and of official scores
    python docs/make_formats.py NAME...    # makes the rows of these sets alone again
    python docs/make_formats.py --tables   # writes those of docs/formats.md alone

The sets lie in ../shared/data; each row of ROWS says which command is run in which of them and where
its `reference_scores.json` keeps the official score of each system.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data"
PAGE = HERE.parent / "benchmarks" / "results-official-scores.md"
TABLES_PAGE = HERE / "formats.md"
BEGIN, END = "<!-- made by docs/make_formats.py: begin -->", "<!-- made by docs/make_formats.py: end -->"
QUICK_OPTIONS = ("--trials", "64", "--no-second-run")
MAX_DIGITS = 9


def write_tables() -> None:
    """Write the tables of formats and of roles, as they are declared."""
    from sigdask.formats.registry import FORMATS
    from sigdask.formats.roles import ROLES

    formats = ["| format | files | gold | options |", "| --- | --- | --- | --- |"]
    for name, declared in FORMATS.items():
        options = ", ".join(f"`{option.replace('|', ' or ')}`" for option in declared.options)
        page = f"[{name}]({_find_section(name)})"
        formats.append(f"| {page} | {declared.help.replace('|', ', ')} | {declared.gold} | {options} |")
    roles = ["| role | names |", "| --- | --- |"]
    roles += [f"| {role} | {', '.join(f'`{name}`' for name in names)} |" for role, names in ROLES.items()]
    text = TABLES_PAGE.read_text()
    for kind, rows in (("formats", formats), ("roles", roles)):
        begin, end = (f"<!-- made by docs/make_formats.py: {edge} {kind} -->" for edge in ("begin", "end"))
        before, _, rest = text.partition(begin)
        text = before + "\n".join([begin, *rows, end]) + rest.partition(end)[2]
    TABLES_PAGE.write_text(text)


def _find_section(name: str) -> str:
    """Return the section of the pages that describes a format: the one whose heading names it."""
    for page in sorted((HERE / "formats").glob("*.md")):
        for line in page.read_text().splitlines():
            if line.startswith("## ") and name in re.split(r"[ ,]+(?:and )?", line[3:]):
                return f"formats/{page.name}#{line[3:].replace(' ', '-').lower()}"
    return "formats/texts.md" if name == "ref-hyp" else "#tables"


@dataclass(frozen=True)
class OfficialScore:
    """Where an official score stands: keys into the reference file, {system}, {subset} and so on filled in.

    `scale` and `shift` turn a score of sigdask into the official unit; `within` is the sampling error
    of an official p-value, whose `what` is p_value instead of a score, and `only` the pair it is of.
    """

    metric: str
    keys: Sequence[str | int]
    scale: float = 1.0
    shift: float = 0.0
    what: str = "score"
    within: float = 0.0
    only: Sequence[str] = ()


@dataclass(frozen=True)
class Row:
    """One command on one set."""

    folder: str
    command: str
    official: Sequence[OfficialScore]
    options: Sequence[str] = QUICK_OPTIONS
    note: str = ""


def list_official(table: Mapping[str, Sequence[str | int]], **options: Any) -> list[OfficialScore]:
    """Return the official scores of several metrics."""
    return [OfficialScore(metric, keys, **options) for metric, keys in table.items()]


HANS = "*_preds*.txt --gold gold.csv --map non-entailment=neutral,contradiction"
TED_NAMES = "ted.sys1=ted.sys1{0}.eng ted.sys2=ted.sys2{0}.eng --gold ted.ref{0}.eng --format segments"
MULTEVAL = ("baseline", "sys1")
TREC = ("P_5", "P_10", "P_20", "Rprec", "bpref", "map", "ndcg", "ndcg_cut_10", "ndcg_cut_20", "recall_100",
        "recall_1000", "recip_rank")  # fmt: skip
REFERENCES = {"refA": "--gold en-de.refA.txt", "refB": "--gold en-de.refB.txt",
              "multi_ref": "--gold en-de.refA.txt --reference en-de.refB.txt"}  # fmt: skip
URBANO = ("adhoc5_ap", "adhoc8_ap", "adhoc8_p10", "adhoc8_rr", "web2010_err20", "web2010_ndcg20")
MQM = ("mqm_newstest2020_ende", "mqm_newstest2021_zhen")
SLOTS = ("PerpInd", "PerpOrg", "Target", "Victim", "Weapon")
PUBLISHED = ("published", "{a} vs {b}")

ROWS = [
    Row(
        "class_hans",
        HANS,
        list_official(
            {
                "accuracy": ("scores", "{system}.txt", "accuracy"),
                "macro-f1": ("scores", "{system}.txt", "macro_f1"),
                "f1[non-entailment]": ("scores", "{system}.txt", "f1_non-entailment"),
            }
        ),
    ),
    Row(
        "class_hans",
        f"{HANS} --by heuristic",
        list_official(
            {
                f"recall[{label}]": ("scores", "{system}.txt", "by_heuristic", f"{{subset}}/{label}")
                for label in ("entailment", "non-entailment")
            }
        ),
    ),
    *(
        Row(
            "matrix_trec_urbano",
            f"{name}.csv --baseline run1",
            list_official({"mean": ("sets", name, "means", "{system}")}),
        )
        for name in URBANO
    ),
    *(
        Row(
            "matrix_trec_urbano",
            f"adhoc8_ap.csv --baseline run125 --alternative {side}",
            [
                OfficialScore(
                    "mean",
                    ("known_p_values_from_source_README", "mean_difference_126_minus_125"),
                    what="difference",
                    only=("run125", "run126"),
                ),
                OfficialScore(
                    "mean",
                    ("known_p_values_from_source_README", "one_tailed_two_tailed", "permutation_1e6", k),
                    what="p_value",
                    within=within,
                    only=("run125", "run126"),
                ),
            ],
            options=(),
            note="the published p has the sampling error of 1,000,000 permutations",
        )
        for k, side, within in ((0, "greater", 0.00018), (1, "two-sided", 0.00025))
    ),
    Row(
        "matrix_alpacaeval2",
        "preferences.csv --unit dataset --missing pairwise --baseline FuseChat-Gemma-2-9B-Instruct",
        [
            OfficialScore("mean", ("systems", "{system}", key), scale=100, shift=-100)
            for key in ("win_rate_from_file", "published_win_rate")
        ],
    ),
    *(
        Row(
            "matrix_mqm",
            f"{name}.avg_seg_scores.tsv",
            [
                OfficialScore("mean", ("sets", name, "systems", "{system}", "mean")),
                OfficialScore("mean", ("sets", name, "published_readme", "{head}"), scale=-1, within=0.0055),
            ],
            note="the official means in the data's README were rounded twice, so they may be off by 0.0055",
        )
        for name in MQM
    ),
    *(
        Row(
            "known_results_ar",
            f"{a}={a}.scores {b}={b}.scores --alternative {side}",
            [
                OfficialScore("mean", ("means", "{system}")),
                OfficialScore("mean", (*PUBLISHED, "test_statistic"), what="difference"),
                OfficialScore("mean", (*PUBLISHED, "tail_p"), what="p_value", within=within),
            ],
            options=(),
            note="the published one-sided p has the sampling error of 10,000 permutations",
        )
        for a, b, side, within in (("ngram", "fluency", "less", 0.0006), ("fluency", "reversible", "greater", 0.008))
    ),
    Row(
        "ir_trec_robust03",
        "runs/*.gz --gold robust03_qrels.txt --format trec",
        [
            OfficialScore(name, ("runs", "{system}", "scores", f"{name}{of_all}"))
            for name in TREC
            for of_all in ("", "__complete")
        ],
        note="two means of each measure: over the run's topics and over all judged topics",
    ),
    Row(
        "ir_cleftar2017_topic_scores",
        "*.results --format trec --missing pairwise --baseline BASELINE.BM25",
        list_official({"ap": ("systems", "{system}", "mean_ap")}),
    ),
    Row(
        "mt_ted_comparemt",
        TED_NAMES.format(".detok"),
        list_official(
            {"BLEU": ("scores", "{system}", "BLEU_detok_13a"), "chrF": ("scores", "{system}", "chrF2_detok")}
        ),
    ),
    Row(
        "mt_ted_comparemt",
        TED_NAMES.format(""),
        list_official({"BLEU:tokenize=none": ("scores", "{system}", "BLEU_tokenized_text_tok_none")}),
    ),
    *(
        Row(
            "mt_multeval",
            " ".join(f"{name}.opt{k}=hyps.lc.tok.en.{name}.opt{k}" for name in MULTEVAL) + " --gold "
            "refs.test2010.lc.tok.en.0 --format segments",
            list_official(
                {
                    "BLEU:tokenize=none": ("scores", "hyps.lc.tok.en.{system}", "BLEU_tok_none"),
                    "chrF": ("scores", "hyps.lc.tok.en.{system}", "chrF2"),
                }
            ),
        )
        for k in range(3)
    ),
    Row(
        "mt_multeval",
        " ".join(f"{name}=hyps.lc.tok.en.{name}.opt{k}" for name in MULTEVAL for k in range(3))
        + " --gold refs.test2010.lc.tok.en.0",
        list_official({"BLEU:tokenize=none": ("mean_BLEU_over_optimizer_runs", "{system}")}),
        note="three tuning runs of each system in one test, as replicates",
    ),
    *(
        Row(
            "mt_wmt24_en-de",
            f"systems/*.txt {files} --documents en-de.docs --baseline MSLC --unit document",
            list_official(
                {"BLEU": ("scores", "{system}", reference, "BLEU"), "chrF": ("scores", "{system}", reference, "chrF2")}
            ),
        )
        for reference, files in REFERENCES.items()
    ),
    Row(
        "mt_wmt22_liv-en_xml",
        "wmttest2022.liv-en.all.xml",
        list_official({"BLEU": ("scores", "{system}", "ref", "BLEU"), "chrF": ("scores", "{system}", "ref", "chrF2")})
        + list_official({"BLEU": ("published_scores", "{system}", "bleu-all")})
        + list_official({"chrF": ("published_scores", "{system}", "chrf-all")}),
    ),
    Row(
        "seqlab_wnut17",
        "submissions/* --gold emerging.test.annotated --format conll",
        list_official(
            {
                name: ("scores", "{system}", key)
                for name, key in (
                    ("f1", "f1"),
                    ("precision", "precision"),
                    ("recall", "recall"),
                    ("accuracy", "token_accuracy"),
                )
            }
        )
        + list_official({"f1": ("published_F1_entity", "{system}")}, scale=100),
    ),
    Row(
        "timbl_dimin",
        " ".join(
            f"{name}={name}"
            for name in (
                "dimin.train.bug21.out1",
                "dimin.train.bug21.out2",
                "dimin.train.bug21.out3",
                "dimin.train.loo.M.nw.k1.out",
            )
        )
        + " --format timbl",
        list_official({"accuracy": ("scores", "{system}", "accuracy"), "macro-f1": ("scores", "{system}", "macro_f1")}),
    ),
    *(
        Row(
            "seg_sigmorphon2022",
            f"systems/{name}.*.predictions --gold gold/{name}.test.gold.tsv --format pairs --align position",
            list_official(
                {
                    metric: ("sets", name, "scores", "{last}", key)
                    for metric, key in (("precision", "precision"), ("recall", "recall"), ("f1", "f_measure"))
                },
                scale=100,
            )
            + list_official({"f1": ("sets", name, "scores", "{last}", "published_f_measure")}, scale=100)
            + list_official({"accuracy": ("sets", name, "scores", "{last}", "accuracy")}),
            note="rows are matched by line, as in the official scorer, although one file has another order",
        )
        for name in ("ces.word", "mon.word")
    ),
    Row(
        "terms_ateit2026",
        "system_results/* --gold subtask_a_test_with_labels.json --format terms --missing zero",
        list_official(
            {
                metric: ("scores", "{system}", kind, k)
                for kind, metric, k in (
                    ("micro", "precision", 3),
                    ("micro", "recall", 4),
                    ("micro", "f1", 5),
                    ("type", "type-precision", 3),
                    ("type", "type-recall", 4),
                    ("type", "type-f1", 5),
                )
            }
        ),
    ),
    Row(
        "spans_muc4",
        " ".join(
            f"{name}={name}"
            for name in ("preds_s_t.out", "preds_s_t_no_offset_constraint.out", "preds_s_t_sep_downweigh.out")
        )
        + " --gold test.json --format spans",
        list_official(
            {
                f"{metric}{label}": ("scores", "{system}", slot, key)
                for metric, key in (("precision", "P"), ("recall", "R"), ("f1", "F1"))
                for slot, label in [("micro", ""), *((slot, f"[{slot}]") for slot in SLOTS)]
            }
        ),
    ),
]


def main(names: Sequence[str]) -> None:
    """Update the rows of the named sets, or of all, and leave the other rows as they are."""
    write_tables()
    if "--tables" in names:
        return
    before, _, rest = PAGE.read_text().partition(BEGIN)
    old, _, after = rest.partition(END)
    lines = {line.split(" | ")[1]: line for line in old.splitlines() if line.count(" | ") > 1}
    table = ["| set | command, in the set's folder | official scores |", "| --- | --- | --- |"]
    for row in ROWS:
        if not names or row.folder in names:
            started = time.monotonic()
            lines[format_command(row)] = f"| {row.folder} | {format_command(row)} | {describe_agreement(row)} |"
            print(f"{lines[format_command(row)]}  ({time.monotonic() - started:.0f} s)", flush=True)
        if format_command(row) in lines:
            table.append(lines[format_command(row)])
    PAGE.write_text(before + "\n".join([BEGIN, *table, END]) + after)


def format_command(row: Row) -> str:
    """Return the command as a user writes it; one label of a metric stands for all its labels."""
    metrics: dict[str, str] = {}
    for official in row.official:
        base, bracket, _ = official.metric.partition("[")
        metrics.setdefault(base + bracket, f"--metric {quote(official.metric)}")
    command = f"`sigdask compare {' '.join([row.command, *metrics.values()])}`"
    names = {official.metric for official in row.official}
    return command if len(names) == len(metrics) else f"{command} and so for the other labels"


def quote(text: str) -> str:
    """Quote a word if the shell would interpret it."""
    return f"'{text}'" if {*text} & {*"[]()*"} else text


def expand_pattern(folder: str, argument: str) -> list[str]:
    """Expand a file pattern as a shell does."""
    if "*" not in argument:
        return [argument]
    return sorted(str(path.relative_to(DATA / folder)) for path in (DATA / folder).glob(argument))


def describe_agreement(row: Row) -> str:
    """Run a row's command and describe how its scores agree with the official ones."""
    reference = json.loads((DATA / row.folder / "reference_scores.json").read_text())
    arguments = [a for word in row.command.split() for a in expand_pattern(row.folder, word)]
    metrics = [a for name in dict.fromkeys(entry.metric for entry in row.official) for a in ("--metric", name)]
    command = [sys.executable, "-m", "sigdask", "compare", *arguments, *metrics, *row.options, "--json", "-"]
    completed = subprocess.run(command, cwd=DATA / row.folder, capture_output=True, text=True, check=False)
    if completed.returncode:
        return f"FAILED: {completed.stderr.strip().splitlines()[-1]}"
    results = json.loads(completed.stdout)["results"]
    compared = [pair for entry in row.official for pair in iter_scores(results, entry, reference)]
    systems = {name for r in results for name in (r["a"], r["b"])}
    unequal = [pair for pair in compared if not is_equal(*pair[1:])]
    if unequal or not compared:
        label, value, official, _ = unequal[0] if unequal else ("nothing", None, None, 0)
        return f"{len(unequal)} of {len(compared)} DIFFER: {label} is {value!r}, official {official!r}"
    exact = sum(not within for *_, within in compared)
    text = f"{len(systems)} systems: {exact} score{'s' if exact != 1 else ''} equal"
    if exact < len(compared):
        return f"{text}, {len(compared) - exact} within an error: {row.note}"
    return f"{text}; {row.note}" if row.note else text


def iter_scores(
    results: Sequence[Mapping[str, Any]], entry: OfficialScore, reference: Any
) -> Iterator[tuple[str, float, float, float]]:
    """Yield a label, sigdask's value, the official value and the tolerance."""
    if entry.what != "score":
        for r in results:
            official = find_score(reference, entry.keys, a=r["a"], b=r["b"])
            if official is not None and r["metric"] == entry.metric and {*entry.only} <= {r["a"], r["b"]}:
                yield f"{entry.what} of {r['a']} and {r['b']}", r[entry.what], official, entry.within
        return
    for (system, subset), (score, _) in collect_scores(results, entry.metric).items():
        head, _, last = system.rpartition(".")
        official = find_score(reference, entry.keys, system=system, head=head or system, last=last, subset=subset)
        if official is not None:
            yield f"{entry.metric} of {system}", entry.scale * score + entry.shift, official, entry.within


def collect_scores(results: Sequence[Mapping[str, Any]], metric: str) -> dict[tuple[str, str], tuple[float, int]]:
    """Return each system's score from the comparison with the most items."""
    best: dict[tuple[str, str], tuple[float, int]] = {}
    for r in results:
        if r["metric"] != metric:
            continue
        subset = r["subset"]["value"] if r["subset"] else ""
        for side in "ab":
            key = (r[side], subset)
            if key not in best or best[key][1] < r["n_items"]:
                best[key] = (r[f"score_{side}"], r["n_items"])
    return best


def find_score(reference: Any, keys: Sequence[str | int], **names: str) -> float | None:
    """Return the score at these keys of the reference file, or None if there is none."""
    value = reference
    for key in keys:
        try:
            value = value[key.format(**names) if isinstance(key, str) else key]
        except (KeyError, IndexError):
            return None
    return None if value is None else float(value)


def is_equal(value: float, official: float, within: float) -> bool:
    """Return whether a value rounds to the official one at its printed digits."""
    _, _, decimals = repr(official).partition(".")
    digits = 0 if "e" in repr(official) else min(len(decimals), MAX_DIGITS)
    return abs(value - official) <= (within or 0.5000001 * 10.0**-digits)


if __name__ == "__main__":
    main(sys.argv[1:])
