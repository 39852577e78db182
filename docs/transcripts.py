"""Read commands and their output from Markdown pages, run them, and compare or update the output.

A page shows commands in fenced blocks of `console`, each on a line that begins with `$ ` (longer ones go on after a
backslash), followed by all that it prints. Blocks of one page are run in order, in one empty folder, as on a terminal
of 100 columns. Whatever fails fails the page, but for a command before `$ echo $?`.

What the reader need not see, or what differs each time, is said in so many words:

- A line `…` of an output stands for any number of lines.
- `<!-- varies: REGEX -->`: what matches is the same, whatever it is (times, dates).
- `<!-- files: PATH NEW=PATH ... -->`: files or folders of the project, put into the page's folder.
- `<!-- run: COMMAND -->`: run, but not shown.
- `$ cd FOLDER` holds for the commands after it.
- A fenced block of a language and `title="NAME"` is written as this file.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parent.parent
COLUMNS = 100
HOME = "/home/you/projects"
"""What a page shows of the folder where it runs; as long as its name, so that lines break where they did."""

DAY = "2026-05-05"
"""The day that a page shows for its runs, so that all its blocks agree when only some are renewed."""

ELLIPSIS = "…"
STATUS_COMMAND = "echo $?"

PROGRESS = re.compile(
    r"^sigdask: (starting|compiling|reading|extracting|preparing|counting|simulating|judging)\b.*\n", re.MULTILINE
)
"""How far the work is, which slower machines say and faster ones do not."""

PART = re.compile(
    r"^<!-- (?P<kind>files|varies|run): (?P<said>.*?) -->$"
    r"|^(?P<fence>```+|~~~+)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
TITLE = re.compile(r'\S+ .*\btitle="([^"]+)"')

CALL = re.compile(r"""sigdask (?P<arguments>(?:[^'"|<>&;`]|'[^']*'|"[^"]*")*)(?P<rest>[|>].*)?""", re.DOTALL)
"""A command of the program alone, and where its output goes."""

SCRIPT = re.compile(r"python (\w+\.py)")
"""A script of the page. It runs in this process, which has loaded what it imports."""

HIDDEN_WARNINGS = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
"""Warnings that Python does not show by default."""


class PageError(AssertionError):
    """A page shows other output than its commands print."""


@dataclass(frozen=True)
class Command:
    """A shell command and the output that a page shows for it."""

    text: str
    expected: tuple[str, ...]


def find_pages() -> list[Path]:
    """Return the pages that show commands."""
    candidates = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in candidates if re.search(r"^(```+|~~~+)console", page.read_text("utf-8"), re.MULTILINE)]


def find_notebooks() -> list[Path]:
    """Return the notebooks."""
    return sorted((ROOT / "docs").rglob("*.ipynb"))


def renew_notebook(text: str) -> str:
    """Return a notebook with what its cells print and what their last lines are, as plain text.

    All cells run in one namespace. No kernel is started, so a cell may use Python alone and no commands of IPython.
    """
    notebook, namespace = json.loads(text), {"__name__": "__main__"}
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            cell["execution_count"], cell["outputs"] = number, _run_cell("".join(cell["source"]), namespace, number)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _run_cell(source: str, namespace: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Return the outputs of a cell, as a notebook stores them."""
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(StringIO()) as printed:
        exec(compile(tree, f"cell {number}", "exec"), namespace)  # noqa: S102
        value = None if last is None else eval(compile(last, f"cell {number}", "eval"), namespace)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def check_page(page: str) -> None:
    """Run all commands of a page and compare their output.

    Raises
    ------
    PageError
        At the first whose output is another.
    """
    varies = _list_varying(page)
    for command, printed in _run_page(page):
        if not _matches(command.expected, printed, varies):
            expected = [f"$ {command.text}", *command.expected]
            lines = difflib.unified_diff(expected, [expected[0], *printed], "the page", "the program", lineterm="")
            raise PageError("\n".join(["python docs/make_pages.py writes it anew:", *lines]))


def renew_page(page: str) -> str:
    """Return a page with the current output of its commands, abridged as before."""
    varies = _list_varying(page)
    outputs = iter(
        [
            command.expected
            if _matches(command.expected, printed, varies)
            else _restore_varying(command.expected, _abridge(command.expected, printed), varies)
            for command, printed in _run_page(page)
        ]
    )

    def replace_block(match: re.Match[str]) -> str:
        if not _is_console(match):
            return match[0]
        lines = (line for c in _parse_commands(match["text"]) for line in (f"$ {c.text}", *next(outputs)))
        return "\n".join([match["fence"] + match["info"], *lines, match["fence"]])

    return PART.sub(replace_block, page)


def _run_page(page: str) -> Iterator[tuple[Command, list[str]]]:
    """Yield each shown command with the lines it prints now."""
    with TemporaryDirectory(prefix="page-", dir="/tmp") as folder:  # a name as long as HOME
        shell = _Shell(Path(folder), folder)
        for match in PART.finditer(page):
            if match["kind"] == "files":
                _copy_files(match["said"].split(), shell.folder)
            elif match["kind"] == "run":
                _check_status(match["said"], *shell.run(match["said"]))
            elif _is_console(match):
                yield from _run_block(_parse_commands(match["text"]), shell)
            elif match["info"] and (title := TITLE.match(match["info"])):
                file = shell.folder / title[1]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(match["text"], "utf-8")
                sys.modules.pop(file.stem, None)  # this page's is meant, not one of this name that was used before


def _run_block(commands: Sequence[Command], shell: _Shell) -> Iterator[tuple[Command, list[str]]]:
    status = 0
    for command, following in zip(commands, [*commands[1:], None], strict=True):
        if command.text == STATUS_COMMAND:
            yield command, [str(status)]
            continue
        status, output = shell.run(command.text)
        if following is None or following.text != STATUS_COMMAND:
            _check_status(command.text, status, output)
        yield command, [line.rstrip() for line in output.rstrip("\n").split("\n")] if output.strip() else []


def _check_status(command: str, status: int, output: str) -> None:
    if status:
        raise PageError(
            f"$ {command}\n{output}\nended with status {status}; where that is meant, `$ {STATUS_COMMAND}` follows it"
        )


def _copy_files(files: Iterable[str], folder: Path) -> None:
    for file in files:
        name, _, path = file.rpartition("=")
        target = folder / (name or path)
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / path).is_dir() else shutil.copy)(ROOT / path, target)


def _is_console(match: re.Match[str]) -> bool:
    return (match["info"] or "").split()[:1] == ["console"]


def _list_varying(page: str) -> list[str]:
    return [match["said"] for match in PART.finditer(page) if match["kind"] == "varies"]


def _parse_commands(block: str) -> list[Command]:
    """Parse the commands of a console block and their shown output."""
    texts, outputs = [], []
    for line in block.splitlines():
        if line.startswith("$ "):
            texts.append(line.removeprefix("$ "))
            outputs.append([])
        elif not texts:
            raise PageError(f"a block of console begins with a command, not with {line!r}")
        elif texts[-1].endswith("\\") and not outputs[-1]:
            texts[-1] += f"\n{line}"
        else:
            outputs[-1].append(line)
    return [Command(text, tuple(output)) for text, output in zip(texts, outputs, strict=True)]


SETTINGS = {
    "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC", "SIGDASK_CACHE": "off",
}  # fmt: skip


@contextmanager
def _use_settings() -> Iterator[None]:
    """Apply the settings of a page to a command that runs in this process."""
    environment = dict(os.environ)
    os.environ.update(SETTINGS)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)


@dataclass
class _Shell:
    """Runs the commands of a page, in the folder that the last `cd` chose."""

    folder: Path
    home: str

    def run(self, command: str) -> tuple[int, str]:
        """Run a command and return its exit status and output."""
        status, output = self._run_in_process(command)
        return status, PROGRESS.sub("", output).replace(self.home, HOME).replace(f"{datetime.now(UTC):%Y-%m-%d}", DAY)

    def _run_in_process(self, command: str) -> tuple[int, str]:
        """Run a plain sigdask command in this process, any other command in a shell."""
        if command.startswith("cd "):
            self.folder /= command.removeprefix("cd ")
            return 0, ""
        if match := SCRIPT.fullmatch(command):
            return self._run_script(match[1])
        if not (match := CALL.fullmatch(command)):
            return self._run_in_shell(command)
        from tests.command import call_sigdask

        words = self._run_in_shell(f"printf '%s\\0' {match['arguments']}")[1].split("\0")[:-1]
        with _use_settings():
            completed = call_sigdask(*words, cwd=self.folder, columns=None if match["rest"] else COLUMNS)
        if completed.returncode or not match["rest"]:
            return completed.returncode, completed.stdout + completed.stderr
        status, output = self._run_in_shell(f"cat {match['rest']}", completed.stdout)
        return status, completed.stderr + output

    def _run_script(self, name: str) -> tuple[int, str]:
        """Run a Python script as `python NAME` does."""
        output = StringIO()
        with (
            chdir(self.folder), _use_settings(), redirect_stdout(output), redirect_stderr(output),
            patch.multiple(sys, argv=[name], path=[str(self.folder), *sys.path]), warnings.catch_warnings(),
        ):  # fmt: skip
            warnings.simplefilter("default")
            for category in HIDDEN_WARNINGS:
                warnings.simplefilter("ignore", category)
            try:
                runpy.run_path(name, run_name="__main__")
            except Exception:  # noqa: BLE001  # as Python, whatever it is
                traceback.print_exc()
                return 1, output.getvalue()
        return 0, output.getvalue()

    def _run_in_shell(self, command: str, stdin: str = "") -> tuple[int, str]:
        """Run a command in a shell that finds this Python and this source tree first."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        completed = subprocess.run(
            ["bash", "-c", command],  # noqa: S607  # wherever it is
            cwd=self.folder, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            env={**os.environ, **SETTINGS, "PATH": path, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        return completed.returncode, completed.stdout


def _matches(expected: Sequence[str], printed: Sequence[str], varies: Iterable[str]) -> bool:
    """Return whether the output is as the page shows it."""
    pieces = [_mask_varying("\n".join(piece), varies) for piece in _split_pieces(expected)]
    # each piece is whole lines, and what lies between them is too
    pattern = r"(?:.*\n)*".join(f"{re.escape(piece)}\n" if piece else "" for piece in pieces)
    return re.fullmatch(pattern, _mask_varying("\n".join(printed), varies) + "\n" if printed else "") is not None


def _mask_varying(text: str, varies: Iterable[str]) -> str:
    """Replace the varying parts of a text."""
    for pattern in varies:
        text = re.sub(pattern, ELLIPSIS * 2, text)
    return text


def _restore_varying(expected: Iterable[str], printed: Iterable[str], varies: Sequence[str]) -> list[str]:
    """Return the printed lines, but old ones where only varying parts differ."""
    old_lines = {_mask_varying(line, varies): line for line in expected}
    return [old_lines.get(_mask_varying(line, varies), line) for line in printed]


def _split_pieces(expected: Iterable[str]) -> list[list[str]]:
    """Split shown output at the lines that stand for any number of lines."""
    pieces: list[list[str]] = [[]]
    for line in expected:
        if line == ELLIPSIS:
            pieces.append([])
        else:
            pieces[-1].append(line)
    return pieces


def _abridge(expected: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Abridge printed lines like the shown ones: as many lines from about where each piece began."""
    first, *between = _split_pieces(expected)
    if not between:
        return [*printed]
    *between, last = between
    abridged, rest = [*printed[: len(first)], ELLIPSIS], [*printed[len(first) :]]
    for piece in between:
        [start] = difflib.get_close_matches(piece[0], rest, n=1, cutoff=0.0)
        index = rest.index(start)
        abridged, rest = [*abridged, *rest[index : index + len(piece)], ELLIPSIS], rest[index + len(piece) :]
    return abridged + (rest[-len(last) :] if last else [])
