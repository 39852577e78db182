"""SQuAD: answers to questions about paragraphs, and the gold answers, in SQuAD's own JSON or that of Hugging Face.

Gold is `{"version": ..., "data": [{"title", "paragraphs": [{"context", "qas": [{"id", "answers": [{"text"}]}]}]}]}`,
or records of `id` and `answers: {"text": [...]}`. Systems are `{id: answer}`, or records of `id` and `prediction_text`.
Metrics are exact_match and f1, shares of 1. Questions without a gold answer are those of version 2.0, where the empty
text is right; `squad:version=1.1|2.0` says it. A question that is not answered counts 0 in version 1.1, as in the
official script; that of 2.0 leaves it out of the system's score, which is `--missing pairwise`, asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.averages import of_matrices
from sigdask.formats.reading.files import is_parquet
from sigdask.formats.reading.json.records import head, is_json, read_records
from sigdask.formats.reading.json.rows import first_record, records
from sigdask.formats.reading.options import Options, Source, system_names
from sigdask.formats.reading.rows import as_text, repeated_id
from sigdask.formats.texts.answers.matching import scores, words_of
from sigdask.text import some

VERSIONS = ("1.1", "2.0")
OWN = re.compile(r'"(paragraphs|qas)"\s{0,9}:\s{0,9}\[')
SECOND = '"v2.0"'
METRICS = ("exact_match", "f1")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its gold answers.

    Attributes
    ----------
    place : str
        Where it stands, for errors.
    answers : list of str
        Empty where the right answer is none.
    groups : mapping of str to str
        Title, paragraph, and whether it has an answer.
    """

    place: str
    answers: list[str]
    groups: Mapping[str, str]


def read_squad(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read answers and gold answers; see above."""
    options.only("squad", version=VERSIONS)
    if gold is None:
        raise InputError("format squad: no gold answers; give --gold FILE")
    questions = _questions(gold)
    version = options.own.get("version") or _version(gold, questions)
    right = {item: _gold_words(question, version) for item, question in questions.items()}
    names = system_names(sources)
    matrices = {name: np.full((len(questions), len(sources)), np.nan) for name in METRICS}
    warnings = []
    for k, source in enumerate(sources):
        given = _answers(source.path)
        absent = [item for item in questions if item not in given]
        if len(absent) == len(questions):
            raise InputError(
                f"{source.path}: answers none of the questions of {gold}; its first id is {next(iter(given))!r}"
            )
        if absent and (options.missing or "zero") == "zero" and (version == "1.1" or options.missing):
            warnings.append(f"{source.path}: {some(absent, 'question')} not answered: counted 0")
        if extra := [item for item in given if item not in questions]:
            warnings.append(f"{source.path}: {some(extra, 'answer')} to no question of {gold}: left out")
        for row, item in enumerate(questions):
            if item in given:
                found = scores(given[item], right[item], nothing_is_an_answer=version != "1.1")
                matrices["exact_match"][row, k], matrices["f1"][row, k] = found
    if version == "1.1" and options.missing is None:
        options = replace(options, missing="zero")
    return of_matrices(
        matrices,
        names,
        tuple(questions),
        groups=_groups(questions, options),
        options=options,
        warnings=warnings,
    )


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Know SQuAD by its gold file: paragraphs with questions, or records with lists of answers."""
    if gold is None or not gold.is_file() or sources[0].path.is_dir():
        return False
    if is_json(gold) and OWN.search(head(gold)):
        return True
    first = first_record(gold) if is_parquet(gold) or '"answers"' in head(gold) else None
    return first is not None and "id" in first and isinstance(_texts(first.get("answers")), list)


def _questions(path: Path) -> dict[str, Question]:
    """Read gold answers.

    Raises
    ------
    InputError
        For a record that is no question, and for an id that stands twice.
    """
    found: dict[str, Question] = {}
    for item, question in _listed(path):
        if item in found:
            raise repeated_id(f"{path}, {question.place}", repr(item), f"in {found[item].place}")
        found[item] = question
    return found


def _version(path: Path, questions: Mapping[str, Question]) -> str:
    """Return the version of the task: in 2.0 some questions have no answer."""
    is_second = SECOND in head(path) or not all(question.answers for question in questions.values())
    return VERSIONS[is_second]


def _listed(path: Path) -> Iterator[tuple[str, Question]]:
    contexts: dict[tuple[str, str], str] = {}
    for place, record in _gold_records(path):
        if "paragraphs" not in record:
            title, context = as_text(record.get("title")), as_text(record.get("context"))
            paragraph = contexts.setdefault((title, context), f"{title}/{len(contexts) + 1}")
            yield _question(path, place, record, {"title": title, "paragraph": paragraph})
            continue
        title = as_text(record.get("title")) or place
        for k, part in enumerate(record["paragraphs"] or (), start=1):
            for qa in part.get("qas", ()) if isinstance(part, dict) else ():
                yield _question(path, f"{place}, paragraph {k}", qa, {"title": title, "paragraph": f"{title}/{k}"})


def _gold_records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if is_parquet(path):
        yield from ((place.removeprefix(f"{path}, "), record) for place, record in records(path))
        return
    for record in read_records(path, lambda found: "answers" in found or "paragraphs" in found):
        if not isinstance(record.value, dict):
            raise InputError(f"{path}, {record.place}: found {str(record.value)[:40]}, expected questions and answers")
        yield record.place, record.value


def _question(path: Path, place: str, qa: Any, groups: dict[str, str]) -> tuple[str, Question]:
    texts = _texts(qa.get("answers")) if isinstance(qa, dict) else None
    if texts is None or not as_text(qa.get("id")):
        raise InputError(f"{path}, {place}: found {str(qa)[:60]}, expected a question with `id` and `answers`")
    return as_text(qa["id"]), Question(place, texts, {**groups, "answerable": "yes" if texts else "no"})


def _texts(answers: Any) -> list[str] | None:
    """Return the texts of answers: of a list of objects, or an object of lists; None of all else."""
    if isinstance(answers, dict):
        answers = answers.get("text")
    elif isinstance(answers, list):
        answers = [answer.get("text") if isinstance(answer, dict) else None for answer in answers]
    is_list = isinstance(answers, list) and all(isinstance(text, str) for text in answers)
    return list(answers) if is_list else None


def _gold_words(question: Question, version: str) -> list[list[str]]:
    """Return the words of each gold answer; 2.0 passes over those without any, and 1.1 has no question without one."""
    words = [words_of(answer) for answer in question.answers]
    if version == "1.1":
        return words or [[]]
    return [own for own in words if own] or [[]]


def _answers(path: Path) -> dict[str, str]:
    """Read a system's answers.

    Raises
    ------
    InputError
        For an answer that is no text, and an id that stands twice.
    """
    found: dict[str, str] = {}
    places: dict[str, str] = {}
    for record in read_records(path, lambda value: "prediction_text" in value):
        item, text = record.key, record.value
        if item is None:
            value = record.value if isinstance(record.value, dict) else {}
            item, text = as_text(value.get("id")), value.get("prediction_text")
        if not item or not isinstance(text, str):
            raise InputError(
                f"{path}, {record.place}: found {str(record.value)[:60]}, expected an answer: ID: TEXT, or an object "
                "with `id` and `prediction_text`"
            )
        if item in found:
            raise repeated_id(f"{path}, {record.place}", repr(item), f"in {places[item]}")
        found[item], places[item] = text, record.place
    return found


def _groups(questions: Mapping[str, Question], options: Options) -> dict[str, list[str]]:
    known = next(iter(questions.values())).groups
    for name in options.groups:
        if name not in known:
            raise InputError(f"no column {name!r} to group questions by; columns at hand: {', '.join(known)}")
    columns = {name: [question.groups[name] for question in questions.values()] for name in known}
    return {name: column for name, column in columns.items() if name in options.groups or len({*column}) > 1}
