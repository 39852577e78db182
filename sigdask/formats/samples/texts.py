"""Questions, gold answers and answers of samples, looked up in their logs when they are shown.

They are not kept while logs are read, because logs are large and scores do not need their texts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sigdask.counts.texts import ItemTexts
from sigdask.errors import SigdaskError
from sigdask.formats.reading.json_records import Record
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
    """Return the question, gold standard and answer of one sample, as far as its record has them as texts.

    Examples
    --------
    >>> build_texts({"doc": {"question": "2 + 2?"}, "target": "4", "filtered_resps": ["5"]})
    ItemTexts(asked='2 + 2?', gold='4', given='5')
    >>> build_texts({"input": [{"role": "user", "content": "Hi"}], "target": "Ho", "output": {"completion": "He"}})
    ItemTexts(asked='Hi', gold='Ho', given='He')
    """
    doc = record.get("doc")
    fields = {**doc, **record} if isinstance(doc, dict) else record
    return ItemTexts(*(_find_text(fields, names) for names in (QUESTION_KEYS, GOLD_KEYS, ANSWER_KEYS)))


def _find_text(value: Any, names: Sequence[str] = ("completion", "content", "text", "message")) -> str | None:
    """Return the text in the first filled field, also within a list, of messages in the last, or within objects."""
    while isinstance(value, dict | list) and value:
        if isinstance(value, list):
            value = value[-1] if isinstance(value[-1], dict) else value[0]
        else:
            value = next((value[name] for name in names if value.get(name) not in (None, "", [])), None)
            names = ("completion", "content", "text", "message")
    return value.strip() if isinstance(value, str) else None
