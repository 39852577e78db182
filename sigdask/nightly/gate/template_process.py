"""Program that renders the template of a web hook in a process whose memory and CPU time are limited.

It reads JSON from standard input: `template`, `verdicts` (the fields of each), `bytes` and `seconds`. It writes JSON:
`texts`, or else the names that are `unknown`, or `error` and the `line` of the template. It imports nothing of sigdask,
so that it starts fast and needs little memory itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

MAX_CHARACTERS = 1 << 26
"""Maximum characters that a template may write."""


def limit_process(n_bytes: int, seconds: int) -> None:
    """Limit memory and CPU time of this process, where the operating system can."""
    with suppress(ImportError):
        import resource

        limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_AS: n_bytes, resource.RLIMIT_CPU: seconds}
        for kind, limit in limits.items():
            with suppress(OSError, ValueError):  # a lower limit exists, or this kind of limit does not
                resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))


def render(template: str, verdicts: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the `texts` that a template renders from verdicts, or the `unknown` names that it uses."""
    from jinja2 import StrictUndefined
    from jinja2.meta import find_undeclared_variables
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(undefined=StrictUndefined)
    undeclared = find_undeclared_variables(environment.parse(template))
    if unknown := undeclared - set(environment.globals) - set(verdicts[0]):
        return {"unknown": sorted(unknown)}
    compiled = environment.from_string(template)
    return {"texts": ["".join(_limit(compiled.generate(**fields))) for fields in verdicts]}


def _limit(parts: Iterable[str]) -> Iterator[str]:
    """Yield the parts of a text, and raise if there is more of it than a template may write."""
    n_characters = 0
    for part in parts:
        n_characters += len(part)
        if n_characters > MAX_CHARACTERS:
            raise MemoryError
        yield part


def main() -> None:
    """Render what standard input asks for."""
    request = json.load(sys.stdin)
    limit_process(request["bytes"], request["seconds"])
    try:
        answer: dict[str, Any] = {**render(request["template"], request["verdicts"])}
    except MemoryError:
        answer = {"error": None}
    except Exception as error:  # noqa: BLE001  # whatever an expression of the template raises
        answer = {
            "error": str(error).partition("\n")[0] or type(error).__name__,
            "line": getattr(error, "lineno", None),
        }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
