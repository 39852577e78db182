"""Answers to questions in the JSON of SQuAD or Hugging Face, compared with the answers of people.

The gold file is `{"version": ..., "data": [{"title", "paragraphs": [{"context", "qas": [{"id", "answers":
[{"text"}]}]}]}]}`, or records of `id` and `answers: {"text": [...]}`. Systems are `{id: answer}`, or records of `id`
and `prediction_text`.

Metrics are exact_match and f1, as shares of 1, by the official scripts (evaluate-v1.1.py of Rajpurkar, Zhang, Lopyrev &
Liang 2016; evaluate-v2.0.py of Rajpurkar, Jia & Liang 2018). The scripts differ where an answer is empty after
normalisation: in version 2.0 an empty answer equals an empty gold answer, in version 1.1 its F1 is 0. Questions without
a gold answer are those of version 2.0. `squad:version=1.1|2.0` chooses.

A question without an answer counts 0, as in the script of version 1.1. The script of version 2.0 leaves it out of the
system's score. `--missing pairwise` does the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError, MissingColumnError
from sigdask.formats.reading.files import format_cell, is_parquet
from sigdask.formats.reading.json_records import is_json, iter_records, read_head, read_keys, read_records
from sigdask.formats.reading.listings import FileListing, normalize_words
from sigdask.formats.reading.options import Options, Source, list_system_names
from sigdask.formats.reading.replicates import build_score_counts
from sigdask.text import describe_items


def compute_scores(answer: str, gold: Sequence[Sequence[str]], *, nothing_is_an_answer: bool) -> tuple[float, float]:
    """Return exact match and F1 of an answer, each as the highest value over the gold answers.

    Parameters
    ----------
    answer : str
        The answer.
    gold : sequence of sequence of str
        The words of each gold answer.
    nothing_is_an_answer : bool
        Whether an answer without words is right if a gold answer has no words, as in version 2.0.

    Examples
    --------
    >>> compute_scores("the Denver team", [["denver", "broncos"], ["broncos"]], nothing_is_an_answer=False)
    (0.0, 0.5)
    """
    words = normalize_words(answer)

    def compute_f1(gold_words: Sequence[str]) -> float:
        if not words or not gold_words:
            return float(nothing_is_an_answer and words == list(gold_words))
        n_same = sum((Counter(words) & Counter(gold_words)).values())
        return 2 * n_same / (len(words) + len(gold_words))

    return float(any(words == gold_words for gold_words in gold)), max(map(compute_f1, gold))


VERSIONS = ("1.1", "2.0")
SQUAD_START = re.compile(r'"(paragraphs|qas)"\s{0,9}:\s{0,9}\[')
VERSION_2 = '"v2.0"'
METRIC_NAMES = ("exact_match", "f1")


class Question(NamedTuple):
    """A question with its gold answers (none if it has no answer), title, paragraph and answerability."""

    answers: list[str]
    groups: Mapping[str, str]


def read_squad(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read the systems' answers and the gold answers, and return counts of exact match and F1."""
    assert gold is not None
    questions = _read_questions(gold)
    # in 2.0 some questions have no answer
    is_second = VERSION_2 in read_head(gold) or not all(question.answers for question in questions.values())
    version = options.own.get("version") or VERSIONS[is_second]
    gold_words = {item: _split_gold_answers(question, version) for item, question in questions.items()}
    names = list_system_names(sources)
    matrices = {name: np.full((len(questions), len(sources)), np.nan) for name in METRIC_NAMES}
    warnings = []
    for k, source in enumerate(sources):
        answers = _read_answers(source.path)
        missing = [item for item in questions if item not in answers]
        if len(missing) == len(questions):
            first = next(iter(answers))
            raise InputError(f"answers none of the questions of {gold}; its first id is {first!r}", file=source.path)
        if missing and (options.missing or "zero") == "zero" and (version == "1.1" or options.missing):
            warnings.append(f"{source.path}: {describe_items(missing, 'question')} not answered: counted 0")
        if extra := [item for item in answers if item not in questions]:
            warnings.append(f"{source.path}: {describe_items(extra, 'answer')} to no question of {gold}: left out")
        for row, item in enumerate(questions):
            if item in answers:
                answer_scores = compute_scores(answers[item], gold_words[item], nothing_is_an_answer=version != "1.1")
                matrices["exact_match"][row, k], matrices["f1"][row, k] = answer_scores
    if version == "1.1" and options.missing is None:
        options = replace(options, missing="zero")
    groups = _build_groups(questions, options)
    return build_score_counts(matrices, names, tuple(questions), groups=groups, options=options, warnings=warnings)


def sniff(sources: Sequence[Source], gold: Path | None, options: Options) -> bool:  # noqa: ARG001
    """Return whether a gold file has SQuAD's paragraphs with questions, or records with lists of answers."""
    if gold is None or not gold.is_file() or sources[0].path.is_dir():
        return False
    if is_json(gold) and SQUAD_START.search(read_head(gold)):
        return True
    return {"id", "answers.text"} <= {*read_keys(gold)}


def _read_questions(path: Path) -> dict[str, Question]:
    """Read gold answers.

    Raises
    ------
    InputError
        A record is not a question, or an id occurs twice.
    """
    questions = FileListing(path, {}, {})
    for place, qa, groups in _iter_questions(path):
        texts = _get_texts(qa.get("answers")) if isinstance(qa, dict) else None
        if texts is None or not (item := format_cell(qa.get("id"))):
            raise InputError(
                file=path, place=place, found=f"{str(qa)[:60]}", expected="a question with `id` and `answers`"
            )
        questions.add(item, Question(texts, {**groups, "answerable": "yes" if texts else "no"}), place)
    return questions.items


def _iter_questions(path: Path) -> Iterator[tuple[str, Any, dict[str, str]]]:
    """Yield the place, the record and the groups of each question."""
    contexts: dict[tuple[str, str], str] = {}
    for place, record in _iter_gold_records(path):
        if "paragraphs" not in record:
            title, context = format_cell(record.get("title")), format_cell(record.get("context"))
            paragraph = contexts.setdefault((title, context), f"{title}/{len(contexts) + 1}")
            yield place, record, {"title": title, "paragraph": paragraph}
            continue
        title = format_cell(record.get("title")) or place
        for k, part in enumerate(record["paragraphs"] or (), start=1):
            for qa in part.get("qas", ()) if isinstance(part, dict) else ():
                yield f"{place}, paragraph {k}", qa, {"title": title, "paragraph": f"{title}/{k}"}


def _iter_gold_records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if is_parquet(path):
        yield from ((place.removeprefix(f"{path}, "), record) for place, record in iter_records(path))
        return
    for record in read_records(path, lambda value: "answers" in value or "paragraphs" in value):
        if not isinstance(record.value, dict):
            raise InputError(
                file=path, place=record.place, found=f"{str(record.value)[:40]}", expected="questions and answers"
            )
        yield record.place, record.value


def _get_texts(answers: Any) -> list[str] | None:
    """Return the answer texts of a list of objects or of an object of lists; None for other values."""
    if isinstance(answers, dict):
        answers = answers.get("text")
    elif isinstance(answers, list):
        answers = [answer.get("text") if isinstance(answer, dict) else None for answer in answers]
    is_list = isinstance(answers, list) and all(isinstance(text, str) for text in answers)
    return list(answers) if is_list else None


def _split_gold_answers(question: Question, version: str) -> list[list[str]]:
    """Return the words of each gold answer; 2.0 skips empty answers unless all are empty."""
    words = [normalize_words(answer) for answer in question.answers]
    if version == "1.1":
        return words or [[]]
    return [answer_words for answer_words in words if answer_words] or [[]]


def _read_answers(path: Path) -> dict[str, str]:
    """Read a system's answers.

    Raises
    ------
    InputError
        An answer is not a text, or an id occurs twice.
    """
    answers = FileListing(path, {}, {})
    for record in read_records(path, lambda value: "prediction_text" in value):
        item, text = record.key, record.value
        if item is None:
            value = record.value if isinstance(record.value, dict) else {}
            item, text = format_cell(value.get("id")), value.get("prediction_text")
        if not item or not isinstance(text, str):
            raise InputError(
                file=path,
                place=record.place,
                found=f"{str(record.value)[:60]}",
                expected="an answer: ID: TEXT, or an object with `id` and `prediction_text`",
            )
        answers.add(item, text, record.place)
    return answers.items


def _build_groups(questions: Mapping[str, Question], options: Options) -> dict[str, list[str]]:
    first_groups = next(iter(questions.values())).groups
    for name in options.groups:
        if name not in first_groups:
            known = ", ".join(first_groups)
            raise MissingColumnError(f"no column {name!r} to group questions by; columns: {known}", name)
    columns = {name: [question.groups[name] for question in questions.values()] for name in first_groups}
    return {name: column for name, column in columns.items() if name in options.groups or len({*column}) > 1}
