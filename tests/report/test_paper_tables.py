"""Tests of paper tables: numbers as in the JSON, names as plain text, and no box of a paper overfull."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from command import call_sigdask
from conftest import YEH
from markdown_it import MarkdownIt
from matplotlib.text import Text
from paper_tables import HOSTILE_NAMES, compare_random, compile_paper, parse_tables, run_program

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.report import latex, markdown
from sigdask.report.comparisons import build_ranking_table
from sigdask.results.columns import repeat


def test_a_table_of_systems_has_scores_of_the_json_with_the_best_in_bold_and_the_letters_of_the_ranking():
    results = compare_random("abcdef", step=0.1)
    [[header, *rows]] = parse_tables(results.to_markdown())
    [ranking] = results.rankings()
    assert [text for text, _ in header] == ["system", "mean"]
    assert [name for (name, _), _ in rows] == [ranked.system for ranked in ranking.systems]
    assert [score.split() for _, (score, _) in rows] == [
        [f"{s.score:.4f}", "".join(s.letters)] for s in ranking.systems
    ]
    assert [bold for _, (_, bold) in rows] == [s.rank == 1 for s in ranking.systems]
    assert len({s.letters for s in ranking.systems}) > 1


def test_against_a_baseline_daggers_say_which_system_is_better_or_worse():
    results = compare_random("wxyz", step=0.2, baseline="y", adjust="none")
    [[_, *rows]] = parse_tables(results.to_markdown())
    marks = {name: score.split()[1:] for (name, _), (score, _) in rows}
    by_name = {r.a: [{True: "†", False: "‡"}[r.difference > 0]] if r.verdict == "significant" else [] for r in results}
    assert rows[0][0][0] == "y"
    assert marks == {"y": []} | by_name
    assert {"†", "‡"} <= {mark for system_marks in marks.values() for mark in system_marks}
    assert "†, ‡: significantly better, worse than y at 0.05" in results.to_markdown()


@pytest.mark.parametrize("baseline", [None, "a"])
def test_systems_on_other_items_are_not_ranked(baseline):
    scores = np.round(np.sort(np.random.default_rng(1).random((40, 3)), axis=0), 3) + np.array([0.1, 0.05, 0.0])
    scores[:20, 2] = np.nan  # c is the worst, and lacks what is hard
    data = Counts.from_scores(dict(zip("abc", scores.T, strict=True)), missing="pairwise")
    results = compare_all(data, metrics=["mean"], baseline=baseline)
    assert len({r.score_b if r.b == "a" else r.score_a for r in results if "a" in {r.a, r.b}}) == 2
    assert results.rankings() == ()
    [[header, *rows]] = parse_tables(results.to_markdown())
    assert [text for text, _ in header][:2] == ["A", "B"]
    assert len(rows) == len(results)
    with pytest.raises(InputError, match="pairs are compared two-sided, or all with one baseline, on the same items"):
        results.to_markdown(layout="systems")


def test_of_a_metric_of_which_less_is_better_the_least_is_bold_and_better_than_the_baseline():
    results = compare_random("abc", baseline="a", step=0.2, adjust="none")
    metric = repeat("TER", len(results))
    table = results.table.replace(metric=metric, higher_is_better=np.zeros(len(results), np.bool_))
    [[header, *rows]] = parse_tables(replace(results, table=table).to_markdown())
    assert header[1][0] == "TER ↓"
    assert [(name, score.split()[1:], bold) for (name, _), (score, bold) in rows] == [
        ("a", [], True), ("b", ["‡"], False), ("c", ["‡"], False),
    ]  # fmt: skip


def test_a_row_a_comparison_has_the_numbers_of_the_json():
    results = compare_random("abc", step=0.15, interval="bootstrap", resamples=200)
    [[header, *rows]] = parse_tables(results.to_markdown(layout="pairs", digits=6))
    assert [text for text, _ in header] == [
        "A", "B", "score A", "score B", "A - B", "simultaneous 95 % interval", "unadjusted p", "adjusted p",
    ]  # fmt: skip
    for row, r in zip(rows, results.to_dict()["results"], strict=True):
        texts = [text for text, _ in row]
        low, high = map(float, re.findall(r"[-\d.]+", texts[5]))
        numbers = [float(text.removeprefix("≤ ").split()[0]) for text in (*texts[2:5], *texts[6:])]
        sign = 1 if r["difference"] > 0 else -1  # the better system is A
        assert texts[:2] == [r["a"], r["b"]][::sign]
        assert numbers[:3] == pytest.approx([*[r["score_a"], r["score_b"]][::sign], abs(r["difference"])], abs=5.1e-7)
        assert [low, high] == pytest.approx([sign * x for x in r["interval_simultaneous"]][::sign], abs=5.1e-7)
        for printed, p in zip(numbers[3:], (r["p_value"], r["p_adjusted"]), strict=True):
            assert p <= printed <= p * 1.01
        assert ("*" in texts[-1]) == (r["p_adjusted"] <= 0.05)
        assert [bold for _, bold in row[2:4]] == [True, False]


def test_subsets_are_sections_and_test_sets_tables_of_all_verdicts():
    rng = np.random.default_rng(5)
    scores = {name: rng.integers(0, 2, 60) for name in "abc"}
    counts = Counts.from_scores(scores, groups={"genre": ["news", "web"] * 30})
    results = compare_all(counts, metrics=["mean"], by="genre", trials=99, together=True)
    text = results.to_markdown()
    assert re.findall(r"^\*(genre: \w+)\*$", text, re.MULTILINE) == ["genre: news", "genre: web"]
    news, web, together = parse_tables(text)
    assert [len(table) for table in (news, web, together)] == [4, 4, 4]
    by_pair = {frozenset((v.a, v.b)): v for v in results.together}
    for row in together[1:]:
        (a, _), (b, _), _, (n_sets, _), (mean, _), *_ = row
        assert (int(n_sets), mean) == (2, f"+{abs(by_pair[frozenset((a, b))].difference):.4f}")


def test_hostile_names_are_text_in_markdown():
    results = compare_random(HOSTILE_NAMES, adjust="none")
    for layout in ("systems", "pairs"):
        [[_, *rows]] = parse_tables(results.to_markdown(layout=layout))
        names = {text for row in rows for text, _ in row[: 1 if layout == "systems" else 2]}
        assert names == {name.replace("\x1b", "\N{REPLACEMENT CHARACTER}") for name in HOSTILE_NAMES}
    assert "<script>" not in MarkdownIt("gfm-like", {"linkify": False}).render(results.to_markdown())


def test_every_word_of_a_name_is_escaped_for_latex():
    assert latex.escape("\\input{x}") == r"\textbackslash{}input\{x\}"
    assert latex.escape("a_b & 50 % #1 $x$ ~^") == r"a\_b \& 50 \% \#1 \$x\$ \textasciitilde{}\textasciicircum{}"
    assert latex.escape("日") == r"\sigdaskchar{日}{65E5}"
    assert latex.escape("[a] -- ``b''") == r"{[}a{]} -{}- \symbol{96}\symbol{96}b'{}'"


def test_a_layout_or_digits_that_there_are_not_are_refused():
    results = compare_random("ab")
    with pytest.raises(InputError, match="layout = 'wide': must be one of systems, pairs"):
        results.to_latex(layout="wide")
    with pytest.raises(InputError, match="digits = 99: must be at most 15"):
        results.to_markdown(digits=99)


def test_the_note_below_a_table_is_short_and_names_test_adjustment_level_version_and_seed():
    results = compare_random("abc", adjust="holm")
    for table in results.paper_tables():
        note = " ".join(table.note)
        assert len(note.split()) <= 40
        for word in ("tratified shuffling by item, two-sided", "adjusted by Holm", "0.05", "sigdask ", "seed 0"):
            assert word in note


@pytest.mark.slow
def test_thousands_of_comparisons_are_all_in_the_tables():
    rng = np.random.default_rng(1)
    scores = {f"s{k}": rng.integers(0, 2, 30) for k in range(60)}
    results = compare_all(Counts.from_scores(scores), metrics=["mean"], adjust="none", trials=19, interval="none")
    tex = results.to_latex(layout="pairs")
    assert len(re.findall(r"^s\d+ & s\d+ &", tex, re.MULTILINE)) == len(results) == 1770
    assert tex.count(r"\begin{tabular}") == 50  # as LaTeX does not divide a table between pages
    [[_, *rows]] = parse_tables(results.to_markdown(layout="pairs"))
    assert len(rows) == 1770


@pytest.mark.slow
def test_pdflatex_takes_the_tables_whatever_names_are_and_prints_the_numbers_of_the_json(tmp_path):
    results = compare_random(HOSTILE_NAMES, adjust="none", interval="bootstrap", resamples=50, trials=99)
    tables = [results.to_latex(), results.to_latex(layout="pairs", label="tab:pairs", caption=r"A \emph{caption}.")]
    plain = compare_random("abcd", step=0.1)
    tables += [plain.to_latex(), compare_random("wxyz", baseline="y").to_latex(label="tab:baseline")]
    log = compile_paper(tmp_path, tables)
    assert "undefined" not in log
    assert "Missing character" not in (tmp_path / "paper.log").read_text(errors="replace")
    assert "There were undefined" not in log
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext (poppler-utils) is not installed")
    printed = run_program("pdftotext", "-layout", "paper.pdf", "-", cwd=tmp_path)
    for system in plain.rankings()[0].systems:
        assert re.search(rf"{system.system}\s+{system.score:.4f}\s*{''.join(system.letters)}", printed)


def test_shares_are_in_per_cent_unless_refused_and_say_so(tmp_path):
    call_sigdask("compare", YEH, "-m", "f1", "-o", "r.json", "-o", "two.md", cwd=tmp_path)
    for name, options in (("plain.md", ["--no-percent", "--digits", "6"]), ("percent.md", ["--digits", "4"])):
        call_sigdask("show", "r.json", "-o", name, *options, cwd=tmp_path)
    plain, percent, two = ((tmp_path / f"{name}.md").read_text() for name in ("plain", "percent", "two"))
    [[_, row]], [[_, scaled]] = parse_tables(plain), parse_tables(percent)
    row, scaled = row[2:], scaled[2:]  # without the names of the systems
    for index in range(3):
        assert float(scaled[index][0]) == pytest.approx(100 * float(row[index][0]), abs=1e-9)
    ends = [[float(x) for x in re.findall(r"[-\d.]+", cells[3][0])] for cells in (row, scaled)]
    assert ends[1] == pytest.approx([100 * x for x in ends[0]], abs=1e-9)
    assert (row[4], [bold for _, bold in row]) == (scaled[4], [bold for _, bold in scaled])
    assert "by f1 (%)" in percent
    assert parse_tables(two)[0][1][2][0] == "47.47"


LONG_NAMES = (
    "transformer-big_backtranslation_ensemble-of-4_seed-1234",
    "nllb-200-distilled-600M",
    "GPT",
    "WWWWWWWWMMMM",
    "x",
)


@pytest.mark.slow
@pytest.mark.parametrize("document_class", ["[twocolumn]{article}", "{IEEEtran}", "{article}"])
def test_no_box_of_a_paper_is_overfull_in_one_column_or_two(tmp_path, document_class):
    if document_class == "{IEEEtran}" and not run_kpsewhich("IEEEtran.cls"):
        pytest.skip("IEEEtran (texlive-publishers) is not installed")
    tables = []
    for names in ("abc", LONG_NAMES, [f"system-{k}" for k in range(30)]):
        for options in ({}, {"baseline": names[0]}):
            results = compare_random(names, adjust="holm", interval="bootstrap", resamples=20, step=0.01, **options)
            tables += [results.to_latex(layout=x, label=f"t{len(tables)}{x}") for x in ("systems", "pairs")]
    rng = np.random.default_rng(2)
    columns = {name: rng.choice([*"xyz"], 40).tolist() for name in (*LONG_NAMES, *"defg")}
    counts = Counts.from_labels(rng.choice([*"xyz"], 40).tolist(), columns)
    many = compare_all(counts, metrics=["accuracy", "macro-f1", "kappa"], trials=19)
    tables += [many.to_latex(layout=x, label=f"m{x}") for x in ("systems", "pairs")]
    compile_paper(tmp_path, tables, document_class)
    log = (tmp_path / "paper.log").read_text(errors="replace")
    assert [line for line in log.splitlines() if "Overfull \\hbox" in line] == []


def run_kpsewhich(name):
    return shutil.which("kpsewhich") and subprocess.run(("kpsewhich", name), capture_output=True, check=False).stdout


def test_decimals_are_those_that_the_field_prints():
    rng = np.random.default_rng(1)
    scores = {name: rng.random(30) for name in "abc"}
    results = compare_all(Counts.from_scores(scores), metrics=["mean"], trials=19)
    cells = {}
    for name, scale in (("BLEU", 50.0), ("BLEU", 1.0), ("chrF++", 50.0), ("nDCG@10", 1.0), ("accuracy", 1.0)):
        table = results.table
        scaled = {column: scale * getattr(table, column) for column in ("score_a", "score_b", "difference")}
        metric = repeat(name, len(table))
        [[header, row, *_]] = parse_tables(replace(results, table=table.replace(metric=metric, **scaled)).to_markdown())
        cells[name, scale] = header[1][0], len(row[1][0].split()[0].partition(".")[2])
    assert cells == {
        ("BLEU", 50.0): ("BLEU", 1), ("BLEU", 1.0): ("BLEU", 4), ("chrF++", 50.0): ("chrF++", 1),
        ("nDCG@10", 1.0): ("nDCG@10", 4), ("accuracy", 1.0): ("accuracy (%)", 2),
    }  # fmt: skip


def test_more_than_eight_letters_are_ranges_of_ranks():
    results = compare_random([f"s{k:02}" for k in range(24)], step=0.03, adjust="none", trials=99)
    [ranking] = results.rankings()
    assert len({letter for system in ranking.systems for letter in system.letters}) > 8
    assert ranking.grouping == "ranks"
    [[header, *rows]] = parse_tables("".join(markdown.iter_parts([build_ranking_table(ranking)])))
    assert [text for text, _ in header] == ["rank", "system", "score", "possible ranks"]
    assert [int(row[0][0]) for row in rows] == [s.rank for s in ranking.systems]
    assert "Ranks range from" in results.cite().text


def list_marks(results, grouping):
    """Return the marks of systems by their names, from the verdicts alone."""
    wins, losses = {}, {}
    for r in results:
        for name in (r.a, r.b):
            wins.setdefault(name, set()), losses.setdefault(name, set())
        if r.verdict == "significant":
            better, worse = (r.a, r.b) if r.difference > 0 else (r.b, r.a)
            wins[better].add(worse), losses[worse].add(better)
    scores = {name: score for r in results for name, score in ((r.a, r.score_a), (r.b, r.score_b))}
    best_first = sorted(scores, key=lambda name: -scores[name])
    ranges = {name: (1 + len(losses[name]), len(scores) - len(wins[name])) for name in scores}
    tied = {name: "" if name in wins[best_first[0]] else "=" for name in scores}
    starts = [
        k for k in range(1, len(scores))
        if max(ranges[name][1] for name in best_first[:k]) < min(ranges[name][0] for name in best_first[k:])
    ]  # fmt: skip
    clusters = {name: str(1 + sum(start <= k for start in starts)) for k, name in enumerate(best_first)}
    ranks = {name: f"{low}" + f"–{high}" * (low < high) + tied[name] for name, (low, high) in ranges.items()}
    return {"clusters": clusters, "tied": tied, "ranks": ranks}[grouping]


@pytest.mark.parametrize("grouping", ["clusters", "tied", "ranks"])
def test_a_grouping_chosen_by_hand_marks_systems_in_every_kind_of_output(grouping):
    results = compare_random("abcdef", step=0.2, adjust="none", trials=99)
    results = replace(results, table=results.table.replace(grouping=grouping))
    expected = list_marks(results, grouping)
    assert len({*expected.values()}) > 1
    for text in (results.to_markdown(), results.to_latex()):
        assert "letter" not in text
    [[_, *rows]] = parse_tables(results.to_markdown())
    assert {name: (cell.split()[1:] or [""])[0].strip("()") for (name, _), (cell, _) in rows} == expected
    _, _, *lines = str(results).partition("ranking by")[2].partition("\n\n")[0].splitlines()[1:]
    printed = [line.split() for line in lines]
    marks = {name: ([*row, ""][row.index(name) + 2], name) for row in printed for name in row if name in expected}
    assert {name: mark for name, (mark, _) in marks.items()} == expected
    page = results.to_html()
    for name, mark in expected.items():
        assert re.search(
            f'<th scope="row">{name}</th><td class="n">[^<]+</td><td class="letters"[^>]*>{mark}</td>', page
        )
    shown = {text.get_text() for text in results.plot("cd").findobj(Text)}
    assert all(any(f"{name} {mark}".strip() in text for text in shown) for name, mark in expected.items())
