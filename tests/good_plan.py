"""A good plan that has every key, and how to write it as TOML."""

import datetime as dt
import json
import math
import tomllib

GOOD_PLAN = """
name = "nightly"
metrics = ["mean"]
pairs = { baseline = "base" }
alternative = "two-sided"
method = "auto"
trials = 5000
seed = 1
alpha = 0.05
second_run = true
adjust = "holm"
cluster = "none"
workers = 1
store = "night.sqlite"

[[test_set]]
name = "one"
systems = "runs/{system}.csv"
format = "auto"
unit = "topic"
by = "kind"
missing = "error"
columns = { item = "item" }
ignore = ["remark"]
align = "id"
metrics = ["mean"]
pairs = [["new", "base"]]
alternative = "less"
method = "randomization"
trials = 4096

[[test_set]]
name = "two"
systems = { base = "labels/base.csv", new = "labels/new.csv" }
gold = "labels/gold.csv"
format = "labels"
columns = { item = "id", gold = "gold", prediction = "label" }
map = { P = ["R"] }
metrics = ["accuracy", "macro-f1"]

[[test_set]]
name = "three"
systems = ["long.csv"]
format = "long"
columns = { system = "run", score = "value" }
missing = "pairwise"

[[test_set]]
name = "four"
systems = { base = "text/base.txt", new = "text/new.txt" }
format = "segments"
gold = "text/gold.txt"
references = ["text/gold2.txt"]
documents = "text/documents.txt"
unit = "document"
metrics = ["chrF"]

[report]
json = "night-{date}.json"
text = "night.txt"

[gate]
runs_per_year = 250
junit = "gate.xml"
json = "gate.json"
webhook = "https://127.0.0.1/hook"
when = "failed"
rules = [
    { rule = "not-worse", alpha = 0.01, baseline = "base", test_sets = ["one"] },
    { rule = "non-inferior", margin = 0.5, alpha = 0.05, metrics = ["mean"], baseline = "base" },
]
"""


def build_good_plan():
    return tomllib.loads(GOOD_PLAN)


def write_plan_inputs(folder):
    """Write the files that the good plan names."""
    files = {
        "runs/base.csv": "item,score,topic,kind,remark\na,0.5,t1,k,x\nb,0.7,t2,k,x\nc,0.1,t3,k,x\nd,0.25,t4,k,x\n",
        "runs/new.csv": "item,score,topic,kind,remark\na,0.6,t1,k,x\nb,0.6,t2,k,x\nc,0.2,t3,k,x\nd,0.35,t4,k,x\n",
        "labels/gold.csv": "id,gold\na,P\nb,Q\nc,R\nd,P\n",
        "labels/base.csv": "id,label\na,P\nb,P\nc,R\nd,Q\n",
        "labels/new.csv": "id,label\na,P\nb,Q\nc,Q\nd,P\n",
        "long.csv": "run,item,value\nbase,a,1\nbase,b,2\nnew,a,2\nnew,b,1\n",
        "text/gold.txt": "the cat sat\non the mat\n",
        "text/gold2.txt": "a cat sat\non a mat\n",
        "text/base.txt": "the cat sits\non the mat\n",
        "text/new.txt": "cat sat\non mats\n",
        "text/documents.txt": "d1\nd2\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def format_toml(value):  # noqa: PLR0911  # one a type
    """Return a value as TOML, with inline tables, so that every plan is a few long lines."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {format_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(format_toml(v) for v in value) + "]"
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value)


def format_plan(plan):
    return "".join(f"{json.dumps(key)} = {format_toml(value)}\n" for key, value in plan.items())


def change_key(path, value=None):
    """Return the good plan with another value at one path, or without its key."""
    plan = inner = build_good_plan()
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    if value is None:
        del inner[path[-1]]
    return plan


def iter_key_paths(value, path=()):
    """Yield the path of every key of the good plan."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        key_path = (*path, key)
        if isinstance(key, str):
            yield key_path
        if isinstance(inner, (dict, list)) and key not in {"systems", "map", "pairs"}:
            yield from iter_key_paths(inner, key_path)
