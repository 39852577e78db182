"""Tests of the GitHub workflow, by schema and step by step, and of the message bodies for chats."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree as ET

import pytest
from builders import build_rng
from conftest import ROOT

from sigdask.errors import InputError
from sigdask.nightly.gate.rules import GateVerdict, NonInferior, NotWorse, RuleFinding, RuleVerdict
from sigdask.nightly.plan import NotifySettings, load_plan
from sigdask.nightly.report.gate import render_junit
from sigdask.nightly.run.notify import send_notifications
from sigdask.statistics.rounding import format_p

yaml = pytest.importorskip("yaml")
GITHUB, CHAT = ROOT / "deploy" / "github", ROOT / "deploy" / "chat"
WORKFLOW = GITHUB / "nightly-evaluation.yml"


@pytest.fixture
def workflow():
    return yaml.safe_load(WORKFLOW.read_text())


ACTION = GITHUB / "action" / "action.yml"
GITLAB = ROOT / "deploy" / "gitlab" / "sigdask.gitlab-ci.yml"
SCHEMAS = {
    WORKFLOW: "github-workflows",
    **dict.fromkeys(sorted((ROOT / ".github" / "workflows").glob("*.yml")), "github-workflows"),
    **dict.fromkeys(sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), "github-issue-forms"),
    ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml": "github-issue-config",
    ACTION: "github-actions",
    GITLAB: "gitlab-ci",
}


def add_pages(text):
    """Return the workflow's text with both parts of the README that publish the site."""
    section = (GITHUB / "README.md").read_text().split("## A site on GitHub Pages")[1].split("\n## ")[0]
    steps, job = re.findall(r"(?:^    .*\n|^\n(?=    ))+", section, re.MULTILINE)
    return f"{text}\n{steps}\n{re.sub('^    ', '', job, flags=re.MULTILINE)}"


@pytest.mark.parametrize("path", [*SCHEMAS, "pages"], ids=lambda path: getattr(path, "name", path))
def test_workflows_actions_and_forms_are_valid_in_the_published_schemas(path):
    text = add_pages(WORKFLOW.read_text()) if path == "pages" else path.read_text()
    if path == "pages":
        path, jobs = WORKFLOW, yaml.safe_load(text)["jobs"]
        assert [*jobs] == ["evaluate", "pages"]
        assert [step["uses"].split("@")[0] for step in jobs["evaluate"]["steps"][-1:] + jobs["pages"]["steps"]] == [
            "actions/upload-pages-artifact", "actions/deploy-pages",
        ]  # fmt: skip
    package_spec = importlib.util.find_spec("check_jsonschema")
    if package_spec is None:
        pytest.skip("check-jsonschema is not installed: the schema that it holds is needed")
    jsonschema = pytest.importorskip("jsonschema")
    schema_path = Path(package_spec.origin).parent / f"builtin_schemas/vendor/{SCHEMAS[path]}.json"
    schema, document = json.loads(schema_path.read_text()), yaml.safe_load(text)
    if True in document:
        document["on"] = document.pop(True)  # YAML 1.1 takes the key `on` for a truth value
    jsonschema.validate(document, schema)
    if path == WORKFLOW:
        document["jobs"]["evaluate"]["stepz"] = []
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, schema)


@contextmanager
def start_receiver():
    """Start a chat program on loopback, and yield its URL and what it is sent."""
    messages = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            messages.append((self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", messages
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write_logs(folder, night, *, lost=False):
    for system in ("production", "candidate"):
        for k, task in enumerate(("arc_easy", "gsm8k")):
            scores = build_rng(k).integers(0, 2, 60) * (0 if lost and (system, task) == ("candidate", "gsm8k") else 1)
            path = folder / "logs" / system / f"samples_{task}_2024-05-0{night}T02-00-00.123456.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            records = [{"doc_id": n, "doc": {"q": n}, "resps": [], "acc": float(s)} for n, s in enumerate(scores)]
            path.write_text("".join(json.dumps(record) + "\n" for record in records))


def run_steps(workflow, folder, **environment):
    """Run steps like the runner: a shell each, and after a failure only those with `always()`."""
    [job] = workflow["jobs"].values()
    failed, statuses = False, {}
    bin_ = folder / "bin"
    bin_.mkdir(exist_ok=True)
    (bin_ / "sigdask").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sigdask "$@"\n')
    (bin_ / "sigdask").chmod(0o755)
    for step in job["steps"]:
        if "run" not in step or "pip install" in step["run"] or (failed and step.get("if") != "always()"):
            continue
        step_environment = {name: environment.get(name, "") for name in step.get("env", {})}
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        result = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, **workflow["env"], **step_environment, "PATH": f"{bin_}:{os.environ['PATH']}",
                 "GITHUB_STEP_SUMMARY": str(folder / "summary.md")},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        statuses[step["name"]] = result.returncode
        failed |= result.returncode != 0
        assert "Traceback" not in result.stderr, result.stderr
    return statuses


@pytest.mark.slow
def test_the_steps_of_the_workflow_run_night_after_night(workflow, tmp_path):
    evaluation = tmp_path / workflow["env"]["PLAN"]
    evaluation.parent.mkdir()
    shutil.copy(GITHUB / "nightly.toml", evaluation)
    write_logs(evaluation.parent, 1)
    assert run_steps(workflow, tmp_path) == {"Check the plan": 0, "Evaluate": 0, "Summary": 0}
    write_logs(evaluation.parent, 2, lost=True)
    with start_receiver() as (url, messages):
        assert run_steps(workflow, tmp_path, CHAT_WEBHOOK=url) == {"Check the plan": 0, "Evaluate": 1, "Summary": 0}
    [(_, sent)] = messages
    assert "candidate is significantly worse than production by acc on harness, task gsm8k" in json.loads(sent)["text"]
    [upload] = [s for s in workflow["jobs"]["evaluate"]["steps"] if "upload-artifact" in s.get("uses", "")]
    for name in upload["with"]["path"].split():
        assert (tmp_path / name).stat().st_size > 0
    assert ET.parse(tmp_path / "evaluation" / "gate.xml").getroot().get("failures") == "1"
    assert (tmp_path / "summary.md").read_text().count("gsm8k") > 1
    caches = [s["with"]["path"] for s in workflow["jobs"]["evaluate"]["steps"] if "cache" in s.get("uses", "")]
    assert [(tmp_path / path).is_file() for path in caches] == [True, True]


class GitHub(BaseHTTPRequestHandler):
    """Comments of one pull request, as GitHub's interface keeps them."""

    def do_GET(self):
        page = parse_qs(urlsplit(self.path).query)["page"]
        self.answer(self.server.comments if page == ["1"] else [])

    def do_POST(self):
        self.server.comments.append({"id": len(self.server.comments), **self.read_body()})
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
    files["GITHUB_OUTPUT"].unlink(missing_ok=True)
    printed, statuses = "", []
    for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"]:
        if step["name"] == "Install":
            continue
        outputs = (
            dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
            if files["GITHUB_OUTPUT"].exists()
            else {}
        )
        values = given | {f"steps.evaluate.outputs.{name}": value for name, value in outputs.items()}
        environment = {name: values[re.fullmatch(r"\${{ (.+) }}", value)[1]] for name, value in step["env"].items()}
        result = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "CHAT_WEBHOOK": "", **environment, **{key: str(path) for key, path in files.items()},
                 "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "RUNNER_TEMP": str(folder), "GITHUB_ACTION_PATH": str(ACTION.parent),
                 "GITHUB_API_URL": api, "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "nlp/eval", "GITHUB_RUN_ID": "42"},
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
    server.comments, server.paths = [{"id": 0, "body": "looks good"}], []
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    api = f"http://127.0.0.1:{server.server_port}"
    try:
        write_logs(evaluation.parent, 1, lost=True)
        printed, status, outputs = run_action(tmp_path, api)
        assert (status, outputs["status"]) == (1, "1")
        [annotation] = re.findall("::error title=sigdask gate failed::(.+)", printed)
        assert annotation.startswith("candidate is significantly worse than production by acc on harness, task gsm8k")
        assert annotation in server.comments[1]["body"]
        assert "nightly: gate FAILED** (2 comparisons)" in server.comments[1]["body"]
        rows = re.findall(
            r"^\| candidate \| production \| harness, (?:arc|gsm8k)\S*, acc \| (\S+) \| (\S+) \|$",
            server.comments[1]["body"],
            re.MULTILINE,
        )
        exact = [(r["difference"], r["p_value"]) for r in json.loads(Path(outputs["results"]).read_text())["results"]]
        assert [(float(d), float(p.strip("*"))) for d, p in rows] == [
            (pytest.approx(d, rel=1e-3), float(format_p(p))) for d, p in sorted(exact, key=lambda row: row[1])
        ]
        assert rows[0][1].startswith("**")
        assert "https://github.com/nlp/eval/actions/runs/42" in server.comments[1]["body"]
        assert json.loads(Path(outputs["results"]).read_text())["gate"]["passed"] is False
        verdict, report = (tmp_path / "summary.md").read_text().split("<details><summary>Report</summary>\n\n```\n")
        assert verdict.strip() in server.comments[1]["body"]
        assert report.startswith("gate: FAILED")
        assert report.endswith("```\n\n</details>\n")
        write_logs(evaluation.parent, 2)
        printed, status, _ = run_action(tmp_path, api)
        assert (status, "::error" in printed) == (0, False)
        assert "gate passed" in server.comments[1]["body"]
        evaluation.write_text("nome = 1\n")
        printed, status, _ = run_action(tmp_path, api)
        [annotation] = re.findall("::error title=sigdask::(.+)", printed)
        annotation = annotation.replace("%0A", "\n")
        assert status == 2
        assert annotation.startswith("evaluation/nightly.toml: 2 errors\n  test_set: missing")
        comment, summary = (
            server.comments[1]["body"],
            (tmp_path / "summary.md").read_text().rpartition("did not run to its end"),
        )
        assert comment.startswith("<!-- sigdask nightly -->\n**sigdask, nightly: no verdict**")
        assert annotation in comment.replace("&lt;", "<").replace("&#64;", "@")
        assert summary[2].count(annotation) == 2  # in the verdict and in the log
        assert "gate: passed" not in summary[2]  # the verdict of the earlier run is not shown again
    finally:
        server.shutdown()
        server.server_close()
    comments = "/repos/nlp/eval/issues/7/comments"
    assert server.paths == [
        *(f"GET {comments}", f"GET {comments}", f"POST {comments}"),
        *(f"GET {comments}", "PATCH /repos/nlp/eval/issues/comments/1") * 2,
    ]
    assert (tmp_path / "summary.md").read_text().count("gsm8k") > 1


def test_a_deadline_is_said_and_a_comment_that_github_refuses_is_a_warning(tmp_path):
    class Refusing(GitHub):
        def do_GET(self):
            self.send_error(403)

    server = HTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    (tmp_path / "log").write_text("sigdask: 0 trials counted\nsigdask: stopped by the deadline; run it again\n")
    environment = {"GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}", "GITHUB_SERVER_URL": "https://github.com",
                   "GITHUB_REPOSITORY": "nlp/eval", "GITHUB_RUN_ID": "42", "COMMENT_ON": "7", "TOKEN": "",
                   "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}  # fmt: skip
    publish = [sys.executable, ACTION.parent / "publish.py", tmp_path / "missing.json", "plan.toml", tmp_path / "log"]
    try:
        printed = subprocess.run(publish, env=environment, capture_output=True, text=True, check=True).stdout
    finally:
        server.shutdown()
        server.server_close()
    error, warning = printed.splitlines()
    assert error == "::error title=sigdask::stopped by the deadline; run it again"
    assert "no comment on the pull request: HTTP Error 403: Forbidden; the job needs the permission" in warning
    assert (tmp_path / "summary.md").read_text().endswith("\n\n- stopped by the deadline; run it again\n")


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
    kept = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"], *job["cache"]["paths"]]
    assert all((tmp_path / name).stat().st_size for name in kept)


def build_verdict(passed):
    text = 'new is "significantly worse"\nthan base <b>' if not passed else "new is not worse than base"
    finding = RuleFinding(("t", None, "new", "base", "acc"), "new", "base", -0.5, 0.001, passed, None, text)
    rule = RuleVerdict(NotWorse(0.01), "not-worse", passed, 0.001, 0.01, (finding,), 3.6, ("a note",))
    return GateVerdict((rule,))


def test_the_whole_verdict_is_sent(tmp_path):
    with start_receiver() as (url, messages):
        assert list(send_notifications(NotifySettings(webhook=url), build_verdict(False), "nightly", tmp_path)) == []
    assert set(json.loads(messages[0][1])) == {"plan", "text", "passed", "is_new", "rules"}


PLAN = """
pairs = {{ baseline = "a" }}
[[test_set]]
name = "t"
systems = "t.csv"
[gate]
rules = [{{ rule = "not-worse" }}]
webhook = "{url}"
"""


def test_the_address_of_a_web_hook_may_stand_in_the_environment(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,3\n")
    (tmp_path / "plan.toml").write_text(PLAN.format(url="$CHAT_WEBHOOK"))
    monkeypatch.delenv("CHAT_WEBHOOK", raising=False)
    with pytest.raises(InputError, match=r'found "\$CHAT_WEBHOOK", but this environment variable is not set'):
        load_plan(tmp_path / "plan.toml")
    for value, expected in (("", None), ("https://chat.example/x", "https://chat.example/x")):
        monkeypatch.setenv("CHAT_WEBHOOK", value)
        assert load_plan(tmp_path / "plan.toml").gate.notify.webhook == expected
    monkeypatch.setenv("CHAT_WEBHOOK", "secret: no url")
    with pytest.raises(InputError, match="found that of the environment variable CHAT_WEBHOOK, expected") as error:
        load_plan(tmp_path / "plan.toml")
    assert "secret" not in str(error.value)


def test_the_plan_of_the_recipe_for_chats_is_a_plan(tmp_path, monkeypatch):
    gate = re.search(r"```toml\n(.*?)```", (CHAT / "README.md").read_text(), re.DOTALL)[1]
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,3\n")
    monkeypatch.setenv("CHAT_WEBHOOK", "https://chat.example/x")
    head = 'pairs = { baseline = "a" }\n[[test_set]]\nname = "t"\nsystems = "t.csv"\n'
    (tmp_path / "plan.toml").write_text(head + gate)
    assert load_plan(tmp_path / "plan.toml").gate.notify.when == "always"


def test_a_rule_that_fails_by_what_could_not_be_compared_fails_in_junit_too():
    finding = RuleFinding(("t", None, "new", "base", "acc"), "new", "base", 0.5, 0.001, True, None, "shown")
    rule = RuleVerdict(NonInferior(0.1, 0.05), "rule", False, 0.001, 0.05, (finding,), 1.0, ("not compared: t",))
    root = ET.fromstring(render_junit(GateVerdict((rule,)), "nightly"))
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    assert [f.get("message") for f in root.iter("failure")] == ["not compared: t"]
