"""Hostile cluster files, templates of web hooks, large plans and folders of metrics' scores, from a fixed seed."""

import random
import tomllib
from pathlib import Path

from fuzzing import TOKENS, draw_plan_value, mutate_bytes, mutate_json, mutate_lines
from good_plan import format_toml

SCORES = "item,a,b\n1,0,1\n2,1,1\n3,1,0\n"
CLUSTERS = (
    {"class": "local", "workers": 1, "wait": "1 min", "security": "tls", "options": {"threads_per_worker": 1}},
    {"class": "address", "options": {"address": "tls://127.0.0.1:9"}, "security": {"ca": "tls"}, "wait": 1},
    {"class": "json:loads", "minimum": 0, "maximum": 2, "expose": True, "options": {"s": "[]"}},
    {
        "class": "slurm",
        "security": {"ca": "a", "cert": "b", "key": "c"},
        "submit": {"allocation": "one", "walltime": "01:00:00", "nodes": 2, "log": "x", "restarts": 2},
    },
    *(tomllib.loads(path.read_text()) for path in sorted((Path(__file__).parents[1] / "deploy").glob("*/*.toml"))
      if "class" in path.read_text()),
)  # fmt: skip


def write_cluster_command(number, folder):
    """Write a mutated cluster file, and return the arguments that check a plan or compare systems with it."""
    dice = random.Random(f"clusters {number}")
    cluster = mutate_table(dice.choice(CLUSTERS), dice, number)
    text = format_table(cluster)
    content = (
        mutate_lines(text.splitlines(keepends=True), dice)
        if dice.random() < 0.3
        else text.encode(errors="surrogateescape")
    )
    (folder / "cluster.toml").write_bytes(content)
    (folder / "scores.csv").write_text(SCORES)
    (folder / "plan.toml").write_text(
        'name = "x"\ntrials = 64\ncluster = {file = "cluster.toml"}\n[[test_set]]\nname = "one"\nsystems = ["scores.csv"]\n'
    )
    starts = dice.random() < 0.2 and not {"ssh", "address", "kubernetes"} & {cluster.get("class")}
    return (
        ["compare", "scores.csv", "--trials", "64", "--cluster", "cluster.toml"] if starts else ["check", "plan.toml"]
    )


def mutate_table(table, dice, number):
    """Return a table of TOML with up to three keys changed, added or left out."""
    table = dict(table)
    for _ in range(dice.choice((1, 1, 2, 3))):
        key = dice.choice([*table, "options", "expose", "security", "workers", "new", ""]) if table else "class"
        choice = dice.random()
        if isinstance(table.get(key), dict) and table[key] and choice < 0.7:
            table[key] = mutate_table(table[key], dice, number)
        elif choice < 0.15:
            table.pop(key, None)
        else:
            value = mutate_json(table.get(key), dice) if choice < 0.5 else draw_plan_value(dice, number)
            table[key] = "x" if value is None else value
    return table


def format_table(table):
    """Return a table as TOML; what TOML does not know is left out."""
    return "".join(f"{format_toml(key)} = {format_toml(value)}\n" for key, value in table.items()).replace(
        "None", '"x"'
    )


def write_large_plan_command(number, folder):
    """Write a plan of hundreds of test sets, or too many, with a mutated part, and return the arguments that check it."""
    dice = random.Random(f"large plans {number}")
    (folder / "scores.csv").write_text(SCORES)
    lines = ['name = "x"\n', "trials = 64\n", 'metrics = ["mean"]\n']
    size = 100_001 if number == 3 else 500
    values = {"name": '"set{}"', "systems": '["scores.csv"]', "trials": "64", "by": '"item"', "pairs": '[["a", "b"]]'}
    keys = ["name", "systems", *dice.sample(["trials", "by", "pairs"], dice.randint(0, 1))]
    for k in range(size):
        lines += ["[[test_set]]\n", *(f"{key} = {values[key].format(k)}\n" for key in keys)]
    everywhere = dice.random() < 0.3
    for k in range(4, len(lines), len(keys) + 1) if everywhere else [dice.randrange(len(lines))]:
        lines[k] = (
            f"{dice.choice([*values, 'nome'])} = {format_toml(dice.choice((*TOKENS[:30], number, True, [], {}, [1])))}\n"
        )
    (folder / "plan.toml").write_bytes("".join(lines).encode(errors="surrogateescape"))
    return ["check", "plan.toml"]


def write_metrics_folder_command(number, folder):
    """Write a mutated folder of metrics' scores as WMT has it, and return the arguments that compare its systems."""
    dice = random.Random(f"metrics folders {number}")
    files = {
        f"{kind}/en-de{middle}.seg.score": [f"{system}\t{dice.choice((0, 0.5, -1))}\n" for system in ("A", "B", "C") for _ in range(4)]
        for kind, middle in (("human-scores", ".mqm"), ("metric-scores", "/BLEU-refA"), ("metric-scores", "/COMET-refA"))
    } | {
        "human-scores/en-de.mqm.sys.score": [f"{system}\t{dice.random()}\n" for system in ("A", "B", "C")],
        "documents/en-de.docs": [f"news\td{k // 2}\n" for k in range(4)],
        "system-outputs/en-de/A.txt": [f"line {k}\n" for k in range(4)],
    }  # fmt: skip
    for name in dice.sample([*files], dice.choice((1, 1, 2))):
        lines, choice = files.pop(name), dice.random()
        if choice < 0.1:
            continue
        new = (
            name
            if choice < 0.8
            else name.replace(
                dice.choice(("en-de", "mqm", ".seg", "/", "A")), dice.choice(("x", ".", "..", "é", "a b", "zh-en"))
            )
        )
        files[new.strip("/")] = mutate_lines(lines, dice)
    top = folder / dice.choice(("wmt22", "mt-metrics-eval-v2/wmt22", "a b"))
    for name, lines in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        if not (top / name).is_dir():
            (top / name).write_bytes(lines if isinstance(lines, bytes) else "".join(lines).encode())
    options = dice.choice(((), (), ("--unit", "document"), ("--by", "domain"), ("--metric", "BLEU-refA"), ("--metric", "none"), ("--format", "mt-metrics-eval:pair=en-de,scores=mqm+BLEU-refA")))  # fmt: skip
    return ["compare", top, *options, "--trials", "64", "--cluster", "none"]


ANSWER_LINES = (
    *("HTTP/1.1 200 OK", "HTTP/1.1 204 No Content", "HTTP/1.0 500 x", "HTTP/1.1 302 Found", "HTTP/9.9 999", "HTTP/1.1 100 Continue"),
    *("Content-Length: 5", "Content-Length: -1", "Content-Length: 99999999999999999999", "Transfer-Encoding: chunked", "é: ü"),
    *("Content-Encoding: gzip", "Location: /", "Location: http://[", "Location: //h", "Location: file:///etc/passwd", "Location:"),
    *("Connection: close", "Connection: upgrade", "Set-Cookie: a=b", "X: " + "x" * 70_000, " folded", ":", "", "5", "zz", "hello"),
)  # fmt: skip


def draw_answer(dice):
    """Return the parts of what a server of web hooks may send: lines of HTTP in any order, some of them damaged."""
    lines = [
        line + dice.choice(("\r\n", "\r\n", "\r\n", "\n", "\r"))
        for line in dice.choices(ANSWER_LINES, k=dice.randint(0, 6))
    ]
    if dice.random() < 0.7:
        lines.insert(0, dice.choice(ANSWER_LINES[:6]) + "\r\n")
    if dice.random() < 0.7:
        lines += ["\r\n", dice.choice(TOKENS)]
    return [mutate_bytes("".join(lines).encode(errors="surrogateescape"), dice, 0.3)]
