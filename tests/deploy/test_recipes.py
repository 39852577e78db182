"""Tests of the GitHub workflow, by schema and step by step, and of the message bodies for chats."""

import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import jsonschema
import pytest
from builders import build_rng
from conftest import ROOT

from sigdask.statistics.rounding import format_p

yaml = pytest.importorskip("yaml")
GITHUB = ROOT / "deploy" / "github"
WORKFLOW = GITHUB / "nightly-evaluation.yml"


ACTION = GITHUB / "action" / "action.yml"
GITLAB = ROOT / "deploy" / "gitlab" / "sigdask.gitlab-ci.yml"
SCHEMAS = {
    WORKFLOW: "github-workflows",
    ACTION: "github-actions",
    GITLAB: "gitlab-ci",
}


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_workflows_actions_and_forms_are_valid_in_the_published_schemas(path):
    check_jsonschema = pytest.importorskip("check_jsonschema")
    schemas = Path(check_jsonschema.__file__).parent / "builtin_schemas" / "vendor"
    document = yaml.safe_load(path.read_text())
    if True in document:
        document["on"] = document.pop(True)  # YAML 1.1 takes the key `on` for a truth value
    jsonschema.validate(document, json.loads((schemas / f"{SCHEMAS[path]}.json").read_text()))


def write_logs(folder, night, *, lost=False):
    for system in ("production", "candidate"):
        for k, task in enumerate(("arc_easy", "gsm8k")):
            scores = build_rng(k).integers(0, 2, 60) * (0 if lost and (system, task) == ("candidate", "gsm8k") else 1)
            path = folder / "logs" / system / f"samples_{task}_2024-05-0{night}T02-00-00.123456.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            records = [{"doc_id": n, "doc": {"q": n}, "resps": [], "acc": float(s)} for n, s in enumerate(scores)]
            path.write_text("".join(json.dumps(record) + "\n" for record in records))


class GitHub(BaseHTTPRequestHandler):
    """Comments of one pull request, as GitHub's interface keeps them."""

    def do_GET(self):
        page = parse_qs(urlsplit(self.path).query)["page"]
        self.answer(self.server.comments if page == ["1"] else [])

    def do_POST(self):
        body = self.read_body()
        if self.path == "/graphql":
            self.answer({"data": {"viewer": {"login": "bot"}}})
        else:
            self.server.comments.append({"id": len(self.server.comments), "user": {"login": "bot"}, **body})
            self.answer({})

    def do_PATCH(self):
        self.server.comments[int(self.path.rpartition("/")[2])] |= self.read_body()
        self.answer({})

    def read_body(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, document):
        assert self.headers["Authorization"] == "Bearer secret"
        self.server.paths.append(f"{self.command} {urlsplit(self.path).path}")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *_):
        pass


def run_action(folder, api):
    """Run the steps of the action but for its installation; return its output, its status and what it gives back."""
    (folder / "bin").mkdir(exist_ok=True)
    for name, command in (("sigdask", f'"{sys.executable}" -m sigdask'), ("python", f'"{sys.executable}"')):
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / "bin" / name).chmod(0o755)
    given = {
        "inputs.plan": "evaluation/nightly.toml",
        "inputs.options": "-q",
        "inputs.comment == 'true' && github.event.pull_request.number || ''": "7",
        "inputs.token": "secret",
    }
    files = {"GITHUB_OUTPUT": folder / "given_back", "GITHUB_STEP_SUMMARY": folder / "summary.md"}
    files["GITHUB_OUTPUT"].write_text("")
    printed, statuses = "", []
    for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"]:
        if step["name"] == "Install":
            continue
        outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
        values = given | {f"steps.evaluate.outputs.{name}": value for name, value in outputs.items()}
        environment = {name: values[re.fullmatch(r"\${{ (.+) }}", value)[1]] for name, value in step["env"].items()}
        result = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "CHAT_WEBHOOK": "", **environment, **{key: str(path) for key, path in files.items()},
                 "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "RUNNER_TEMP": str(folder), "GITHUB_ACTION_PATH": str(ACTION.parent),
                 "GITHUB_API_URL": api, "GITHUB_GRAPHQL_URL": f"{api}/graphql", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "nlp/eval", "GITHUB_RUN_ID": "42"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in result.stderr, result.stderr
        printed, statuses = printed + result.stdout, [*statuses, result.returncode]
    return printed, max(statuses), outputs


@pytest.mark.slow
def test_the_action_annotates_the_job_and_writes_one_comment_that_later_runs_rewrite(tmp_path):
    evaluation = tmp_path / "evaluation" / "nightly.toml"
    evaluation.parent.mkdir()
    shutil.copy(GITHUB / "nightly.toml", evaluation)
    server = HTTPServer(("127.0.0.1", 0), GitHub)
    marker = f"<!-- sigdask {hashlib.sha256(b'nightly').hexdigest()[:16]} -->"
    server.comments = [{"id": 0, "user": {"login": "mallory"}, "body": f"{marker} not the action's own"}]
    server.paths = []
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    api = f"http://127.0.0.1:{server.server_port}"
    try:
        write_logs(evaluation.parent, 1, lost=True)
        printed, status, outputs = run_action(tmp_path, api)
        assert (status, outputs["status"]) == (1, "1")
        [annotation] = re.findall("::error title=sigdask gate failed::(.+)", printed)
        assert annotation.startswith("candidate is significantly worse than production by acc on harness, task gsm8k")
        assert annotation in html.unescape(server.comments[1]["body"])
        assert "nightly</code>: gate FAILED** (2 comparisons)" in server.comments[1]["body"]
        document = json.loads(Path(outputs["results"]).read_text())
        assert all(format_p(result["p_adjusted"]) in server.comments[1]["body"] for result in document["results"])
        assert "https://github.com/nlp/eval/actions/runs/42" in server.comments[1]["body"]
        assert document["gate"]["passed"] is False
        verdict, report = (tmp_path / "summary.md").read_text().split("<details><summary>Report</summary>\n\n<pre>\n")
        assert verdict.strip() in server.comments[1]["body"]
        assert report.startswith("gate: FAILED")
        assert report.endswith("</pre>\n\n</details>\n\n")
        write_logs(evaluation.parent, 2)
        printed, status, _ = run_action(tmp_path, api)
        assert (status, "::error" in printed) == (0, False)
        assert "gate passed" in server.comments[1]["body"]
        evaluation.write_text("nome = 1\n")
        printed, status, _ = run_action(tmp_path, api)
        [annotation] = re.findall("::error title=sigdask::(.+)", printed)
        annotation = annotation.replace("%0A", "\n")
        assert status == 2
        assert annotation.startswith("evaluation/nightly.toml: 2 errors\n")
        comment = server.comments[1]["body"]
        summary = (tmp_path / "summary.md").read_text().rpartition("did not run to its end")
        assert comment.startswith(f"{marker}\n**sigdask, <code>nightly</code>: no verdict**")
        assert annotation.replace("\n", " ") in html.unescape(comment)
        assert annotation in html.unescape(summary[2])  # in the log
        assert "gate: passed" not in summary[2]  # the verdict of the earlier run is not shown again
    finally:
        server.shutdown()
        server.server_close()
    comments = "/repos/nlp/eval/issues/7/comments"
    assert server.paths == [
        *("POST /graphql", f"GET {comments}", f"GET {comments}", f"POST {comments}"),
        *("POST /graphql", f"GET {comments}", "PATCH /repos/nlp/eval/issues/comments/1") * 2,
    ]
    assert (tmp_path / "summary.md").read_text().count("gsm8k") > 1


@pytest.mark.parametrize("name", ["a\n::error::b", "x --> <img src=//evil>", "[click](//evil)", "@org/team #1", "a`|b"])
def test_names_are_shown_as_text_in_comments(name, monkeypatch):
    monkeypatch.syspath_prepend(ACTION.parent)
    publish = import_module("publish")
    line = "\n".join(publish.build_table([{"test_set": name, "subset": None, "metric": "f1", "a": name, "b": name, "p_value": 0.5,
                                           "p_adjusted": None, "difference": 0.1}], 0.05)).splitlines()[3]  # fmt: skip
    cells = re.findall(r"<code>(.*?)</code>", line)
    assert len(cells) == 3
    assert not re.search(r"[^\w &#;]", "".join(cells))
    assert html.unescape(cells[0]) == name.replace("\n", " ")


@pytest.mark.slow
def test_the_script_for_gitlab_ends_with_the_verdict(tmp_path):
    job = yaml.safe_load(GITLAB.read_text())["sigdask"]
    evaluation = tmp_path / job["variables"]["PLAN"]
    evaluation.parent.mkdir()
    shutil.copy(GITHUB / "nightly.toml", evaluation)
    write_logs(evaluation.parent, 1, lost=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CHAT_WEBHOOK": "", **job["variables"]}
    script = "set -e\n" + "\n".join(job["script"]).replace("sigdask ", f'"{sys.executable}" -m sigdask ')
    result = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1, result.stderr
    assert job["cache"]["key"] == "sigdask-$CI_PIPELINE_SOURCE-$CI_COMMIT_REF_SLUG"  # merge requests are no nights
    kept = {*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"], *job["cache"]["paths"]}
    kept.remove(job["variables"]["SIGDASK_CACHE"])  # these logs need no extraction
    assert all((tmp_path / name).stat().st_size for name in kept)
