"""Tests that commands on hostile files end with status 0 or 2 and one message, and that no change of results is missed."""

import contextlib
import json
import random
import re

import pytest
from command import call_sigdask, limit_cpu
from fuzzing import TEXTS, mutate_json, mutate_lines
from fuzzing_results import build_results, iter_changes

SUFFIXES = ("", "", ".tsv", ".csv", ".json", ".jsonl", ".txt", ".eval", ".parquet", ".gz", ".xml", ".sgm")
N_FILES, N_RESULTS = 300, 30


def run_hostile_command(arguments, folder):
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mutated_files_of_any_format_are_read_or_refused(tmp_path):
    statuses = set()
    for number in range(N_FILES):
        (folder := tmp_path / str(number)).mkdir()
        arguments = write_files(random.Random(f"files {number}"), folder)
        statuses.add(run_hostile_command(arguments, folder).returncode)
    assert statuses == {0, 2}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_results_called_reproduced_differ_only_in_what_is_said_not_to_be_compared(tmp_path):
    data, results = build_results()
    genuine = [json.loads(content) for (_, ending), content in results.items() if ending == ".json"]
    for name, text in data.items():
        (tmp_path / name).write_text(text)
    for number in range(N_RESULTS):
        dice = random.Random(f"results {number}")
        document = dice.choice(genuine)
        mutated = mutate_json(document, dice)
        (tmp_path / "r.json").write_text(json.dumps(mutated), errors="surrogatepass")
        run_hostile_command(["cite", "r.json"], tmp_path)
        arguments = ["reproduce", "r.json", "scores.csv", "--cluster", "none", "-q"]
        output = run_hostile_command(arguments, tmp_path).stdout
        if output.startswith("reproduced: every"):
            remarks = " ".join(line for line in output.splitlines() if line.startswith("not compared"))
            changes = iter_changes(document, mutated, "")
            assert all(is_named(path, remarks) for path in changes), (number, output)


def is_named(path, remarks):
    """Return whether remarks name any part of a dotted path."""
    return any(re.search(rf"(^|[ ,.]){re.escape(part)}\b", remarks) for part in path.split(".") if part)
