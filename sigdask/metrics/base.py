"""Metrics: a metric has a name and is bound to the fields of the data that it sums."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import partial
from typing import Any, ClassVar

from sigdask.counts import Counts
from sigdask.counts.fields import Array, Bools
from sigdask.errors import InputError
from sigdask.interface import spell
from sigdask.metrics.extraction import Extraction
from sigdask.metrics.forms import MEAN, Form, Ratios, is_user_function, reduce_by_address
from sigdask.text import suggest_name


@dataclass(frozen=True, slots=True)
class BoundMetric:
    """A metric bound to data: the fields that it sums over units, and the formula of a score from the sums.

    Attributes
    ----------
    name : str
        Name, as the user wrote it.
    fields : tuple of str
        Names in `Counts.fields`, in the order the form takes them.
    form : Form
        Formula that computes the score from the sums.
    higher_is_better : bool
        Whether a higher score is better.
    own : mapping of str to array, shape (n_items, n_systems) or (n_items, 1)
        Fields that the metric itself counted, from whole outputs.
    signature : str or None
        The scorer library's description of its settings, for reports.
    held : bool array, shape (n_items, n_systems), or None
        Whether each system has each item, if some lack it. Only these items are compared.
    restriction : callable or None
        Function of a mask of items that returns the metric on these, if its fields depend on which items are compared.
    """

    name: str
    fields: tuple[str, ...]
    form: Form
    higher_is_better: bool = True
    own: Mapping[str, Array] = field(default_factory=dict)
    signature: str | None = None
    held: Bools | None = None
    restriction: Callable[[Bools], BoundMetric] | None = None

    def restrict(self, items: Bools) -> BoundMetric:
        """Return the metric for the comparison of some items, shape (n_items,)."""
        return self if self.restriction is None or items.all() else self.restriction(items)

    def get_field(self, name: str, counts: Counts) -> Array:
        """Return a field that the metric sums: one that it counted itself, or else the field of the data."""
        return self.own[name] if name in self.own else counts.field(name)

    def get_rounding(self, name: str, counts: Counts) -> tuple[float, ...]:
        """Return, for each system, the maximum error of its numbers in a field."""
        rounding = getattr(self.own if name in self.own else counts.fields, "rounding", {})
        errors: tuple[float, ...] = rounding.get(name, (0.0,))
        return errors * counts.n_systems if len(errors) == 1 else errors


class _WithoutFields:
    """Base of bound metrics that sum no fields of the data."""

    __slots__ = ()
    signature: ClassVar[None] = None
    held: ClassVar[None] = None


@dataclass(frozen=True, slots=True)
class BoundSets(_WithoutFields):
    """A metric that scores sets of distinct terms, bound to data whose items are sets of terms.

    Attributes
    ----------
    name : str
        Name, as the user wrote it.
    form : Ratios
        The score of the numbers of distinct right, given and gold terms; one ratio.
    fields : tuple of int
        Indices of the fields that the form uses.
    higher_is_better : bool
        Whether a higher score is better.
    """

    name: str
    form: Ratios
    fields: tuple[int, ...] = (0, 1, 2)
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class BoundRanks(_WithoutFields):
    """A metric that scores the order of predicted numbers, bound to data with gold numbers.

    Attributes
    ----------
    name : str
        Name, as the user wrote it.
    statistic : str
        spearman, kendall, AUC or average-precision.
    """

    name: str
    statistic: str

    form: ClassVar[None] = None
    higher_is_better: ClassVar[bool] = True

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "ranks", self.statistic


DEFAULT_SIGNS = 1000
"""Default number of random signs of soft pairwise accuracy."""


@dataclass(frozen=True, slots=True)
class BoundAgreement(_WithoutFields):
    """Agreement with human scores, bound to data. Its systems are metrics and its items are cells.

    A cell is a segment of a translation system, with a human score.

    Attributes
    ----------
    name : str
        Name, as the user wrote it.
    statistic : str
        The part of the name after `meta-`.
    level : {"segment", "system"}
        Whether scores of segments are compared, or means of systems.
    group : {"none", "item", "system"}
        Scope within which segment scores are compared before averaging.
    undefined : {"omit", "zero"}
        Whether undefined groups are omitted from the mean, or count as 0.
    swaps_pairs : bool
        Whether decisions on pairs are swapped instead of scores.
    epsilon : float
        Largest difference of scores that is a tie, if decisions on pairs are swapped.
    signs : int
        Number of random sign flips for each p-value of soft pairwise accuracy.
    """

    name: str
    statistic: str
    level: str = "segment"
    group: str = "none"
    undefined: str = "omit"
    swaps_pairs: bool = False
    epsilon: float = 0.0
    signs: int = DEFAULT_SIGNS

    form: ClassVar[None] = None
    higher_is_better: ClassVar[bool] = True

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "agreement", *astuple(self)[1:]


@dataclass(frozen=True, slots=True)
class Metric:
    """A score of fields summed over items, or of sets of terms united over items.

    Attributes
    ----------
    name : str
        Name, as the user wrote it.
    bind : callable
        Function of `Counts` that returns a bound metric. It raises InputError if the data lack required fields.
    extraction : Extraction or None
        Statistics of whole outputs, which may take long. `bind` finds them in the counts or computes them.
    takes_replicates : bool
        Whether `bind` takes all replicates of the data, so that its score is not a mean over replicates.
    """

    name: str
    bind: Callable[[Counts], BoundMetric | BoundSets | BoundRanks | BoundAgreement]
    extraction: Extraction | None = None
    takes_replicates: bool = False

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "metric", self.name, self.bind if is_user_function(self.bind) else None


@dataclass(frozen=True, slots=True)
class BlackBox(_WithoutFields):
    """A score of whole outputs: `function(outputs, gold) -> float`, called for each system and trial.

    Attributes
    ----------
    name : str
        Name, as the user wrote it.
    function : callable
        Function of the list of a system's outputs and the list of gold items (None without gold).
    higher_is_better : bool
        Whether a higher score is better.
    """

    name: str
    function: Callable[[list[Any], list[Any] | None], float]
    higher_is_better: bool = True

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "black box", self.name, self.function, self.higher_is_better

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the function by its address if it has one, so that no code is sent."""
        return reduce_by_address(BlackBox, self.name, self.function, self.higher_is_better)


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed metric name: `f[LOC]:beta=2` is base f, label LOC, option beta.

    Attributes
    ----------
    name : str
        The whole name, as the user wrote it.
    base : str
        The name without label and options.
    label : str or None
        The label in brackets. None without one.
    options : mapping of str to str
        Values of the options, as text.
    """

    name: str
    base: str
    label: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(name: str) -> Spec:
        """Split a metric name into base, label and options.

        Raises
        ------
        InputError
            The name is not of the form NAME[LABEL]:OPTION=VALUE,...

        Examples
        --------
        >>> Spec.parse("f[LOC]:beta=2")
        Spec(name='f[LOC]:beta=2', base='f', label='LOC', options={'beta': '2'})
        >>> Spec.parse("macro-f1(labels=A+B)").options
        {'labels': 'A+B'}
        >>> Spec.parse("macro-f1:labels=Cause-Effect(e1,e2)+Other,zero_division=1").options
        {'labels': 'Cause-Effect(e1,e2)+Other', 'zero_division': '1'}
        """
        match = re.fullmatch(r"([^\[\]():]+)(?:\[(.*)\])?(?:\((.*)\)|:(.*))?", name.strip())
        if match is None:
            raise InputError(f"metric {name!r}: expected NAME, NAME[LABEL], NAME:OPTION=VALUE or MODULE:ATTRIBUTE")
        base, label, bracketed, unbracketed = match.groups()
        options = {}
        # A comma ends a value only before another OPTION=, since labels may contain commas.
        for option in filter(None, re.split(r",(?=\s*[a-z_]+\s*=|$)", bracketed or unbracketed or "")):
            key, equals, value = option.partition("=")
            if not equals:
                raise InputError(f"metric {name!r}: option {option!r} should be OPTION=VALUE")
            options[key.strip()] = value.strip()
        return Spec(name, base.strip(), label, options)

    def check_options(self, *allowed: str, label: bool = False) -> None:
        """Raise InputError if the name has an option or label that the metric does not take."""
        if self.label is not None and not label:
            raise InputError(f"metric {self.name!r}: {self.base} takes no [label]")
        for key in self.options:
            if key not in allowed:
                hint = suggest_name(key, allowed, f"; it has: {', '.join(allowed) or 'none'}")
                raise InputError(f"metric {self.name!r}: {self.base} has no option {key!r}{hint}")

    def get_number(self, key: str, default: str) -> str:
        """Return the text of an option that must be a number of 0 or more. Raise InputError for any other value."""
        text = self.options.get(key, default)
        if not re.fullmatch(r"\d+(\.\d+)?", text):
            raise InputError(f"metric {self.name!r}: {key} = {text!r} is not a number of 0 or more")
        return text

    def get_whole_number(self, key: str, default: int, most: int) -> int:
        """Return an option that must be a whole number from 1 to `most`. Raise InputError for any other value."""
        text = self.options.get(key, str(default))
        if not re.fullmatch(r"\d{1,18}", text) or not 1 <= int(text) <= most:
            raise InputError(f"metric {self.name!r}: {key} = {text} must be a whole number from 1 to {most:,}")
        return int(text)

    def get_choice(self, key: str, choices: tuple[str, ...]) -> str:
        """Return an option that must be one of `choices`, by default the first. Raise InputError for others."""
        text = self.options.get(key, choices[0])
        if text not in choices:
            raise InputError(f"metric {self.name!r}: {key} = {text!r} must be one of {', '.join(choices)}")
        return text

    def get_flag(self, key: str, *, default: bool = False) -> bool:
        """Return as bool an option that must be 0 or 1. Raise InputError for any other value."""
        return self.get_choice(key, ("1", "0") if default else ("0", "1")) == "1"

    def get_zero_division(self) -> float:
        """Return the score used for 0/0: 0, or 1 if the option zero_division is 1."""
        return float(self.get_flag("zero_division"))


def bind_fields(bound: BoundMetric, needed: str, counts: Counts) -> BoundMetric:
    """Return a metric with its fields; raise if the data lack the first one, which the words `needed` describe."""
    if bound.fields[0] not in counts.fields:
        raise build_lacking_error(bound.name, needed, counts)
    return bound


def get_texts(name: str, counts: Counts) -> tuple[Sequence[Array], Array]:
    """Return each system's texts and each item's references; raise if there are none."""
    if counts.outputs is None or counts.outputs.gold is None or "segments" not in counts.fields:
        raise build_lacking_error(name, "texts and references (formats segments, speech)", counts)
    return counts.outputs.systems, counts.outputs.gold


def list_score_columns(counts: Counts) -> list[str]:
    """Return the names of the score columns in the data."""
    return [field[6:-1] for field in counts.fields if field.startswith("score[")]


def get_items_field(score_field: str, counts: Counts) -> str:
    """Return the field of item weights in a column of scores: the column's own field, or that of all columns."""
    name = score_field.replace("score[", "items[")
    return name if name != score_field and name in counts.fields else "items"


def has_rankings(counts: Counts) -> bool:
    """Return whether the data are rankings and judgements (format trec)."""
    return "topics" in counts.fields and counts.outputs is not None


def build_lacking_error(name: str, needed: str, counts: Counts) -> InputError:
    """Return the error for data that lack what a metric needs."""
    names = [field for field in counts.fields if field != "items"]
    has_scores = all(field.split("[")[0] == "score" for field in names)
    has_labels = "correct" in names and any(field.startswith(("tp[", "gold[")) for field in names)
    found = "only scores" if has_scores else "labels" if has_labels else f"only {', '.join(names[:6])}"
    usual = f", such as {counts.suggested[0]}" if counts.suggested else ""
    remedy = (
        f"leave out {spell('metrics')}, or give the outputs of the systems"
        if has_scores
        else f"choose another with {spell('metrics')}{usual}"
    )
    if needed.startswith("texts") and not has_scores:
        remedy += ", or write each text on a line of its own (docs/formats/texts.md)"
    return InputError(f"metric {name!r} needs {needed}, but these data have {found}; {remedy}")


AnyBound = BoundMetric | BoundSets | BoundRanks | BoundAgreement | BlackBox
"""A metric bound to data, or a metric of whole outputs, which needs no binding."""


def mean(spec: Spec) -> Metric:
    """Return the metric that is the mean of the item scores; mean[COLUMN] for one of several columns.

    The option better=higher|lower gives the direction.
    """
    spec.check_options("better", label=True)
    is_higher_better = spec.get_choice("better", ("higher", "lower")) == "higher"
    field = "score" if spec.label is None else f"score[{spec.label}]"
    return Metric(spec.name, partial(bind_share, spec.name, field, higher_is_better=is_higher_better))


def bind_share(name: str, field_name: str, counts: Counts, *, higher_is_better: bool = True) -> BoundMetric:
    """Bind the mean over items of a field."""
    if field_name not in counts.fields:
        if columns := list_score_columns(counts):
            raise InputError(f"metric {name!r}: name one of the columns of scores: {', '.join(columns)}")
        has_labels = field_name == "correct"
        needed = "labels (formats labels, conll, ...)" if has_labels else "item scores (formats wide, long, ...)"
        raise build_lacking_error(name, needed, counts)
    return BoundMetric(name, (field_name, get_items_field(field_name, counts)), MEAN, higher_is_better)
