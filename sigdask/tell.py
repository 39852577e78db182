"""Telling others how a gate ended: a command, a web hook; both limited in time, neither changes the verdict."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from sigdask.gate import GateVerdict
from sigdask.plan import Tell
from sigdask.report.gate import render

LONGEST_WORD = 300
"""Characters kept of what a command or server answered."""


def tell(to: Tell, verdict: GateVerdict, name: str, folder: Path) -> Iterator[str]:
    """Tell whom the plan names; yield what could not be told.

    The command gets the verdict's JSON on its standard input and SIGDASK_GATE = passed or failed; a web
    hook gets the same JSON by POST, with a `text` that chat programs show.

    Parameters
    ----------
    to : Tell
        Of the plan.
    verdict : GateVerdict
        How it ended.
    name : str
        The plan's.
    folder : Path
        The plan's, where the command runs.
    """
    if to.when == "failed" and verdict.passed:
        return
    ending = "passed" if verdict.passed else "failed"
    body = json.dumps({"plan": name, "text": f"{name}: {render(verdict)}", **verdict.to_dict()}).encode()
    if to.command and (trouble := _run(to, body, ending, folder)):
        yield f"gate.command {to.command[0]}: {trouble}"
    if to.webhook is not None and (trouble := _post(to.webhook, body, to.timeout)):
        yield f"gate.webhook: {trouble}"


def _run(to: Tell, body: bytes, ending: str, folder: Path) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603  # the plan's own list, no shell
            to.command,
            input=body,
            capture_output=True,
            timeout=to.timeout,
            cwd=folder,
            env={**os.environ, "SIGDASK_GATE": ending},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {to.timeout:g} s and was stopped"
    except (OSError, ValueError) as error:
        return str(error)
    if done.returncode == 0:
        return None
    word = done.stderr.decode(errors="replace").strip()[:LONGEST_WORD]
    return f"ended with status {done.returncode}{f': {word}' if word else ''}"


def _post(url: str, body: bytes, timeout: float) -> str | None:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")  # noqa: S310  # checked with the plan
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
            answer.read(LONGEST_WORD)
    except urllib.error.HTTPError as error:
        return f"answered with status {error.code}"
    except (OSError, ValueError) as error:  # URLError and timeouts are OSErrors
        return f"no answer ({getattr(error, 'reason', None) or error})"
    return None
