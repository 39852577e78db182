"""Annotate a job of GitHub Actions with the verdict of a plan's gate; write it to the summary and to the pull request.

python publish.py RESULTS.json PLAN.toml LOG, with COMMENT_ON (number of the pull request or empty), TOKEN and GitHub's
own variables. RESULTS.json.txt is the report for the summary. Each further run of the same plan rewrites its comment.
Without results, both have the errors. Names and messages are shown as code, so that GitHub reads nothing into them.
"""

import hashlib
import html
import json
import os
import re
import sys
import tomllib
import urllib.error
import urllib.request
from decimal import ROUND_CEILING, Context
from pathlib import Path

MAX_FINDINGS = 20
"""In a comment (also comparisons), and as annotations: GitHub shows ten of each kind a step."""

MAX_LENGTH = 60_000
"""Of a comment, in characters. GitHub refuses more than 65,536."""

MAX_REPORT = 200_000
"""Of a report in the summary, in characters. GitHub drops a summary of more than 1 MiB."""

FORBIDDEN = "; the job needs the permission `pull-requests: write`, which pull requests from forks usually lack"
NO_VERDICT = "the plan did not run to its end, so there is no verdict"


def main(path, plan, log):
    has_results = Path(path or ".").is_file()
    if has_results:
        document = json.loads(Path(path).read_text())
        name, report = document["plan"], Path(f"{path}.txt")
        rules = (document.get("gate") or {}).get("rules", ())
        failed = [finding["text"] for rule in rules for finding in rule["findings"] if not finding["passed"]]
        annotate("sigdask gate failed", failed)
        lines = build_comment(document, rules, failed)
    else:
        name, report = read_name(plan), Path(log)
        errors = read_errors(log)
        annotate("sigdask", errors or [NO_VERDICT])
        lines = [f"**sigdask, {as_code(name)}: no verdict**", "", f"{NO_VERDICT.capitalize()}.", ""]
        lines += [f"- {as_code(text)}" for text in errors[:MAX_FINDINGS]]
    publish("\n".join(lines), name)
    if report.is_file():
        text = html.escape(report.read_text(errors="replace")[:MAX_REPORT], quote=False)
        title = "Report" if has_results else "Log"
        summarize(f"<details><summary>{title}</summary>\n\n<pre>\n{text}\n</pre>\n\n</details>")


def annotate(title, texts):
    """Annotate the job with some errors."""
    for text in texts[:MAX_FINDINGS]:
        print(f"::error title={title}::{escape(text)}")


def read_errors(log):
    """Return the errors in a log, if there is one, and why a run stopped. Further lines of an error are indented."""
    text = Path(log).read_text(errors="replace") if Path(log).is_file() else ""
    return re.findall(r"^sigdask: (?:error: )?((?<=error: ).*(?:\n .*)*|stopped .*)", text, re.MULTILINE)


def read_name(plan):
    """Return the name of a plan, as sigdask gives it, also if there are errors in it."""
    try:
        return str(tomllib.loads(Path(plan).read_text())["name"])
    except (OSError, ValueError, KeyError):
        return Path(plan).stem


def publish(text, plan):
    """Add the verdict to the job's summary, and comment on the pull request, if there is one."""
    summarize(text)
    if os.environ.get("COMMENT_ON"):
        marker = f"<!-- sigdask {hashlib.sha256(plan.encode()).hexdigest()[:16]} -->"
        try:
            write_comment(f"{text[:MAX_LENGTH]}\n\n{link_report()}", marker)
        except (OSError, ValueError, LookupError, TypeError) as error:  # the verdict does not depend on a comment
            reason = FORBIDDEN if getattr(error, "code", None) in {401, 403, 404} else ""
            print(f"::warning title=sigdask::no comment on the pull request: {escape(str(error))}{reason}")


def summarize(text):
    """Add Markdown to the job's summary."""
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a") as summary:
        summary.write(f"{text}\n\n")


def escape(text):
    """Return a text as the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def as_code(text):
    """Return a text as inline code that holds no Markdown: in code GitHub makes no links, mentions or references."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return f"<code>{''.join(c if c.isalnum() or c == ' ' else f'&#{ord(c)};' for c in plain)}</code>"


def build_comment(document, rules, failed):
    """Return the verdict as lines of Markdown."""
    outcome = "no gate" if not rules else "gate FAILED" if failed or not document["gate"]["passed"] else "gate passed"
    results = document["results"]
    n = f"{len(results)} comparison{'s' * (len(results) != 1)}"
    lines = [f"**sigdask, {as_code(document['plan'])}: {outcome}** ({n})", ""]
    lines += [f"- {as_code(text)}" for text in failed[:MAX_FINDINGS]]
    lines += [f"- and {len(failed) - MAX_FINDINGS} more"] * (len(failed) > MAX_FINDINGS)
    return [*lines, *build_table(results, document["alpha"])]


def link_report():
    """Return a link to this run."""
    server, repository, run = (os.environ[f"GITHUB_{name}"] for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    return f"[Report of this run]({server}/{repository}/actions/runs/{run})"


def build_table(results, alpha):
    """Return the comparisons with the smallest p as lines of a Markdown table."""
    rows = []
    for result in results:
        p = result["p_value"] if result["p_adjusted"] is None else result["p_adjusted"]
        place = [result["test_set"], (result["subset"] or {}).get("value"), result["metric"]]
        names = (result["a"], result["b"], ", ".join(filter(None, place)))
        difference = "" if result["difference"] is None else f"{result['difference']:+.4g}"
        shown_p = "" if p is None else f"**{format_p(p)}**" if p <= alpha else format_p(p)
        rows.append((2.0 if p is None else p, [*map(as_code, names), difference, shown_p]))
    if not rows:
        return []
    rows.sort(key=lambda row: row[0])
    is_adjusted = any(result["p_adjusted"] is not None for result in results)
    head = ["A", "B", "metric", "A - B", "adjusted p" if is_adjusted else "p"]
    lines = ["", *(f"| {' | '.join(cells)} |" for cells in (head, ["---", "---", "---", "--:", "--:"]))]
    lines += [f"| {' | '.join(cells)} |" for _, cells in rows[:MAX_FINDINGS]]
    n_more = len(rows) - MAX_FINDINGS
    return [*lines, "", f"Bold: significant at {alpha:g}." + f" {n_more} more in the report." * (n_more > 0)]


def format_p(p):
    """Return a p-value rounded up, as sigdask prints it."""
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(repr(p))):.3g}" if p else "<1e-300"


def write_comment(text, marker):
    """Rewrite the comment of the token's own account that begins with a marker, or write a new one."""
    issues = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    comments = f"{issues}/{int(os.environ['COMMENT_ON'])}/comments"
    account = send("POST", os.environ["GITHUB_GRAPHQL_URL"], {"query": "{viewer{login}}"})["data"]["viewer"]["login"]
    body, page = {"body": f"{marker}\n{text}"}, 1
    while found := send("GET", f"{comments}?per_page=100&page={page}"):
        own = [c["id"] for c in found if c["user"]["login"] == account and (c["body"] or "").startswith(marker)]
        if own:
            send("PATCH", f"{issues}/comments/{own[0]}", body)
            return
        page += 1
    send("POST", comments, body)


def send(method, url, body=None):
    """Send a request to GitHub's interface, and return its answer."""
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Accept": "application/vnd.github+json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
