"""Questions, gold answers and answers of samples, looked up in their logs when they are shown.

They are not kept while logs are read, because logs are large and scores do not need their texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sigdask.counts.texts import NO_TEXTS, ItemTexts
from sigdask.errors import SigdaskError
from sigdask.formats.reading.json_records import Record, parse_number
from sigdask.formats.reading.options import Options
from sigdask.formats.samples.sample import SampleFile

QUESTION_KEYS = ("question", "query", "prompt", "problem", "input", "instruction", "ctx", "context", "text", "source")
GOLD_KEYS = ("target", "gold", "answer", "reference", "expected", "label")
ANSWER_KEYS = ("filtered_resps", "resps", "output", "response", "prediction", "completion", "answer")
"""Fields of a record or its document that may hold the answer, in order of preference."""


@dataclass(frozen=True, slots=True, eq=False)
class LogTextLookup:
    """Looks up the texts of samples, by system and id, in the logs.

    Attributes
    ----------
    logs : sequence of SampleFile
        The logs.
    options : Options
        Options with which they were read.
    one_task : bool
        Whether samples are identified only by their id.
    """

    logs: Sequence[SampleFile]
    options: Options
    one_task: bool

    def find_texts(self, ids: Collection[str], systems: Collection[str]) -> Mapping[tuple[str, str], ItemTexts]:
        """Return the texts of the given items and systems, without texts that can no longer be read."""
        texts: dict[tuple[str, str], ItemTexts] = {}
        for log in self.logs:
            if log.system in systems:
                with suppress(SigdaskError, OSError):
                    texts |= {
                        (log.system, name): build_texts(sample.record)
                        for sample in log.iter_samples(self.options)
                        if (name := sample.item if self.one_task else f"{sample.task}:{sample.item}") in ids
                    }
        return texts


def build_texts(record: Record) -> ItemTexts:
    """Return the question, gold standard and answer of one sample, as far as its record has them.

    The gold standard may be the position of a choice, and the answer a log-likelihood of each.

    Examples
    --------
    >>> build_texts({"doc": {"question": "2 + 2?"}, "target": "4", "filtered_resps": ["5"]})
    ItemTexts(asked='2 + 2?', gold='4', given='5')
    >>> document = {"query": "A?", "choices": ["x", "y"], "gold": 0}
    >>> build_texts({"doc": document, "filtered_resps": [[-3.0, False], [-1.0, True]]})
    ItemTexts(asked='A?', gold='x', given='y')
    >>> build_texts({"input": [{"role": "user", "content": "Hi"}], "target": "Ho", "output": {"completion": "He"}})
    ItemTexts(asked='Hi', gold='Ho', given='He')
    """
    doc = record.get("doc")
    fields = {**record, **doc} if isinstance(doc, dict) else record
    choices = fields["choices"] if isinstance(fields.get("choices"), list) else []
    question = _extract_text(_find_field(fields, QUESTION_KEYS)) or " / ".join(map(str, choices)) or None
    target = _find_field(record, GOLD_KEYS)
    gold = _extract_text(_find_field(fields, GOLD_KEYS) if target is None else target)
    if gold is not None and re.fullmatch(r"\d{1,18}", gold) and int(gold) < len(choices):
        gold = str(choices[int(gold)])
    response = _find_field(record, ANSWER_KEYS)
    answer = _extract_text(response)
    if choices and isinstance(response, list) and all(isinstance(part, list) for part in response):
        scores = [parse_number(part[0]) if part else None for part in response]
        numbers = [score for score in scores if score is not None]
        is_scored = len(numbers) == len(response) == len(choices)
        answer = str(choices[numbers.index(max(numbers))]) if is_scored else None
    return NO_TEXTS if (question, gold, answer) == (None, None, None) else ItemTexts(question, gold, answer)


def _find_field(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the first field that is present and not empty."""
    return next((record[name] for name in names if record.get(name) not in (None, "", [])), None)


def _extract_text(value: Any) -> str | None:
    """Return the text within a value, which may be a text, a list of messages or of texts, or an object with a text."""
    if isinstance(value, list):
        is_talk = bool(value) and isinstance(value[0], dict) and "content" in value[0]
        return _extract_text(value[-1 if is_talk else 0]) if value else None
    if isinstance(value, dict):
        inner = _find_field(value, ("completion", "content", "text", "choices", "message"))
        return None if inner is None else _extract_text(inner)
    return None if value is None else str(value).strip()
