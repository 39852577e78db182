"""Commands in Markdown and what they print: read from a page, run, compared, written anew.

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

import difflib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
COLUMNS = 100
HOME = "/home/you/projects"
"""What a page shows of the folder where it runs; as long as its name, so that lines break where they did."""

ANYTHING = "…"
STATUS = "echo $?"

PASSING = re.compile(
    r"^sigdask: (starting|reading|extracting|preparing|counting|simulating|judging)\b.*\n", re.MULTILINE
)
"""How far the work is, which slower machines say and faster ones do not."""

PARTS = re.compile(
    r"^<!-- (?P<kind>files|varies|run): (?P<said>.*?) -->$"
    r"|^(?P<fence>```+|~~~+)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
TITLE = re.compile(r'\S+ .*\btitle="([^"]+)"')

CALL = re.compile(r"""sigdask (?P<arguments>(?:[^'"|<>&;`]|'[^']*'|"[^"]*")*)(?P<rest>[|>].*)?""", re.DOTALL)
"""A command of the program alone, and where its output goes."""


class PageError(AssertionError):
    """A page shows what is not so."""


@dataclass(frozen=True)
class Command:
    """A command, as a shell takes it, and the output that a page shows."""

    text: str
    shown: tuple[str, ...]


def pages() -> list[Path]:
    """Return the pages that show commands."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if re.search(r"^(```+|~~~+)console", page.read_text("utf-8"), re.MULTILINE)]


def check(page: str) -> None:
    """Run all commands of a page.

    Raises
    ------
    PageError
        At the first whose output is another.
    """
    varies = _varying(page)
    for command, printed in _run(page):
        if not _fits(command.shown, printed, varies):
            shown = [f"$ {command.text}", *command.shown]
            lines = difflib.unified_diff(shown, [shown[0], *printed], "the page", "the program", lineterm="")
            raise PageError("\n".join(["python docs/make_pages.py writes it anew:", *lines]))


def renewed(page: str) -> str:
    """Return a page with what its commands print now, as much of it as was shown."""
    varies = _varying(page)
    outputs = iter(
        [
            command.shown
            if _fits(command.shown, printed, varies)
            else _as_it_was(command.shown, _as_much(command.shown, printed), varies)
            for command, printed in _run(page)
        ]
    )

    def block(part: re.Match[str]) -> str:
        if not _is_console(part):
            return part[0]
        lines = (line for c in _commands(part["text"]) for line in (f"$ {c.text}", *next(outputs)))
        return "\n".join([part["fence"] + part["info"], *lines, part["fence"]])

    return PARTS.sub(block, page)


def _run(page: str) -> Iterator[tuple[Command, list[str]]]:
    """Yield each command that is shown, and the lines that it prints now."""
    with TemporaryDirectory(prefix="page-", dir="/tmp") as folder:  # a name as long as HOME
        shell = _Shell(Path(folder), folder)
        for part in PARTS.finditer(page):
            if part["kind"] == "files":
                _put(part["said"].split(), shell.folder)
            elif part["kind"] == "run":
                _succeeds(part["said"], *shell.ran(part["said"]))
            elif _is_console(part):
                yield from _block(_commands(part["text"]), shell)
            elif part["info"] and (title := TITLE.match(part["info"])):
                file = shell.folder / title[1]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(part["text"], "utf-8")
                sys.modules.pop(file.stem, None)  # this page's is meant, not one of this name that was used before


def _block(commands: Sequence[Command], shell: _Shell) -> Iterator[tuple[Command, list[str]]]:
    status = 0
    for command, after in zip(commands, [*commands[1:], None], strict=True):
        if command.text == STATUS:
            yield command, [str(status)]
            continue
        status, output = shell.ran(command.text)
        if after is None or after.text != STATUS:
            _succeeds(command.text, status, output)
        yield command, [line.rstrip() for line in output.rstrip("\n").split("\n")] if output.strip() else []


def _succeeds(command: str, status: int, output: str) -> None:
    if status:
        raise PageError(
            f"$ {command}\n{output}\nended with status {status}; where that is meant, `$ {STATUS}` follows it"
        )


def _put(files: Iterable[str], folder: Path) -> None:
    for file in files:
        name, _, path = file.rpartition("=")
        to = folder / (name or path)
        to.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / path).is_dir() else shutil.copy)(ROOT / path, to)


def _is_console(part: re.Match[str]) -> bool:
    return (part["info"] or "").split()[:1] == ["console"]


def _varying(page: str) -> list[str]:
    return [part["said"] for part in PARTS.finditer(page) if part["kind"] == "varies"]


def _commands(block: str) -> list[Command]:
    """Return the commands of a block."""
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
def _settings() -> Iterator[None]:
    """Give a command that runs in this process the settings of a page."""
    before = dict(os.environ)
    os.environ.update(SETTINGS)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@dataclass
class _Shell:
    """What runs the commands of a page, where the last `cd` led."""

    folder: Path
    home: str

    def ran(self, command: str) -> tuple[int, str]:
        """Run a command and return its status and all that it wrote."""
        status, output = self._in_its_place(command)
        return status, PASSING.sub("", output).replace(self.home, HOME)

    def _in_its_place(self, command: str) -> tuple[int, str]:
        """Run a command of the program alone in this process, others in a shell."""
        if command.startswith("cd "):
            self.folder /= command.removeprefix("cd ")
            return 0, ""
        if not (found := CALL.fullmatch(command)):
            return self._apart(command)
        from tests.command import called

        words = self._apart(f"printf '%s\\0' {found['arguments']}")[1].split("\0")[:-1]
        with _settings():
            ended = called(*words, cwd=self.folder, columns=None if found["rest"] else COLUMNS)
        if ended.returncode or not found["rest"]:
            return ended.returncode, ended.stdout + ended.stderr
        status, output = self._apart(f"cat {found['rest']}", ended.stdout)
        return status, ended.stderr + output

    def _apart(self, command: str, given: str = "") -> tuple[int, str]:
        """Run a command by a shell that finds this Python and this tree first."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        ended = subprocess.run(
            ["bash", "-c", command],  # noqa: S607  # wherever it is
            cwd=self.folder, input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            env={**os.environ, **SETTINGS, "PATH": path, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        return ended.returncode, ended.stdout


def _fits(shown: Sequence[str], printed: Sequence[str], varies: Iterable[str]) -> bool:
    """Say whether an output is as shown."""
    pieces = [_steady("\n".join(piece), varies) for piece in _pieces(shown)]
    # each piece is whole lines, and what lies between them is too
    pattern = r"(?:.*\n)*".join(f"{re.escape(piece)}\n" if piece else "" for piece in pieces)
    return re.fullmatch(pattern, _steady("\n".join(printed), varies) + "\n" if printed else "") is not None


def _steady(text: str, varies: Iterable[str]) -> str:
    """Return a text without what varies."""
    for pattern in varies:
        text = re.sub(pattern, ANYTHING * 2, text)
    return text


def _as_it_was(shown: Iterable[str], printed: Iterable[str], varies: Sequence[str]) -> list[str]:
    """Return an output whose lines that are new in nothing but what varies are as they were."""
    before = {_steady(line, varies): line for line in shown}
    return [before.get(_steady(line, varies), line) for line in printed]


def _pieces(shown: Iterable[str]) -> list[list[str]]:
    """Return what stands between the lines that stand for anything."""
    pieces: list[list[str]] = [[]]
    for line in shown:
        if line == ANYTHING:
            pieces.append([])
        else:
            pieces[-1].append(line)
    return pieces


def _as_much(shown: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Return an output that leaves out what was left out: as many lines from where each piece began, or about there."""
    first, *between = _pieces(shown)
    if not between:
        return [*printed]
    *between, last = between
    made, rest = [*printed[: len(first)], ANYTHING], [*printed[len(first) :]]
    for piece in between:
        [start] = difflib.get_close_matches(piece[0], rest, n=1, cutoff=0.0)
        at = rest.index(start)
        made, rest = [*made, *rest[at : at + len(piece)], ANYTHING], rest[at + len(piece) :]
    return made + (rest[-len(last) :] if last else [])
