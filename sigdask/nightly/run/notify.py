"""Telling others how a gate ended: a command, a web hook; both limited in time, neither changes the verdict."""

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
from sigdask.text import as_json, printable_json

LONGEST_WORD = 300
"""Characters kept of what a command or server answered."""


def tell(to: NotifySettings, verdict: GateVerdict, name: str, folder: Path) -> Iterator[str]:
    """Tell whom the plan names; yield what could not be told.

    The command gets the verdict's JSON on its standard input and SIGDASK_GATE = passed or failed; a web
    hook gets the same JSON by POST, with a `text` that chat programs show, or what its template makes of it.

    Parameters
    ----------
    to : NotifySettings
        Of the plan.
    verdict : GateVerdict
        How it ended.
    name : str
        The plan's.
    folder : Path
        The plan's, where the command runs.
    """
    if (to.when != "always" and verdict.passed) or (to.when == "new" and not verdict.is_new):
        return
    ending = "passed" if verdict.passed else "failed"
    fields = {"plan": name, "text": f"{name}: {render(verdict)}", **verdict.to_dict()}
    body = printable_json(as_json(fields, lines=False)).encode()
    if to.command and (trouble := _run(to, body, ending, folder)):
        yield f"gate.command {to.command[0]}: {trouble}"
    if to.webhook is None:
        return
    try:
        sent = body if to.body is None else web_hook.write(to.body, fields)
    except InputError as error:
        yield f"gate.webhook_body: {error}; the gate's JSON is sent instead"
        sent = body
    if trouble := _post(to.webhook, sent, to.timeout):
        yield f"gate.webhook: {trouble}"


def _run(to: NotifySettings, body: bytes, ending: str, folder: Path) -> str | None:
    """Run the command in a group of its own; what it leaves running when it ends in time is its own affair."""
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as words:
        try:
            told.write(body)
            told.seek(0)
            process = subprocess.Popen(  # noqa: S603  # the plan's own list, no shell
                to.command,
                stdin=told,
                stdout=subprocess.DEVNULL,
                stderr=words,
                cwd=folder,
                env={**os.environ, "SIGDASK_GATE": ending},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return str(error)
        try:
            process.wait(to.timeout)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"did not end within {to.timeout:g} s and was stopped"
        if process.returncode == 0:
            return None
        words.seek(0)
        word = words.read(4 * LONGEST_WORD).decode(errors="replace").strip()[:LONGEST_WORD]
        return f"ended with status {process.returncode}{f': {word}' if word else ''}"


def _post(url: str, body: bytes, timeout: float) -> str | None:
    """Post in a thread, since the time limit of a socket is one for each piece of the answer."""
    answered: list[str | None] = []
    thread = threading.Thread(target=lambda: answered.append(_answer(url, body, timeout)), daemon=True)
    thread.start()
    thread.join(timeout)
    return answered[0] if answered else f"no answer within {timeout:g} s"


def _answer(url: str, body: bytes, timeout: float) -> str | None:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")  # noqa: S310  # checked with the plan
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
            answer.read(LONGEST_WORD)
    except urllib.error.HTTPError as error:
        return f"answered with status {error.code}"
    except (OSError, ValueError) as error:  # URLError and timeouts are OSErrors
        return f"no answer ({getattr(error, 'reason', None) or error})"
    return None
