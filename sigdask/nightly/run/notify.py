"""Notify others of a gate's outcome by command or web hook, each with a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sigdask.errors import InputError
from sigdask.nightly.gate import GateVerdict, web_hook
from sigdask.nightly.plan import NotifySettings
from sigdask.nightly.report.gate import render
from sigdask.text import as_json, escape_json

MOST_CHARACTERS = 300
"""Characters kept of what a command or server answered."""


def send_notifications(settings: NotifySettings, verdict: GateVerdict, name: str, folder: Path) -> Iterator[str]:
    """Run the command and call the web hook of the plan; yield a message for each failure.

    The command gets the verdict's JSON on its standard input and SIGDASK_GATE = passed or failed; a web
    hook gets the same JSON by POST, with a `text` that chat programs show, or what its template makes of it.

    Parameters
    ----------
    settings : NotifySettings
        Of the plan.
    verdict : GateVerdict
        How it ended.
    name : str
        The plan's.
    folder : Path
        The plan's, where the command runs.
    """
    if (settings.when != "always" and verdict.passed) or (settings.when == "new" and not verdict.is_new):
        return
    ending = "passed" if verdict.passed else "failed"
    fields = {"plan": name, "text": f"{name}: {render(verdict)}", **verdict.to_dict()}
    body = escape_json(as_json(fields, lines=False)).encode()
    if settings.command and (trouble := _run_command(settings, body, ending, folder)):
        yield f"gate.command {settings.command[0]}: {trouble}"
    if settings.webhook is None:
        return
    try:
        payload = body if settings.body is None else web_hook.render_json(settings.body, fields)
    except InputError as error:
        yield f"gate.webhook_body: {error}; the gate's JSON is sent instead"
        payload = body
    if trouble := _post_in_thread(settings.webhook, payload, settings.timeout):
        yield f"gate.webhook: {trouble}"


def _run_command(settings: NotifySettings, body: bytes, ending: str, folder: Path) -> str | None:
    """Run the plan's command on the verdict; return why it failed, or None. It is killed at the time limit."""
    with tempfile.TemporaryFile() as input_file, tempfile.TemporaryFile() as error_file:
        try:
            input_file.write(body)
            input_file.seek(0)
            process = subprocess.Popen(  # noqa: S603  # the plan's own list, no shell
                settings.command,
                stdin=input_file,
                stdout=subprocess.DEVNULL,
                stderr=error_file,
                cwd=folder,
                env={**os.environ, "SIGDASK_GATE": ending},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return str(error)
        try:
            process.wait(settings.timeout)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"did not end within {settings.timeout:g} s and was stopped"
        if process.returncode == 0:
            return None
        error_file.seek(0)
        error_text = error_file.read(4 * MOST_CHARACTERS).decode(errors="replace").strip()[:MOST_CHARACTERS]
        return f"ended with status {process.returncode}{f': {error_text}' if error_text else ''}"


def _post_in_thread(url: str, body: bytes, timeout: float) -> str | None:
    """Post to a URL; return why that failed, or None. A thread enforces the time limit on the whole exchange."""
    answers: list[str | None] = []
    thread = threading.Thread(target=lambda: answers.append(_send_request(url, body, timeout)), daemon=True)
    thread.start()
    thread.join(timeout)
    return answers[0] if answers else f"no answer within {timeout:g} s"


def _send_request(url: str, body: bytes, timeout: float) -> str | None:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")  # noqa: S310  # checked with the plan
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
            answer.read(MOST_CHARACTERS)
    except urllib.error.HTTPError as error:
        return f"answered with status {error.code}"
    except (OSError, ValueError) as error:  # URLError and timeouts are OSErrors
        return f"no answer ({getattr(error, 'reason', None) or error})"
    return None
