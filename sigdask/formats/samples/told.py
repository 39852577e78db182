"""What was asked, right and answered in some samples: read again from the logs when a reader looks at them.

Logs are large and their texts are no part of any score, so none is kept while they are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sigdask.counts.shown import NOTHING, ItemTexts
from sigdask.errors import SigdaskError
from sigdask.formats.reading.json.rows import Record
from sigdask.formats.reading.options import Options
from sigdask.formats.samples.sample import SampleFile

ASKED = ("question", "query", "prompt", "problem", "input", "instruction", "ctx", "context", "text", "source")
RIGHT = ("target", "gold", "answer", "reference", "expected", "label")
GIVEN = ("filtered_resps", "resps", "output", "response", "prediction", "completion", "answer")
"""Fields of a record, or of its document, in the order in which they are looked for."""

CHOICES = ("choices", "options", "endings")


@dataclass(frozen=True, slots=True, eq=False)
class FromLogs:
    """The texts of samples, by system and id, in the logs that were read.

    Attributes
    ----------
    logs : sequence of SampleFile
        The logs.
    options : Options
        With which they were read.
    one_task : bool
        Whether samples are known by their id alone.
    """

    logs: Sequence[SampleFile]
    options: Options
    one_task: bool

    def told(self, ids: Collection[str], systems: Collection[str]) -> Mapping[tuple[str, str], ItemTexts]:
        """Return what there is of some samples of some systems; what cannot be read again is not there."""
        found: dict[tuple[str, str], ItemTexts] = {}
        for log in self.logs:
            if log.system is None or log.system in systems:
                with suppress(SigdaskError, OSError):
                    found |= dict(self._of(log, ids))
        return found

    def _of(self, log: SampleFile, ids: Collection[str]) -> Iterator[tuple[tuple[str, str], ItemTexts]]:
        for sample in log.samples(self.options):
            name = sample.item if self.one_task else f"{sample.task}:{sample.item}"
            if name in ids:
                yield (log.system or sample.system, name), told_of(sample.record)


def told_of(record: Record) -> ItemTexts:
    """Return what was asked, right and answered in one sample, as far as its record says it.

    Examples
    --------
    >>> told_of({"doc": {"question": "2 + 2?"}, "target": "4", "filtered_resps": ["5"]})
    ItemTexts(asked='2 + 2?', gold='4', given='5')
    >>> told_of({"doc": {"query": "A?", "choices": ["x", "y"], "gold": 0}, "resps": [[[-3.0, False]], [[-1.0, True]]]})
    ItemTexts(asked='A?', gold='x', given='y')
    >>> told_of({"input": [{"role": "user", "content": "Hi"}], "target": "Ho", "output": {"completion": "He"}})
    ItemTexts(asked='Hi', gold='Ho', given='He')
    """
    doc = record.get("doc")
    within = {**record, **doc} if isinstance(doc, dict) else record
    choices = _choices(within)
    asked = _text(_first(within, ASKED)) or _prompt(record)
    given = _answer(_first(record, GIVEN), choices)
    if choices and not asked:
        asked = " / ".join(choices)
    gold = _text(_first(record, RIGHT) if _first(record, RIGHT) is not None else _first(within, RIGHT))
    if choices and gold is not None and gold.isdecimal() and int(gold) < len(choices):
        gold = choices[int(gold)]
    return NOTHING if (asked, gold, given) == (None, None, None) else ItemTexts(asked, gold, given)


def _first(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the first field that is there and not empty."""
    return next((record[name] for name in names if record.get(name) not in (None, "", [])), None)


def _choices(record: Mapping[str, Any]) -> list[str]:
    found = _first(record, CHOICES)
    if isinstance(found, dict):
        found = found.get("text")
    return [str(one).strip() for one in found] if isinstance(found, list) else []


def _prompt(record: Record) -> str | None:
    """Return the prompt that the harness sent."""
    arguments = record.get("arguments")
    while isinstance(arguments, (dict, list)) and arguments:
        arguments = next(iter(arguments.values())) if isinstance(arguments, dict) else arguments[0]
    return _text(arguments)


def _answer(given: Any, choices: Sequence[str]) -> str | None:
    """Return an answer; of log-likelihoods of choices the likeliest."""
    listed = [_likelihood(one) for one in given] if isinstance(given, list) else []
    if listed and None not in listed:
        if len(listed) != len(choices):
            return None
        best = max(range(len(listed)), key=lambda k: listed[k] or 0.0)
        return choices[best]
    return _text(given)


def _likelihood(given: Any) -> float | None:
    """Return the number of [number, whether it is greedy], however deep it stands."""
    while isinstance(given, list) and given:
        if isinstance(given[0], (int, float)) and not isinstance(given[0], bool) and len(given) > 1:
            return float(given[0])
        given = given[0]
    return None


def _text(value: Any) -> str | None:
    """Return text: of messages that of the last, of lists the first, of objects what they hold of it."""
    if isinstance(value, list):
        is_talk = bool(value) and isinstance(value[0], dict) and "content" in value[0]
        return _text(value[-1 if is_talk else 0]) if value else None
    if isinstance(value, dict):
        inner = _first(value, ("completion", "content", "text", "choices", "message"))
        return None if inner is None else _text(inner)
    return None if value is None else str(value).strip()
