"""Tests of the examples, which are copied whole, and of the demonstration."""

import os
import pty
import re
import subprocess
import sys
import zlib

import pytest
from command import call_sigdask
from terminals import run_in_terminal

from sigdask.cli.demo import NEXT, STEPS
from sigdask.examples import EXAMPLES, copy_example

RESULTS = {"table.tex", "report.html", "results.json"}


def run_demo_in_terminal(tmp_path):
    return run_in_terminal("demo", "--yes", "--keep", str(tmp_path / "kept"), columns=80)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_copied_with_its_source_and_licence(name, tmp_path):
    copied = copy_example(name, tmp_path / "here")
    assert {"SOURCE.md"} < set(copied)
    assert any(path.startswith("LICENSE") for path in copied)
    assert not any("__pycache__" in path for path in copied)


def test_examples_are_listed_and_copied_by_the_command(tmp_path):
    assert [line.split()[0] for line in call_sigdask("examples", cwd=tmp_path).stdout.splitlines()] == list(EXAMPLES)
    copied = call_sigdask("examples", "nightly", cwd=tmp_path)
    assert copied.stdout == "nightly: LICENSE.txt, SOURCE.md, logs/, night-2/, nightly.toml\n"
    assert (tmp_path / "nightly" / "logs" / "candidate").is_dir()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["examples", "parsing"], "no example 'parsing'; the examples are translation, retrieval"),
        (["examples", "translate"], "nightly; did you mean 'translation'?"),
        (["examples", "tagging", "samples"], "samples is the name of another example; copy one"),
        (["examples", "tagging", "full"], "full: exists already; name another folder, or remove it"),
        (["examples", "tagging", "full/file"], "full/file: exists already"),
        (
            ["examples", "tagging", "full/file/below"],
            "full/file/below: cannot be written (Not a directory); name a folder where you may write",
        ),
        (["demo", "--keep", "full"], "full: exists already"),
    ],
)
def test_what_cannot_be_copied_is_said(arguments, said, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    result = call_sigdask(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert said in result.stderr


def test_all_examples_together_are_small(tmp_path):
    for name in EXAMPLES:
        copy_example(name, tmp_path / name)
    files = (path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert sum(len(zlib.compress(data)) for data in files) < 500_000  # as in a wheel


@pytest.fixture(scope="module")
def piped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("empty")
    result = call_sigdask("demo", cwd=folder)
    assert result.returncode == 0
    assert not any(folder.iterdir())
    return result.stdout


def test_the_demonstration_runs_in_a_pipe_without_asking_and_says_what_comes_next(piped):
    assert all(f"\n$ {step['command']}\n" in piped for step in STEPS)
    assert piped.endswith(f"{NEXT}\n")


def test_the_numbers_that_the_demonstration_explains_are_those_printed(piped):
    _, labels, two, several, power, table, words = re.split(r"^\$ ", piped, flags=re.MULTILINE)
    assert "61 B-NUMBER" in labels
    assert re.search(r"0\.9129 .*0\.8878|91\.29.*88\.78", two)
    assert "0.0313" in two
    assert "+0.0027 to +0.0480" in two or "[0.3, 4.8]" in two or "[0.27, 4.80]" in two
    assert re.search(r"accuracy.*0\.624", two)
    letters = re.findall(r"(?:hmm|perceptron-[13]|frequent) +[\d.]+ +.*?([a-d]+)$", several, flags=re.MULTILINE)
    assert sorted(letters) == ["a", "b", "c", "d"]
    needed, found_power = (
        re.search(r"you need about ([\d,]+) items", power)[1],
        re.search(r"power is (0\.\d+)\s+±", power),
    )
    assert 2_800 < int(needed.replace(",", "")) < 3_500
    assert found_power
    assert re.search(r"\| hmm +\| \*\*91\.29\*\* a \|", table)
    assert "tested by approximate randomization" in words
    assert (
        0.5
        < float(
            re.findall(r"For the observed difference of [-+.\d]+, the power is (0\.\d+) ±", " ".join(power.split()))[0]
        )
        < 0.65
    )


@pytest.mark.slow
def test_the_demonstration_fits_a_terminal_and_leaves_its_files_where_it_is_told(tmp_path):
    terminal = run_demo_in_terminal(tmp_path)
    assert terminal.status == 0
    assert max(map(len, terminal.screen)) <= 80
    assert "Enter continues" not in terminal.written
    file_names = {path.name for path in (tmp_path / "kept").iterdir()}
    assert RESULTS | {"gold.conll", "hmm.conll", "SOURCE.md"} <= file_names


@pytest.mark.slow
def test_at_a_terminal_enter_goes_on(tmp_path):
    driver_end, program_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "sigdask", "demo"],
        cwd=tmp_path, stdin=program_end, stdout=program_end, stderr=program_end, start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )  # fmt: skip
    os.close(program_end)
    n_prompts, output = 0, b""
    while True:
        try:
            chunk = os.read(driver_end, 65536)
        except OSError:  # nobody holds the other side
            break
        if not chunk:
            break
        output += chunk
        while output.count(b"Enter continues, Ctrl-C ends ") > n_prompts:
            n_prompts += 1
            os.write(driver_end, b"\n")
    os.close(driver_end)
    assert process.wait() == 0
    assert n_prompts == len(STEPS)
