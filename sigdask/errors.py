"""The errors that sigdask raises, with one base class, and the exit status of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from sigdask.text import redact, shorten_message


class SigdaskError(Exception):
    """Base class of the errors that sigdask raises on purpose.

    The command line prints the message and exits with `exit_status`. A traceback is a bug. Secrets in URLs are hidden
    in messages, and very long cells, names and paths are cut in the middle.

    Parameters
    ----------
    problem : str
        What is wrong. It may be left out if `expected` says it.
    file : path or str, optional
        The file.
    line : int, optional
        Line of the file, counted from 1.
    place : str, optional
        Place in the file if this is no line, such as "record 3".
    option : str, optional
        The option, as `sigdask.interface.spell` calls it.
    found : object, optional
        The wrong value.
    expected : str, optional
        What was expected in its place.
    remedy : str, optional
        What to do.

    Attributes
    ----------
    problem, file, line, place, option, found, expected, remedy
        As the parameters.

    Examples
    --------
    >>> raise InputError(file="a.csv", line=3, found="'x'", expected="a number", remedy="correct the cell")
    Traceback (most recent call last):
    sigdask.errors.InputError: a.csv, line 3: found 'x', expected a number; correct the cell
    """

    exit_status = 2

    def __init__(
        self,
        problem: object = "",
        *,
        file: object = None,
        line: int | None = None,
        place: str | None = None,
        option: str | None = None,
        found: object = None,
        expected: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem, self.file, self.line, self.place = str(problem), file, line, place
        self.option, self.found, self.expected, self.remedy = option, found, expected, remedy
        super().__init__(shorten_message(redact(self._compose())))

    def add_hint(self, hint: str) -> Self:
        """Add words in brackets to the message, and return the same error."""
        self.args = (f"{self} [{hint}]",)
        return self

    def _compose(self) -> str:
        """Return the message: where, what, and what to do."""
        where = ", ".join(str(part) for part in (self.file, self.line and f"line {self.line}", self.place) if part)
        value = "" if self.found is None else str(self.found)
        if self.option is not None:
            where = f"{self.option} = {value}" if value else self.option
            value = ""
        wanted = f"expected {self.expected}" if self.expected is not None else ""
        seen = f"found {value}" if value else ""
        what = self.problem or ", ".join(filter(None, (seen, wanted)))
        message = ": ".join(filter(None, (where, what)))
        return f"{message}; {self.remedy}" if self.remedy else message


class InputError(SigdaskError):
    """Bad input or usage. The message names the file, line, id or option, what was found and what to do."""


class RefusedFileError(InputError):
    """A file that no format reads (missing, binary, averages, a training curve). Another `--format` does not help."""


class SeveralError(InputError):
    """Several errors in one input.

    Attributes
    ----------
    parts : tuple of str
        A line that describes them, and a line for each.
    """

    def __init__(self, *parts: str) -> None:
        super().__init__("\n".join(parts))
        self.parts = tuple(shorten_message(redact(part)) for part in parts)


class ColumnsError(SeveralError):
    """Columns whose roles are not clear. The message lists them with their first values, and the ways to read them."""

    def __init__(self, problem: str, columns: Sequence[str], *, file: object, remedy: str) -> None:
        super().__init__(f"{file}: {problem}", *columns, remedy)
        self.problem, self.file, self.remedy = problem, file, remedy


class UnfinishedError(SigdaskError):
    """The work stopped early, for example because a cluster was lost or a task kills its workers."""

    exit_status = 3


class ClusterLostError(UnfinishedError):
    """The scheduler is lost. Stored counts are valid, and the next run continues from them."""


class TaskError(UnfinishedError):
    """Some jobs fail on every worker. Other jobs can be counted.

    Attributes
    ----------
    jobs : tuple of int
        Indices of these jobs.
    """

    def __init__(self, message: str, jobs: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.jobs = jobs


class HeldError(SigdaskError):
    """Another run uses this store."""


class StoreError(UnfinishedError):
    """The store cannot be reached or written. Committed counts are not lost.

    Attributes
    ----------
    lost : bool
        The connection was lost, so that trying again may help.
    """

    def __init__(self, message: str, *, lost: bool = False) -> None:
        super().__init__(message)
        self.lost = lost


class DamagedError(SigdaskError):
    """A store is damaged: bits have flipped, or rows were changed or are missing.

    Attributes
    ----------
    fault : str
        Description of the damage, or the database's message.
    aside : str
        New name of the file, if it was renamed.
    """

    def __init__(self, fault: str, where: str = "", aside: str = "") -> None:
        remedy = (
            f"It is now {aside}, and a run without it counts all again"
            if aside
            else "`sigdask run` moves a damaged file aside and counts again; restore a database from a backup, or name "
            "another with --store"
        )
        super().__init__(f"store {where}: damaged: {fault}. {remedy}")
        self.fault, self.where, self.aside = fault, where, aside

    def with_store(self, store: str) -> DamagedError:
        """Return the same error with the name of a store, unless it names one already."""
        return self if self.where else DamagedError(self.fault, store)


@contextmanager
def explain_missing(package: str, purpose: str) -> Iterator[None]:
    """Raise the error for an optional package if the block cannot import it."""
    try:
        yield
    except ImportError:
        raise InputError(f"{purpose} needs {package}, which is not installed: pip install '{package}'") from None


class MissingItemsError(InputError):
    """Some systems of a table lack items, or too few items are common. An option decides what is compared."""


class MissingColumnError(InputError):
    """A column that a table does not have.

    Attributes
    ----------
    name : str
        The column.
    """

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name
