"""Genuine files of results of several commands, and what differs between two of them."""

import functools
import tempfile
from pathlib import Path

import numpy as np
from command import call_sigdask
from nights import write_plan

from sigdask.analysis.reproduce import TOLERANCE

SCORES = "scores.csv"
QUICK = ("--trials", "200", "--cluster", "none", "-q")
COMMANDS = {
    "family": ("compare", SCORES, "--method", "randomization", "-o", "r.json", "-o", "r.csv", "-o", "r.parquet"),
    "exact": ("compare", SCORES, "--method", "both", "--pair", "a", "b", "--interval", "inversion", "-o", "r.json"),
    "subsets": ("compare", SCORES, "--unit", "doc", "--by", "task", "--together", "-o", "r.json", "-o", "r.csv"),
    "intervals": ("compare", SCORES, "--tests", "all", "--interval", "bootstrap", "--resamples", "50", "-o", "r.json"),
    "tukey": ("compare", SCORES, "--adjust", "tukey", "--method", "randomization", "-o", "r.json"),
    "power": ("power", SCORES, "--difference", "0.1", "--json", "r.json"),
    "independence": ("independence", "labels.csv", "-m", "accuracy", "--json", "r.json"),
    "rankings": ("rankings", "pairs.csv", "--columns", "gold=true", "--json", "r.json"),
    "plan": ("report", "night.toml", "--json", "r.json"),
}
"""Of each kind of results, the command that writes them."""


@functools.cache
def build_results():
    """Return the data files, and the genuine files of results by command and ending."""
    dice, data, results = np.random.default_rng(5), {}, {}
    scores = [f"i{k},d{k // 3},{'pq'[k > 14]},{','.join(map(str, dice.random(3).round(2)))}" for k in range(30)]
    data[SCORES] = "\n".join(["item,doc,task,a,b,c", *scores]) + "\n"
    labels = [f"i{k},{','.join(dice.choice([*'xy'], 3))}" for k in range(30)]
    data["labels.csv"] = "\n".join(["item,gold,one,two", *labels]) + "\n"
    data["pairs.csv"] = "id,true,t,u\n" + "".join(f"{k},{k % 3 == 0},{k % 7 + k},{k * k % 11}.{k}\n" for k in range(20))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in data.items():
            (folder / file).write_text(text)
        (folder / SCORES).write_text(data[SCORES])
        call_sigdask("run", write_plan(folder, systems=3, trials=200), cwd=folder)
        data |= {file.name: file.read_text() for file in folder.glob("set*.csv")}
        for kind, arguments in COMMANDS.items():
            quick = QUICK if arguments[0] == "compare" else ("--cluster", "none", "-q") if kind != "plan" else ()
            result = call_sigdask(*arguments, *quick, cwd=folder)
            assert result.returncode == 0, result.stderr
            for file in folder.glob("r.*"):
                results[kind, file.suffix] = file.read_bytes()
                file.unlink()
    return data, results


def iter_changes(genuine, altered, path):
    """Yield the dotted keys under which two JSON values differ."""
    if isinstance(genuine, dict) and isinstance(altered, dict):
        for key in genuine.keys() | altered.keys():
            yield from iter_changes(genuine.get(key, ...), altered.get(key, ...), f"{path}.{key}")
    elif isinstance(genuine, list) and isinstance(altered, list) and len(genuine) == len(altered):
        for pair in zip(genuine, altered, strict=True):
            yield from iter_changes(*pair, path)
    elif genuine != altered and not (
        type(genuine) is type(altered) is float and abs(genuine - altered) <= TOLERANCE * abs(genuine)
    ):
        yield path
