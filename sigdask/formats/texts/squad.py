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

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats.reading.files import format_cell, read_head
from sigdask.formats.reading.json_records import JsonRecord, read_records
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


Question = tuple[list[str], dict[str, str]]
"""The gold answers of a question (none if it has no answer), and its title, paragraph and answerability."""


def read_squad(sources: Sequence[Source], gold: Path | None, options: Options) -> Counts:
    """Read the systems' answers and the gold answers, and return counts of exact match and F1."""
    assert gold is not None
    questions = _read_questions(gold)
    is_second = '"v2.0"' in read_head(gold).text or not all(answers for answers, _ in questions.values())
    version = options.own.get("version") or ("2.0" if is_second else "1.1")  # in 2.0 some questions have no answer
    gold_words = {item: _split_gold_answers(answers, version) for item, (answers, _) in questions.items()}
    scores = np.full((2, len(questions), len(sources)), np.nan)
    warnings = []
    for k, source in enumerate(sources):
        answers = _read_answers(source.path)
        if questions.keys().isdisjoint(answers):
            first = next(iter(answers), None)
            raise InputError(f"answers none of the questions of {gold}; its first id is {first!r}", file=source.path)
        if extra := [item for item in answers if item not in questions]:
            warnings.append(f"{source.path}: {describe_items(extra, 'answer')} to no question of {gold}: left out")
        for row, item in enumerate(questions):
            if item in answers:
                is_second = version != "1.1"
                scores[:, row, k] = compute_scores(answers[item], gold_words[item], nothing_is_an_answer=is_second)
    if version == "1.1" and options.missing is None:
        options = replace(options, missing="zero")
    all_groups = [groups for _, groups in questions.values()]
    columns = {name: [groups[name] for groups in all_groups] for name in all_groups[0]}
    matrices = {"exact_match": scores[0], "f1": scores[1]}
    systems = list_system_names(sources)
    return build_score_counts(matrices, systems, tuple(questions), groups=columns, options=options, warnings=warnings)


def _read_questions(path: Path) -> dict[str, Question]:
    """Read gold answers.

    Raises
    ------
    InputError
        A record is not a question, or an id occurs twice.
    """
    questions = FileListing(path, {}, {})
    contexts: dict[str, str] = {}
    for record in read_records(path, lambda value: "answers" in value or "paragraphs" in value):
        try:
            for groups, qas in _iter_paragraphs(record, contexts):
                for qa in qas:
                    texts = _get_texts(qa["answers"])
                    question = (texts, {**groups, "answerable": "yes" if texts else "no"})
                    questions.add(format_cell(qa["id"]), question, record.place)
        except (AttributeError, KeyError, TypeError):
            expected = "questions with `id` and `answers`, as records or in `qas` of `paragraphs`"
            raise InputError(file=path, place=record.place, found=str(record.value)[:60], expected=expected) from None
    return questions.items


def _iter_paragraphs(record: JsonRecord, contexts: dict[str, str]) -> Iterator[tuple[dict[str, str], Iterable[Any]]]:
    """Yield the groups and the questions of each paragraph of an article, or of the record of one question."""
    title = format_cell(record.value.get("title"))
    if "paragraphs" not in record.value:
        context = f"{title}/{format_cell(record.value.get('context'))}"
        paragraph = contexts.setdefault(context, f"{title}/{len(contexts) + 1}")
        yield {"title": title, "paragraph": paragraph}, [record.value]
        return
    title = title or record.place
    for number, part in enumerate(record.value["paragraphs"], start=1):
        yield {"title": title, "paragraph": f"{title}/{number}"}, part["qas"]


def _get_texts(answers: Any) -> list[str]:
    """Return the answer texts of a list of objects or of an object of lists."""
    texts = answers["text"] if isinstance(answers, dict) else [answer["text"] for answer in answers]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TypeError
    return texts


def _split_gold_answers(answers: Sequence[str], version: str) -> list[list[str]]:
    """Return the words of each gold answer; 2.0 skips empty answers unless all are empty."""
    words = [normalize_words(answer) for answer in answers]
    return [answer_words for answer_words in words if answer_words or version == "1.1"] or [[]]


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
        if item is None and isinstance(record.value, dict):
            item, text = format_cell(record.value.get("id")), record.value.get("prediction_text")
        if not item or not isinstance(text, str):
            raise InputError(
                file=path,
                place=record.place,
                found=f"{str(record.value)[:60]}",
                expected="an answer: ID: TEXT, or an object with `id` and `prediction_text`",
            )
        answers.add(item, text, record.place)
    return answers.items
