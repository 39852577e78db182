"""Tests that commands on hostile files end with status 0 or 2 and one message."""

import contextlib
import json
import random

import pytest
from command import call_sigdask, limit_cpu
from fuzzing import TEXTS, mutate_json, mutate_lines
from recorded_runs import SCORES

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
SUFFIXES = ("", "", ".tsv", ".csv", ".json", ".jsonl", ".txt", ".eval", ".parquet", ".gz", ".xml", ".sgm")
N_FILES, N_RESULTS = 300, 30
RESULTS = [
    ("compare", "--unit", "doc", "--by", "task", "--together"),
    ("compare", "--tests", "all", "--interval", "bootstrap", "--resamples", "50"),
    ("compare", "--adjust", "tukey", "--method", "randomization"),
    ("power", "--difference", "0.1"),
]


def run_hostile_command(*arguments, folder):
    """Run a command in its folder; return its result, which must be done or refused with a message."""
    with contextlib.chdir(folder), limit_cpu():
        result = call_sigdask(*arguments, cwd=folder)
    allowed = {0, 1, 2} if arguments[0] == "reproduce" else {0, 2}
    assert result.returncode in allowed, (arguments, result.stderr[-2000:])
    assert "Traceback" not in result.stderr, (arguments, result.stderr)
    assert "internal error" not in result.stderr, (arguments, result.stderr)
    assert result.returncode != 2 or result.stderr.strip(), arguments
    return result


def write_files(dice, folder):
    """Write the files of one test set, one of them mutated; return the arguments that compare them."""
    files = dice.choice(TEXTS)
    mutated = dice.choice([*files])
    paths = {name: folder / f"{name}{dice.choice(SUFFIXES)}" for name in files}
    for name, lines in files.items():
        paths[name].write_bytes(mutate_lines(lines, dice) if name == mutated else "".join(lines).encode())
    gold = ("--gold", paths.pop("gold")) if "gold" in paths else ()
    return ["compare", *paths.values(), *gold, "--trials", "64", "--cluster", "none"]


def test_mutated_files_of_any_format_are_read_or_refused(tmp_path):
    statuses = set()
    for number in range(N_FILES):
        (folder := tmp_path / str(number)).mkdir()
        arguments = write_files(random.Random(f"files {number}"), folder)
        statuses.add(run_hostile_command(*arguments, folder=folder).returncode)
    assert statuses == {0, 2}


def test_mutated_results_are_shown_cited_and_reproduced_or_refused(tmp_path):
    (tmp_path / "scores.csv").write_text(SCORES)
    genuine = []
    for command, *options in RESULTS:
        trials = ("--trials", "200") if command == "compare" else ()
        written = call_sigdask(command, "scores.csv", *options, *trials, "-q", "--json", "-", cwd=tmp_path)
        genuine.append(json.loads(written.stdout))
    for number in range(N_RESULTS):
        dice = random.Random(f"results {number}")
        document = mutate_json(dice.choice(genuine), dice)
        (tmp_path / "r.json").write_text(json.dumps(document), errors="surrogatepass")
        for arguments in (("show", "r.json"), ("cite", "r.json"), ("reproduce", "r.json", "scores.csv", "-q")):
            run_hostile_command(*arguments, folder=tmp_path)
