"""Notify others of a gate's outcome by command or web hook, each with a time limit."""

from __future__ import annotations

import base64
import http.client
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
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from sigdask.nightly.gate.rules import GateVerdict
from sigdask.nightly.plan import Gate
from sigdask.nightly.report.gate import render
from sigdask.text import as_json, escape_json, redact

MAX_CHARACTERS = 300
"""Maximum characters stored of the answer of a command or server."""


def send_notifications(settings: Gate, verdict: GateVerdict, name: str, folder: Path) -> Iterator[str]:
    """Run the command and call the web hook of the plan; yield a message for each failure.

    The command gets the verdict's JSON on its standard input and SIGDASK_GATE = passed or failed. A web hook gets the
    same JSON by POST, with a `text` that chat programs show.

    Parameters
    ----------
    settings : Gate
        Settings of the plan.
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
    if settings.webhook and (trouble := _post_in_thread(settings.webhook, body, settings.timeout)):
        yield f"gate.webhook: {trouble}"


def _run_command(settings: Gate, body: bytes, ending: str, folder: Path) -> str | None:
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
        error_text = error_file.read(4 * MAX_CHARACTERS).decode(errors="replace").strip()[:MAX_CHARACTERS]
        return f"ended with status {process.returncode}{f': {error_text}' if error_text else ''}"


def _post_in_thread(url: str, body: bytes, timeout: float) -> str | None:
    """Post to a URL; return why that failed, or None. A thread enforces the time limit on the whole exchange."""
    answers: list[str | None] = []
    thread = threading.Thread(target=lambda: answers.append(_send_request(url, body, timeout)), daemon=True)
    thread.start()
    thread.join(timeout)
    return answers[0] if answers else f"no answer within {timeout:g} s"


def _send_request(url: str, body: bytes, timeout: float) -> str | None:
    """Post to a URL; return why that failed, or None. No body of an answer is read."""
    secrets: list[str] = []
    try:
        parts = urlsplit(url)
        secrets += filter(None, (parts.path, parts.query, parts.username, unquote(parts.password or "")))
        opener = urllib.request.build_opener(WithoutRedirects)
        opener.open(_build_request(parts, body), timeout=timeout).close()
    except urllib.error.HTTPError as error:
        error.close()
        is_redirect = 300 <= error.code < 400
        return f"answered with status {error.code}{', a redirect, which is not followed' if is_redirect else ''}"
    except (OSError, ValueError) as error:  # URLError and timeouts are OSErrors
        return redact(f"no answer ({getattr(error, 'reason', None) or error})", values=secrets)
    except http.client.HTTPException as error:  # its text may hold the URL
        return f"no answer ({type(error).__name__})"
    return None


def _build_request(parts: SplitResult, body: bytes) -> urllib.request.Request:
    """Return the request that posts to a URL, with the URL's user and password as Basic authorization."""
    if parts.scheme not in {"http", "https"}:
        raise ValueError("expected a URL of http or https")
    account, _, host = parts.netloc.rpartition("@")
    path, query = (quote(text, URL_CHARACTERS) for text in (parts.path, parts.query))
    headers = {"Content-Type": "application/json"}
    if account:
        headers["Authorization"] = f"Basic {base64.b64encode(unquote(account).encode()).decode()}"
    url = urlunsplit((parts.scheme, host, path, query, ""))
    return urllib.request.Request(url, body, headers, method="POST")  # noqa: S310  # http or https


URL_CHARACTERS = "".join(map(chr, range(33, 127)))
"""Characters of paths and queries that are sent as they are. Others are percent-encoded."""


class WithoutRedirects(urllib.request.HTTPRedirectHandler):
    """Make redirects errors. urllib would follow them to other hosts, and read their bodies whatever their size."""

    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect."""
