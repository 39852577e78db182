"""Hostile files of results from a fixed seed: genuine ones of several commands, mutated, for `reproduce` and `cite`."""

import functools
import gzip
import json
import random
import re
import tempfile
from pathlib import Path

import numpy as np
from command import call_sigdask
from fuzzing import MAX_BYTES, TOKENS, mutate_json
from nights import write_plan

from sigdask.analysis.reproduce import TOLERANCE

SCORES = "scores.csv"
QUICK = ("--trials", "200", "--cluster", "none", "-q")
COMMANDS = {
    "family": ("compare", SCORES, "--method", "randomization", "-o", "r.json", "-o", "r.csv", "-o", "r.parquet"),
    "exact": ("compare", SCORES, "--method", "both", "--pair", "a", "b", "--interval", "inversion", "-o", "r.json"),
    "subsets": ("compare", SCORES, "--unit", "doc", "--by", "part", "--together", "-o", "r.json", "-o", "r.csv"),
    "intervals": ("compare", SCORES, "--tests", "all", "--interval", "bootstrap", "--resamples", "50", "-o", "r.json"),
    "tukey": ("compare", SCORES, "--adjust", "tukey", "--method", "randomization", "-o", "r.json"),
    "power": ("power", SCORES, "--difference", "0.1", "--json", "r.json"),
    "independence": ("independence", "labels.csv", "-m", "accuracy", "--json", "r.json"),
    "rankings": ("rankings", "pairs.csv", "--gold-column", "true", "--json", "r.json"),
    "plan": ("report", "night.toml", "--json", "r.json"),
}
"""Of each kind of results, the command that writes them."""

VALUES = (
    *(None, True, False, -1, 0, 1, 0.5, 7.25, 2**31, 2**63, 10**400, "", "x", "1", "C", [], {}, [[]], [None], {"": None}),
    *(float("nan"), float("inf"), -float("inf"), "é" * 9, "\ud800", "\x1b[2J\0", "Ã©", "x" * 5000, "both", "exact", "none"),
    *([{}], {"column": "part"}, {"value": []}, ["a", "b"], [0.5, 0.25], {"max-t": "x", "holm": 2}, [["a"] * 3] * 3),
)  # fmt: skip
SIGNATURE_VALUES = (
    *("", "x", "-1", "0", "1", "nan", "inf", "1e999", "9" * 30, "9" * 5000, "0.5", "١", "1_0", " 1", "%", "%ff", "%00"),
    *("none", "less", "exact", "both", "trials", "limits", "holm"),
    *("max-t", "tukey", "doc", "part", "item", "mean", "f1", "BLEU", "json:loads", "os:system", "a.b:c", "f:beta=0"),
)  # fmt: skip


@functools.cache
def build_results():
    """Return the data files, and the genuine files of results by command and ending."""
    dice, data, results = np.random.default_rng(5), {}, {}
    scores = [f"i{k},d{k // 3},{'pq'[k > 14]},{','.join(map(str, dice.random(3).round(2)))}" for k in range(30)]
    data[SCORES] = "\n".join(["item,doc,part,a,b,c", *scores]) + "\n"
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


def mutate_signature(text, dice):
    """Return the text of a signature with something else in it, that of another program, or none."""
    parts = text.split("|")
    k = dice.randrange(len(parts))
    key = parts[k].partition(":")[0]
    choice = dice.random()
    if choice < 0.6:
        parts[k] = f"{key}:{dice.choice(SIGNATURE_VALUES)}"
    elif choice < 0.7:
        del parts[k]
    elif choice < 0.9:
        keys = (
            "metric.tok",
            "metric.code",
            "stop",
            "h",
            "epsilon",
            "alpha",
            "limit",
            "by",
            "value",
            "adj",
            "nt",
            "new",
        )
        parts.insert(k, f"{dice.choice(keys)}:{dice.choice(SIGNATURE_VALUES)}")
    else:
        return dice.choice(("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.4.0", text * 2, "", "test:ar|", "|" * 9999, text[:40]))  # fmt: skip
    return "|".join(parts)


def mutate_document(document, dice):
    """Return a document of results with up to three structural mutations."""
    document = json.loads(json.dumps(document))
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        paths = list(iter_paths(document))
        signed = [path for path in paths if path[-1] == "test_signature"]
        path = dice.choice(signed) if signed and dice.random() < 0.2 else dice.choice(paths) if paths else None
        if path is None:
            return dice.choice(VALUES)
        place = functools.reduce(lambda value, key: value[key], path[:-1], document)
        key, choice = path[-1], dice.random()
        if path in signed and isinstance(place[key], str):
            place[key] = mutate_signature(place[key], dice)
        elif choice < 0.15:
            del place[key]
        elif choice < 0.2 and isinstance(place, list):
            place.insert(key, place[key])
        elif choice < 0.25 and isinstance(place, dict):
            place[dice.choice(("new", "", "é", key.upper()))] = place[key]
        elif choice < 0.35:
            place[key] = mutate_json(place[key], dice)
        else:
            place[key] = dice.choice(VALUES)
    if isinstance(document, dict) and dice.random() < 0.1:
        document["schema_version"] = dice.choice((0, 2, 10**30, -1, "1", 1.5, None))
    return document


def iter_paths(value, path=()):
    """Yield the path of every key and index of a JSON value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(inner, (dict, list)):
            yield from iter_paths(inner, (*path, key))


def mutate_text(text, dice):
    """Return the text of a file of results with something else in it: keys twice, tokens, cells, deep lists."""
    words = [*re.finditer(r"[^\s,:{}\[\]]+", text)]
    for _ in range(dice.choice((1, 1, 3))):
        word = dice.choice(words) if words else None
        start, end = word.span() if word else (0, 0)
        new = dice.choice((*TOKENS, "1e999", "-1e999", "NaN", "Infinity", "-0", "0.5", "1", '"x"', "[[[]]]", '{"a":' * 3000, '"é', "\ud800", '"p_value": 0.5, "p_value"', '"seed": 1, "seed": 2, "seed"'))  # fmt: skip
        text = text[:start] + new + text[end:]
        words = [w for w in words if w.end() < start]
    return text


def encode_text(text, dice):
    """Return the bytes of a text, as editors and transfers may leave them."""
    content = text.encode(errors="surrogatepass")
    return dice.choice(
        (
            content,
            b"\xef\xbb\xbf" + content,
            content.replace(b"\n", b"\r\n"),
            text.encode(dice.choice(("utf-16", "utf-32", "cp500")), errors="replace"),
            content[: dice.randint(0, len(content))],
            gzip.compress(content),
            content.replace(b"i", "Ã©\xff".encode("latin-1"), 3),
        )
    )


def write_results_command(number, folder):
    """Write a mutated file of results with its data, and return the arguments of a command that reads it."""
    dice = random.Random(f"results {number}")
    data, results = build_results()
    (kind, ending), content = dice.choice([*results.items()])
    for name, text in data.items():
        (folder / name).write_text(text)
    choice = dice.random()
    if ending == ".json" and choice < 0.75:
        document = mutate_document(json.loads(content), dice)
        if choice < 0.03 and isinstance(document, dict) and isinstance(document.get("results"), list):
            document["results"] *= dice.choice((2, 50, 3000))
        text = "\n".join(map(json.dumps, document.get("results", ()))) if choice > 0.72 and isinstance(document, dict) and isinstance(document.get("results"), list) else json.dumps(document, ensure_ascii=dice.random() < 0.5)  # fmt: skip
        content = encode_text(text, dice) if dice.random() < 0.2 else text.encode(errors="surrogatepass")
    elif ending != ".parquet":
        content = encode_text(mutate_text(content.decode(), dice) if choice < 0.95 else content.decode(), dice)
    elif choice < 0.9:
        content = bytearray(content)
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path = folder / f"results{dice.choice((*[ending] * 20, '.json', '.csv', '.jsonl', '.gz', ''))}"
    path.write_bytes(content[: 4 * MAX_BYTES])
    (folder / "kind").write_text(f"{kind} {ending}")
    target = path.name
    if dice.random() < 0.08 and ending == ".json" and (signed := json.loads(results["family", ".json"])["results"]):
        target = mutate_signature(signed[0]["test_signature"], dice).replace("\0", "")
    command = dice.random()
    if command < 0.45:
        return ["cite", target, *dice.choice(((), ("--bibtex",), ("--text",), ("--latex",), ("--latex", "--bibtex")))]
    if command < 0.5:
        return ["report", target]
    options = dice.choice(((), (), (), (), ("--expect", "0.05"), ("--expect", "nan"), ("--expect", "1e-99"), ("--name", ""), ("--name", "set0")))  # fmt: skip
    file = "set0.csv" if kind == "plan" else dice.choice((SCORES,) * 9 + ("labels.csv", "none"))
    return ["reproduce", target, file, *options, "--cluster", "none", "-q"]


def list_hidden_changes(folder, output):
    """Return the paths of what differs from the genuine file in one called reproduced, and is not said to be left out."""
    files = [path for path in folder.glob("results*") if path.suffix == ".json"]
    kind, ending = (folder / "kind").read_text().split()
    if ending != ".json" or not files or not output.startswith("reproduced: every"):
        return []
    genuine = json.loads(build_results()[1][kind, ending])
    altered = json.loads(files[0].read_text("utf-8-sig"))
    unsaid = " ".join(line for line in output.splitlines() if line.startswith("not compared"))
    changes = list(_iter_changes(genuine, altered, ""))
    return [path for path in changes if not any(re.search(rf"(^|[ ,.]){re.escape(part)}\b", unsaid) for part in path.split(".") if part)]  # fmt: skip


def _iter_changes(genuine, altered, path):
    """Yield the dotted keys under which two JSON values differ."""
    if isinstance(genuine, dict) and isinstance(altered, dict):
        for key in genuine.keys() | altered.keys():
            yield from _iter_changes(genuine.get(key, ...), altered.get(key, ...), f"{path}.{key}")
    elif isinstance(genuine, list) and isinstance(altered, list) and len(genuine) == len(altered):
        for pair in zip(genuine, altered, strict=True):
            yield from _iter_changes(*pair, path)
    elif genuine != altered and not (
        type(genuine) is type(altered) is float and abs(genuine - altered) <= TOLERANCE * abs(genuine)
    ):
        yield path
