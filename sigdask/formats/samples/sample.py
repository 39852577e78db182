"""The common output of all readers of evaluation logs: one log, and one sample of it.

The newest of several logs is found by the date in its name. Questions, gold answers and answers are not kept while logs
are read, because logs are large and scores do not need their texts. They are read again on request.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sigdask.counts.texts import NO_TEXTS, ItemTexts
from sigdask.errors import InputError, SigdaskError
from sigdask.formats.reading.json_records import Record, find_field
from sigdask.formats.reading.options import Options
from sigdask.interface import spell

ScoreValue = float | list[bool] | str
"""A number (NaN if there is none), truth values to be pooled, or a text that is not a score."""


@dataclass(frozen=True, slots=True)
class ScoredSample:
    """One sample of a log: its task, id and scores, and the whole record.

    Attributes
    ----------
    where : str
        File and line, for errors.
    task, item : str
        Task and id of the sample.
    scores : mapping of str to Value
        Scores by metric.
    record : mapping
        The whole sample, in which groups are looked up.
    within : tuple of str
        Objects in the record whose fields belong to the sample as well (doc, metadata).
    filter : str
        How the answer was extracted from the response.
    input : str
        A digest of the question.
    system : str
        The system, if the log names it.
    """

    where: str
    task: str
    item: str
    scores: Mapping[str, ScoreValue]
    record: Record
    within: tuple[str, ...] = ()
    filter: str = ""
    input: str = ""
    system: str = ""

    def get_field(self, name: str) -> str | None:
        """Return a field of the sample as text."""
        return find_field(self.record, name, *self.within)

    def list_fields(self) -> list[str]:
        """Return the names of all fields that the sample can be grouped by."""
        holders = (self.record, *(self.record.get(key) for key in self.within))
        names = [name for holder in holders if isinstance(holder, dict) for name in holder]
        return list(dict.fromkeys(("task", *names)))


@dataclass(slots=True)
class SampleFile:
    """A log file with its samples and the run's system, model, task and date.

    Attributes
    ----------
    path : Path
        The file.
    samples : callable
        Function of the options that returns the samples.
    task : str
        Task of the log. Empty if the samples name it themselves, or nothing does.
    variant : str
        Settings of the task, if the log has them. Logs of a task with other settings are not its earlier nights.
    model : str or None
        The model that the log names.
    system : str or None
        The system that the log belongs to.
    folder : Path
        Folder of the log within the folder of its system.
    moment : datetime or None
        Time at which it was written, in UTC, from its name or contents.
    is_whole : bool
        Whether the run was completed.
    notes : list of str
        Notes for reports.
    """

    path: Path
    samples: Callable[[Options], Iterator[ScoredSample]]
    task: str = ""
    variant: str = ""
    model: str | None = None
    system: str | None = None
    folder: Path = Path()
    moment: datetime | None = None
    is_whole: bool = True
    notes: list[str] = field(default_factory=list)


def find_item(where: str, record: Record, within: Sequence[str], options: Options, own_id: str | None) -> str:
    """Return a sample's id: the field that the user names, or else the id that its log gives it."""
    name = options.id_column
    item = own_id if name is None else find_field(record, name, *within)
    if not item:
        missing = "id" if name is None else f"field {name!r}"
        raise InputError(
            f"{where}: no {missing}; fields: {', '.join(record)}",
            remedy=f"name it with {spell('columns', 'item=COLUMN')}",
        )
    return item


def digest_input(value: Any) -> str:
    """Return a digest of the input, with which samples of one id are checked to have the same input."""
    return hashlib.md5(json.dumps(value, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


_DAY = r"(?P<year>(?:19|20)\d\d)(?P<mark>-?)(?P<month>\d\d)(?P=mark)(?P<day>\d\d)"
_ANOTHER_DAY = r"[T_ -](?:19|20)\d\d-?\d\d-?\d\d(?!\d)"
_SECOND = r"[-:.]?(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
_TIME = rf"(?!{_ANOTHER_DAY})[T_ -]?(?P<hour>\d\d)[-:.]?(?P<minute>\d\d)(?:{_SECOND})?"
_ZONE = r"(?:Z|(?P<sign>[+-])(?P<hours>\d\d)[-:]?(?P<minutes>\d\d)(?!\d))"

DATE = re.compile(rf"(?<!\d){_DAY}(?:(?:{_TIME})(?:{_ZONE})?(?![\d])|(?!\d))")
"""Pattern of dates and times in file names of the harness, of Inspect and of people."""


def parse_date(name: str) -> datetime | None:
    """Return the date in a name, in UTC unless it names another zone, or None if there is no date.

    If there are several, it is one with a time of day, the one at the start of the name, or else the last one. The
    name of a task may contain a day.

    Examples
    --------
    >>> (str(parse_date("samples_gsm8k_2024-05-01T12-00-00.5.jsonl")),
    ...  str(parse_date("2024-05-01T12-00-00+02-00_arc_x.eval")))
    ('2024-05-01 12:00:00.500000+00:00', '2024-05-01 10:00:00+00:00')
    >>> str(parse_date("night-20240501.jsonl")), parse_date("mmlu_2024.jsonl")
    ('2024-05-01 00:00:00+00:00', None)
    """
    stamp = _find_date(name)
    return None if stamp is None else _parse_match(stamp)


def remove_date(name: str) -> str:
    """Return a name without its date, and without the punctuation that is then left at its ends.

    Examples
    --------
    >>> remove_date("gsm8k_2024-05-01"), remove_date("live_2024-06-24_2024-08-01T12-00-00"), remove_date("2024-05-01")
    ('gsm8k', 'live_2024-06-24', '')
    """
    stamp = _find_date(name)
    return name if stamp is None else (name[: stamp.start()] + name[stamp.end() :]).strip("_-. ")


def _find_date(name: str) -> re.Match[str] | None:
    valid = [match for match in DATE.finditer(name) if _parse_match(match) is not None]
    dates = [match for match in valid if match["hour"]] or valid
    if not dates:
        return None
    return dates[0] if dates[0].start() == 0 else dates[-1]


def _parse_match(match: re.Match[str]) -> datetime | None:
    fields = {key: int(value) for key, value in match.groupdict().items() if value and value.isdigit()}
    micro = int((match["fraction"] or "0").ljust(6, "0")[:6])
    try:
        hour, minute, second = (fields.get(name, 0) for name in ("hour", "minute", "second"))
        date = datetime(fields["year"], fields["month"], fields["day"], hour, minute, second, micro, UTC)
    except ValueError:
        return None
    offset = timedelta(hours=fields.get("hours", 0), minutes=fields.get("minutes", 0))
    return date + offset if match["sign"] == "-" else date - offset


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
            if log.system is None or log.system in systems:
                with suppress(SigdaskError, OSError):
                    texts |= {
                        (log.system or sample.system, name): build_texts(sample.record)
                        for sample in log.samples(self.options)
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
