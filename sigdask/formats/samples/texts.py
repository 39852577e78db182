"""Questions, gold answers and answers of samples, looked up in their logs when they are shown.

They are not kept while logs are read, because logs are large and scores do not need their texts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sigdask.counts.texts import NO_TEXTS, ItemTexts
from sigdask.errors import SigdaskError
from sigdask.formats.reading.json_records import Record
from sigdask.formats.reading.options import Options
from sigdask.formats.samples.sample import SampleFile

QUESTION_KEYS = ("question", "query", "prompt", "problem", "input", "instruction", "ctx", "context", "text", "source")
GOLD_KEYS = ("target", "gold", "answer", "reference", "expected", "label")
ANSWER_KEYS = ("filtered_resps", "resps", "output", "response", "prediction", "completion", "answer")
"""Fields of a record or its document that may hold the answer, in order of preference."""

CHOICE_KEYS = ("choices", "options", "endings")


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

    Examples
    --------
    >>> build_texts({"doc": {"question": "2 + 2?"}, "target": "4", "filtered_resps": ["5"]})
    ItemTexts(asked='2 + 2?', gold='4', given='5')
    >>> document = {"query": "A?", "choices": ["x", "y"], "gold": 0}
    >>> build_texts({"doc": document, "resps": [[[-3.0, False]], [[-1.0, True]]]})
    ItemTexts(asked='A?', gold='x', given='y')
    >>> build_texts({"input": [{"role": "user", "content": "Hi"}], "target": "Ho", "output": {"completion": "He"}})
    ItemTexts(asked='Hi', gold='Ho', given='He')
    """
    doc = record.get("doc")
    fields = {**record, **doc} if isinstance(doc, dict) else record
    options = _find_field(fields, CHOICE_KEYS)
    options = options.get("text") if isinstance(options, dict) else options
    choices = [str(choice).strip() for choice in options] if isinstance(options, list) else []
    prompt = record.get("arguments")  # the prompt that the harness sent
    while isinstance(prompt, (dict, list)) and prompt:
        prompt = next(iter(prompt.values())) if isinstance(prompt, dict) else prompt[0]
    question = _extract_text(_find_field(fields, QUESTION_KEYS)) or _extract_text(prompt)
    answer = _find_answer(_find_field(record, ANSWER_KEYS), choices)
    if choices and not question:
        question = " / ".join(choices)
    target = _find_field(record, GOLD_KEYS)
    gold = _extract_text(_find_field(fields, GOLD_KEYS) if target is None else target)
    if choices and gold is not None and gold.isdecimal() and int(gold) < len(choices):
        gold = choices[int(gold)]
    return NO_TEXTS if (question, gold, answer) == (None, None, None) else ItemTexts(question, gold, answer)


def _find_field(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the first field that is present and not empty."""
    return next((record[name] for name in names if record.get(name) not in (None, "", [])), None)


def _find_answer(response: Any, choices: Sequence[str]) -> str | None:
    """Return an answer; for log-likelihoods of choices, the most likely choice."""
    likelihoods = [_find_likelihood(part) for part in response] if isinstance(response, list) else []
    if likelihoods and None not in likelihoods:
        best = max(range(len(likelihoods)), key=lambda k: likelihoods[k] or 0.0)
        return choices[best] if len(likelihoods) == len(choices) else None
    return _extract_text(response)


def _find_likelihood(response: Any) -> float | None:
    """Return the log-likelihood in a [number, is_greedy] pair that may be nested, or None."""
    while isinstance(response, list) and response:
        if isinstance(response[0], (int, float)) and not isinstance(response[0], bool) and len(response) > 1:
            return float(response[0])
        response = response[0]
    return None


def _extract_text(value: Any) -> str | None:
    """Return the text within a value, which may be a text, a list of messages or of texts, or an object with a text."""
    if isinstance(value, list):
        is_talk = bool(value) and isinstance(value[0], dict) and "content" in value[0]
        return _extract_text(value[-1 if is_talk else 0]) if value else None
    if isinstance(value, dict):
        inner = _find_field(value, ("completion", "content", "text", "choices", "message"))
        return None if inner is None else _extract_text(inner)
    return None if value is None else str(value).strip()
