"""Examples: small sets of real outputs, Yeh's relations as a file, and scripts that generate more."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path

from sigdask.errors import InputError
from sigdask.text import suggest_name

EXAMPLES = {
    "translation": "five systems that translate messages into German: BLEU, chrF, by document",
    "retrieval": "four runs that look for functions of Python: TREC runs and judgements",
    "tagging": "four taggers of addresses: CoNLL, F1 of spans",
    "samples": "four language models of letters: logs of lm-evaluation-harness",
    "nightly": "two nights of logs and a plan with a gate, which passes and then fails",
}
"""Example files that can be copied, with descriptions."""


def copy_example(name: str, target: Path) -> list[str]:
    """Copy the files of an example into a folder that does not exist yet, or is empty.

    Parameters
    ----------
    name : str
        One of `EXAMPLES`.
    target : Path
        The folder.

    Returns
    -------
    list of str
        The files, by their paths in the folder.

    Raises
    ------
    InputError
        There is no such example, or the folder is not empty.
    """
    if name not in EXAMPLES:
        raise InputError(f"no example {name!r}; the examples are {', '.join(EXAMPLES)}{suggest_name(name, EXAMPLES)}")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target}: exists already", remedy="name another folder, or remove it")
    try:
        with as_file(files(__name__) / name) as folder:
            shutil.copytree(folder, target, copy_function=shutil.copyfile, dirs_exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{target}: cannot be written ({error.strerror or error})", remedy="name a folder where you may write"
        ) from None
    return sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())
