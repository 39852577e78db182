"""Payloads of web hooks: the gate's JSON, or JSON that a template makes of it for a chat program.

A template is written in Jinja and runs in its sandbox. Its variables are `plan` (the name), `passed`, `is_new` (a
failure for outputs that had not failed before), `text` (the verdict in words) and `rules` (as in the gate's JSON). It
makes one JSON value: `{"text": {{ text | truncate(3000) | tojson }}}`. It runs in its own process (`template_process`),
because a short template can need any amount of memory and time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from sigdask.errors import InputError
from sigdask.nightly.gate import template_process
from sigdask.text import as_json, to_plain

EXAMPLES: tuple[Mapping[str, Any], ...] = tuple(
    {"plan": "nightly", "passed": passed, "text": f'nightly: gate: {word}\n  "{word}" <rule>',
     "is_new": not passed,
     "rules": [{"name": "rule", "passed": passed, "p_value": 0.5, "level": 0.05, "alarms_per_year": 1.0, "notes": [],
                "fdr": "none", "least_level": 0.05, "repeats": None, "n_blind": 0, "n_gone": 0, "n_doubtful": 0,
                "findings": [{"system": "new", "baseline": "base", "gain": 0.0, "p_value": 0.5, "passed": passed,
                              "detectable": None, "level": 0.05, "since": None, "text": word}]}]}
    for passed, word in ((True, "passed"), (False, "FAILED"))
)  # fmt: skip
"""Example verdicts for checking templates."""


MAX_BYTES = 1 << 30
MAX_SECONDS = 5
"""Maximum CPU seconds of a template. Its memory is limited too."""

PATIENCE_SECONDS = 60
"""Maximum seconds to wait for a template on a busy machine."""

LOOK_SECONDS = 0.03
"""Seconds between checks of a template's memory and time."""


def render_json(template: str, fields: Mapping[str, Any]) -> bytes:
    r"""Return the JSON body that a template produces from the fields of a verdict.

    Raises
    ------
    InputError
        The template cannot be read, uses unknown names, gives no JSON, or needs too much memory or time.

    Examples
    --------
    >>> render_json('{"text": {{ text | tojson }}}', {"text": 'new is "worse"'})
    b'{"text": "new is \\"worse\\""}'
    """
    [text] = _render(template, [fields])
    return _check_json(text)


def check_template(template: str) -> None:
    """Raise if a template cannot be rendered as JSON for the example verdicts."""
    for text in _render(template, EXAMPLES):
        _check_json(text)


def _render(template: str, verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Render a template for each verdict, in a process with limited memory and time."""
    request = {"template": template, "verdicts": verdicts, "bytes": MAX_BYTES, "seconds": MAX_SECONDS}
    try:
        answer: dict[str, Any] = json.loads(_run_template_process(json.dumps(to_plain(request)).encode()))
    except ValueError:  # it was stopped, by its own limits or from here
        answer = {"error": None}
    if "texts" in answer:
        texts: list[str] = answer["texts"]
        return texts
    if "unknown" in answer:
        raise InputError(
            f"the template uses {', '.join(answer['unknown'])}, but there is only {', '.join(verdicts[0])}"
        )
    if answer["error"] is None:
        raise InputError(
            f"the template takes more than {MAX_SECONDS} s or {MAX_BYTES >> 30} GiB of memory; shorten its loops"
        )
    line = f", line {answer['line']}," if answer["line"] else ""
    raise InputError(f"the template{line} is wrong: {answer['error']}")


def _run_template_process(request: bytes) -> bytes:
    """Return the output of the process. It is stopped at its limits even if the system does not enforce them."""
    import psutil  # installed with dask, and needed only here

    start = time.monotonic()
    with tempfile.TemporaryFile() as file:
        file.write(request)
        file.seek(0)
        with subprocess.Popen(  # noqa: S603  # this program's own file
            [sys.executable, "-P", template_process.__file__],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    return process.communicate(timeout=LOOK_SECONDS)[0]
                with suppress(psutil.Error):
                    watched = psutil.Process(process.pid)
                    seconds, n_bytes = sum(watched.cpu_times()[:2]), watched.memory_info().rss
                    if n_bytes > MAX_BYTES or seconds > MAX_SECONDS or time.monotonic() - start > PATIENCE_SECONDS:
                        process.kill()


def _check_json(text: str) -> bytes:
    try:
        return as_json(json.loads(text), lines=False).encode()
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the output of the template is not JSON ({error}) but {text.strip()[:80]!r}; write texts as {{{{ text | "
            f"tojson }}}}"
        ) from None
