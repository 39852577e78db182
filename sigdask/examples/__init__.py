"""Examples: small sets of real outputs, Yeh's relations as a file, and scripts that make more on the spot."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path

from sigdask.errors import InputError

SETS = {
    "translation": "five systems that translate messages into German: BLEU, chrF, by document",
    "retrieval": "four runs that look for functions of Python: TREC runs and judgements",
    "tagging": "four taggers of addresses: CoNLL, F1 of spans",
    "samples": "four language models of letters: logs of lm-evaluation-harness",
    "nightly": "two nights of logs and a plan with a gate, which passes and then fails",
}
"""What can be copied, and what it is."""


def copy(name: str, to: Path) -> list[str]:
    """Copy the files of an example into a folder that does not exist yet, or is empty.

    Parameters
    ----------
    name : str
        One of `SETS`.
    to : Path
        The folder.

    Returns
    -------
    list of str
        The files, by their paths in the folder.

    Raises
    ------
    InputError
        Where there is no such example, or something in the folder.
    """
    if name not in SETS:
        raise InputError(f"{name!r}: there is no such example; there are {', '.join(SETS)}")
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise InputError(f"{to}: exists already; name another folder, or remove it")
    try:
        with as_file(files(__name__) / name) as folder:
            shutil.copytree(folder, to, copy_function=shutil.copyfile, dirs_exist_ok=True)
    except OSError as error:
        raise InputError(f"{to}: cannot be written ({error.strerror or error})") from None
    return sorted(str(path.relative_to(to)) for path in to.rglob("*") if path.is_file())
