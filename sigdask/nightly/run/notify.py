"""Notify others of a gate's outcome by a web hook, with a time limit."""

from __future__ import annotations

import http.client
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

from sigdask.nightly.gate.rules import GateVerdict
from sigdask.nightly.plan import Gate
from sigdask.nightly.report.gate import render
from sigdask.text import as_json, escape_json, redact

TIMEOUT = 30.0
"""Seconds for the whole exchange with a web hook."""


def call_webhook(settings: Gate, verdict: GateVerdict, name: str) -> Iterator[str]:
    """Post the verdict's JSON to the web hook of a plan, with a `text` that chat programs show; yield why it failed.

    Parameters
    ----------
    settings : Gate
        Settings of the plan.
    verdict : GateVerdict
        How it ended.
    name : str
        The plan's.
    """
    is_unwanted = verdict.passed if settings.when == "failed" else settings.when == "new" and not verdict.is_new
    if settings.webhook is None or is_unwanted:
        return
    fields = {"plan": name, "text": f"{name}: {render(verdict)}", **verdict.to_dict()}
    body = escape_json(as_json(fields, lines=False)).encode()
    if trouble := _post_in_thread(settings.webhook, body):
        yield f"gate.webhook: {trouble}"


def _post_in_thread(url: str, body: bytes) -> str | None:
    """Post to a URL; return why that failed, or None. A thread enforces the time limit on the whole exchange."""
    answers: list[str | None] = []
    thread = threading.Thread(target=lambda: answers.append(_send_request(url, body)), daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    return answers[0] if answers else f"no answer within {TIMEOUT:g} s"


def _send_request(url: str, body: bytes) -> str | None:
    """Post to a URL; return why that failed, or None. No body of an answer is read."""
    secrets: list[str] = []
    try:
        parts = urlsplit(url)
        secrets += filter(None, (parts.path, parts.query, parts.netloc.rpartition("@")[0]))
        opener = urllib.request.build_opener(WithoutRedirects)
        opener.open(_build_request(parts, body), timeout=TIMEOUT).close()
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
    """Return the request that posts to a URL."""
    if parts.scheme not in {"http", "https"}:
        raise ValueError("expected a URL of http or https")
    path, query = (quote(text, URL_CHARACTERS) for text in (parts.path, parts.query))
    url = urlunsplit((parts.scheme, parts.netloc, path, query, ""))
    headers = {"Content-Type": "application/json"}
    return urllib.request.Request(url, body, headers, method="POST")  # noqa: S310  # http or https


URL_CHARACTERS = "".join(map(chr, range(33, 127)))
"""Characters of paths and queries that are sent as they are. Others are percent-encoded."""


class WithoutRedirects(urllib.request.HTTPRedirectHandler):
    """Make redirects errors. urllib would follow them to other hosts, and read their bodies whatever their size."""

    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect."""
