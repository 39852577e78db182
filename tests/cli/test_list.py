"""Tests of `sigdask list`: metrics, formats, and examples, which are copied whole."""

import zlib

import pytest
from command import call_sigdask

from sigdask.examples import EXAMPLES, copy_example


@pytest.mark.parametrize(
    ("what", "entry"), [("metrics", "macro-f1"), ("formats", "responses"), ("examples", "tagging")]
)
def test_entries_are_listed(what, entry, tmp_path):
    lines = call_sigdask("list", what, cwd=tmp_path).stdout.splitlines()
    assert entry in [line.split()[0] for line in lines]


def test_an_example_is_copied_by_the_command(tmp_path):
    for target, options in (("nightly", ()), ("here", ("--to", "here"))):
        copied = call_sigdask("list", "examples", "nightly", *options, cwd=tmp_path)
        assert copied.stdout == f"{target}: LICENSE.txt, SOURCE.md, logs/, night-2/, nightly.toml\n"
        assert (tmp_path / target / "logs" / "candidate").is_dir()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["examples", "translate"], "translation"),
        (["examples", "tagging", "--to", "full"], "full"),
        (["examples", "tagging", "--to", "full/file"], "full/file"),
        (["examples", "tagging", "--to", "full/file/below"], "full/file/below"),
        (["metrics", "mean"], "examples"),
        (["examples", "--to", "here"], "examples"),
        ([], "Choose from: metrics, formats, examples (see sigdask list --help)"),
    ],
)
def test_what_cannot_be_copied_is_refused(arguments, named, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    result = call_sigdask("list", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert named in result.stderr


def test_examples_are_small_and_have_a_source_and_a_licence(tmp_path):
    for name in EXAMPLES:
        copied = copy_example(name, tmp_path / name)
        assert "SOURCE.md" in copied
        assert any(path.startswith("LICENSE") for path in copied)
        assert not any("__pycache__" in path for path in copied)
    files = (path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert sum(len(zlib.compress(data)) for data in files) < 500_000  # as in a wheel
