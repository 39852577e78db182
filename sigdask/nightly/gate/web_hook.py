"""Payloads of web hooks: the gate's JSON, or JSON that a template makes of it for a chat program.

A template is Jinja's, in its sandbox. It has `plan` (its name), `passed`, `is_new` (a failure for outputs that had not
failed before), `text` (the verdict in words) and `rules` (as in the gate's JSON). It makes one JSON value:
`{"text": {{ text | truncate(3000) | tojson }}}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sigdask.errors import InputError
from sigdask.text import as_json

EXAMPLES: tuple[Mapping[str, Any], ...] = tuple(
    {"plan": "nightly", "passed": passed, "text": f'nightly: gate: {word}\n  "{word}" <rule>',
     "is_new": not passed,
     "rules": [{"name": "rule", "passed": passed, "p_value": 0.5, "level": 0.05, "alarms_per_year": 1.0, "notes": [],
                "fdr": "none", "least_level": 0.05, "repeats": None, "n_blind": 0, "n_gone": 0, "n_doubtful": 0,
                "findings": [{"system": "new", "baseline": "base", "gain": 0.0, "p_value": 0.5, "passed": passed,
                              "detectable": None, "level": 0.05, "since": None, "text": word}]}]}
    for passed, word in ((True, "passed"), (False, "FAILED"))
)  # fmt: skip
"""Verdicts that a template must be able to write."""


def render_json(template: str, fields: Mapping[str, Any]) -> bytes:
    r"""Return the JSON body that a template produces from the fields of a verdict.

    Raises
    ------
    InputError
        The template cannot be read, or takes what there is not, or makes no JSON.

    Examples
    --------
    >>> render_json('{"text": {{ text | tojson }}}', {"text": 'new is "worse"'})
    b'{"text": "new is \\"worse\\""}'
    """
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.meta import find_undeclared_variables
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(undefined=StrictUndefined)
    try:
        undeclared = find_undeclared_variables(environment.parse(template)) - set(fields) - set(environment.globals)
        if undeclared:
            raise InputError(f"the template takes {', '.join(sorted(undeclared))}; there are {', '.join(fields)}")
        rendered = environment.from_string(template).render(**fields)
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        line_number = getattr(error, "lineno", None)
        raise InputError(f"the template{f', line {line_number},' if line_number else ''} is wrong: {error}") from None
    try:
        return as_json(json.loads(rendered), lines=False).encode()
    except ValueError as error:
        raise InputError(
            f"the template makes no JSON ({error}) but {rendered.strip()[:80]!r}; write texts as {{{{ text | tojson "
            "}}}}"
        ) from None


def check_template(template: str) -> None:
    """Raise if a template cannot be rendered as JSON for the example verdicts."""
    for fields in EXAMPLES:
        render_json(template, fields)
