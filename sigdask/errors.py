"""What can go wrong, as the user sees it: one root, and the exit status of each kind."""

from __future__ import annotations


class SigdaskError(Exception):
    """Root of every error that sigdask raises on purpose.

    The command line prints the message and leaves with `exit_status`; a traceback is a bug.
    """

    exit_status = 2


class InputError(SigdaskError):
    """Bad input or usage: names the file, line, id or option, what was found and what to do."""


class SeveralError(InputError):
    """Several things wrong with an input.

    Attributes
    ----------
    parts : tuple of str
        What they are, and then each; a line each.
    """

    def __init__(self, *parts: str) -> None:
        super().__init__("\n".join(parts))
        self.parts = parts


class UnfinishedError(SigdaskError):
    """The work stopped before its end (cluster lost, a task that kills its workers)."""

    exit_status = 3


class ClusterLostError(UnfinishedError):
    """The scheduler went away; what was counted and kept can be gone on from."""


class TaskError(UnfinishedError):
    """Some jobs cannot be counted, wherever they are tried; others can.

    Attributes
    ----------
    jobs : tuple of int
        Which.
    """

    def __init__(self, message: str, jobs: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.jobs = jobs


class HeldError(SigdaskError):
    """Another driver is at work on this store."""


class StoreError(UnfinishedError):
    """The store cannot be reached or written; what it has committed is intact.

    Attributes
    ----------
    lost : bool
        The connection was lost, so that trying again may help.
    """

    def __init__(self, message: str, *, lost: bool = False) -> None:
        super().__init__(message)
        self.lost = lost


def missing_extra(package: str, extra: str, purpose: str) -> InputError:
    """Return the error for an optional package that is not installed."""
    return InputError(f"{purpose} needs {package}, which is not installed: pip install 'sigdask[{extra}]'")
