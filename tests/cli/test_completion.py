"""Tests of shell completion, in a real bash with the script that it is given."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

BASH = shutil.which("bash")
SIGDASK = Path(sys.executable).with_name("sigdask")

pytestmark = pytest.mark.skipif(BASH is None or not SIGDASK.exists(), reason="needs bash and an installed sigdask")


def list_completions(*words, cwd):
    script = """
        eval "$(_SIGDASK_COMPLETE=bash_source sigdask)"
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        _sigdask_completion sigdask "${COMP_WORDS[-1]}" 2>/dev/null
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    path = f"{SIGDASK.parent}{os.pathsep}{os.environ['PATH']}"
    command = [BASH, "-c", script, "bash", *words]
    result = subprocess.run(
        command, cwd=cwd, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True
    )
    assert "internal error" not in result.stderr
    return result.stdout.split()


@pytest.mark.parametrize(
    ("words", "among"),
    [
        (("sigdask", "com"), ["compare"]),
        (("sigdask", "compare", "--adj"), ["--adjust"]),
        (("sigdask", "compare", "--adjust", "ho"), ["holm"]),
        (("sigdask", "list", "met"), ["metrics"]),
    ],
)
@pytest.mark.slow
def test_commands_options_and_their_choices_are_offered(words, among, tmp_path):
    assert list_completions(*words, cwd=tmp_path) == among


def test_every_file_that_a_command_takes_is_left_to_the_shell():
    from command import COMMANDS

    from sigdask.cli.declare import FILE_METAVARS

    every = [p for command in COMMANDS.values() for p in command.params]
    params = [p for p in every if FILE_METAVARS.search(p.metavar or "")]
    assert {p.name for p in params} >= {"systems", "gold", "output", "plan"}
    for p in params:
        assert isinstance(p.type, click.Path), (p.name, p.metavar)
        [item] = p.type.shell_complete(None, p, "out/sys")
        assert (item.value, item.type) == ("out/sys", "dir" if p.name == "figures" else "file")
