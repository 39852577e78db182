"""Tests that digests stay what they were, wherever classes are and whatever their names are."""

import dataclasses
import functools
import importlib
import json
import pkgutil
import shutil
import sqlite3
import sys
import typing
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import panel_kinds
import pytest

import sigdask
from sigdask.errors import InputError
from sigdask.identity import get_identity, known_as
from sigdask.metrics import METRICS, find_metric
from sigdask.metrics.parsing import WORD_METRICS
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.nightly.store import open_store
from sigdask.randomization.families.max_t import MaxTFamily
from sigdask.randomization.families.tukey import Relabelling
from sigdask.randomization.panels.digests import digest
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.ranks import RankPanel
from sigdask.randomization.panels.sets import PresencePanel
from sigdask.randomization.panels.sums import Panel

KEPT_FOLDER = Path(__file__).parent / "data" / "kept"
GOLDEN_DIGESTS = json.loads((KEPT_FOLDER / "digests_0_1_0.json").read_text())

CORRECTED_DIGESTS: dict[str, str] = {}
"""Digests that a correction has changed since 0.1.0, by name, with the reason: what they counted was wrong."""

RECOUNTED_COMPARISONS: dict[str, dict[str, dict[str, str]]] = {
    "store_0_1_0": {
        "scores": {"family": "max-T divides each difference by its own deviation"},
        "labels": {"family": "max-T divides each difference by its own deviation"},
        "gate": {"pair": "scores shifted by the margin are tried at further margins, which show the smallest"},
    }
}
"""What of the kept stores a correction counts again: store to part to the store's label of it, with the reason."""


ADDED_LATER = {
    f"metric {name}"
    for name in ("hamming-loss", "jaccard", "macro-jaccard", "micro-jaccard", "samples-f1", "samples-precision",
                 "samples-recall", "subset-accuracy", "MAE", "MSE", "RMSE", "R2", *WORD_METRICS, "bracket-precision",
                 "bracket-recall", "bracket-f1", "tag-accuracy", "pass@1",
                 "relation-precision", "relation-recall", "relation-f1", "pearson",
                 "spearman", "kendall", "AUC", "average-precision", "brier", "log-loss", "ECE", "meta-pearson",
                 "meta-spearman", "meta-kendall", "meta-accuracy", "meta-acc-eq", "meta-spa")
}  # fmt: skip
"""What 0.1.0 did not have."""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    yield panel_kinds.import_user_module(tmp_path_factory.mktemp("own"))
    sys.modules.pop("own_kinds")


def compute_digests(own):
    panels = {**panel_kinds.build_sum_panels(), **panel_kinds.build_other_panels(own), **panel_kinds.build_families()}
    return (
        {name: [row.hex() for row in panel.compute_digests().ravel().tolist()] for name, panel in panels.items()}
        | {f"metric {name}": [digest(metric)] for name, metric in panel_kinds.list_metrics().items()}
        | {f"value {name}": [digest(value)] for name, value in panel_kinds.list_values().items()}
    )


def test_every_kind_of_panel_form_and_family_has_the_digest_that_it_had(own):
    digests = compute_digests(own)
    assert digests.keys() - ADDED_LATER == GOLDEN_DIGESTS.keys()
    changed = {name for name in GOLDEN_DIGESTS if digests[name] != GOLDEN_DIGESTS[name]}
    assert changed == CORRECTED_DIGESTS.keys()


def test_no_two_kinds_have_the_same_digest_but_a_metric_beside_others_and_alone():
    counter = Counter(digest for digests in GOLDEN_DIGESTS.values() for digest in digests)
    repeated = {digest for digest, n in counter.items() if n > 1}
    assert {name for name, digests in GOLDEN_DIGESTS.items() if repeated & {*digests}} == {
        "accuracy",
        "macro-f1",
        "fused",
    }


def collect_classes(root, seen):
    """Return the dataclasses of sigdask that a value of a class can hold, by its annotations."""
    if isinstance(root, type) and is_dataclass(root) and root.__module__.startswith("sigdask") and root not in seen:
        seen.add(root)
        hints = typing.get_type_hints(root)
        for field in fields(root):
            collect_classes(hints[field.name], seen)
    for kind in typing.get_args(root):
        collect_classes(kind, seen)
    return seen


def iter_modules(package):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            yield importlib.import_module(module.name)


def list_forms():
    """Return every class among the metrics that scores sums."""
    import sigdask.metrics

    return {
        kind
        for module in iter_modules(sigdask.metrics)
        for kind in vars(module).values()
        if isinstance(kind, type) and is_dataclass(kind) and hasattr(kind, "score")
    }


def test_every_dataclass_that_can_be_hashed_is_known_by_a_tag_of_its_own():
    roots = [Panel, PresencePanel, OutputsPanel, RankPanel, MaxTFamily, Relabelling, *list_forms()]
    hashed = set().union(*(collect_classes(root, set()) for root in roots))
    assert {
        "Panel",
        "PanelMetric",
        "FamilyMember",
        "Lattice",
        "Ratios",
        "Formula",
        "MeanOf",
        "BlackBox",
        "BoundSets",
    } <= {kind.__name__ for kind in hashed}
    identities = {kind: get_identity(kind) for kind in hashed}
    assert [kind for kind, identity in identities.items() if identity is None] == []
    for kind, identity in identities.items():
        assert {*identity.fields} <= {f.name for f in fields(kind)}


def test_no_tag_stands_twice():
    tags = Counter()
    seen = set()
    for module in iter_modules(sigdask):
        for value in vars(module).values():
            if (identity := get_identity(value)) is not None and id(value) not in seen:
                seen.add(id(value))
                tags[identity.tag] += 1
    assert len(tags) >= 30
    assert {tag for tag, n in tags.items() if n > 1} == set()


def test_every_metric_that_has_a_name_can_be_part_of_a_users_own():
    for name in METRICS:
        assert len(digest(find_metric(name))) == 40


def test_a_class_or_function_without_a_tag_raises_instead_of_going_by_its_name():
    @dataclass
    class New:
        x: int = 1

    def new(x):
        return x

    users = [digest(New()), digest(new)]
    assert len(set(users)) == 2
    New.__module__ = new.__module__ = "sigdask.somewhere"
    for value in (New(), new, [New()], {"x": new}):
        with pytest.raises(InputError, match=r"sigdask.somewhere:.*[Nn]ew has no lasting name"):
            digest(value)


def test_a_new_field_must_be_hashed_or_said_not_to_be():
    with pytest.raises(TypeError, match="Point: hashes"):

        @known_as("Point", "x")
        @dataclass
        class Place:
            x: int
            y: int


def test_a_renamed_class_and_a_moved_function_keep_their_digests():
    panel = panel_kinds.build_sum_panels()["mcc"]
    before = panel.compute_digests()

    @known_as("Formula", "title call")
    @dataclass
    class Otherwise:
        title: str
        call: object

        @property
        def function(self):
            return self.call

    form = panel.metrics[0].form
    moved = replace(panel, metrics=(replace(panel.metrics[0], form=Otherwise(form.name, form.function)),))
    assert (moved.compute_digests() == before).all()


def test_a_user_may_inherit_a_class_and_is_told_apart():
    ratios = panel_kinds.build_sum_panels()["accuracy"].metrics[0].form

    class Mine(type(ratios)):
        pass

    assert digest(Mine(ratios.numerators, ratios.denominators)) != digest(ratios)


def build_set_panel(holdings, golden):
    """Build a panel of sets on six units, from pairs of term and unit that each system holds."""
    n_units = 6
    return PresencePanel(
        key=(1, 2),
        addresses=np.arange(n_units),
        holdings=tuple(np.array(sorted(t * n_units + u for t, u in pairs), np.int64) for pairs in holdings),
        golden=np.array(golden, np.bool_),
        pairs=np.array([[0, 1]]),
        metrics=(find_metric("type-f1", panel_kinds.build_terms()).bind(panel_kinds.build_terms()),),
        n_items=n_units,
    )


def test_of_sets_each_term_that_either_system_holds_counts_with_the_units_that_hold_it():
    golden = [True, False, True, False]
    a, b = {(0, 0), (1, 1)}, {(0, 2), (2, 3)}
    before = build_set_panel([a, b], golden).compute_digests()[0, 0].tobytes()
    otherwise = [
        ([a | {(3, 4)}, b], golden),  # a term that A alone holds
        ([a, b | {(3, 4)}], golden),  # or B alone
        ([{(0, 0), (1, 5)}, b], golden),  # held by another unit, by A alone
        ([a, {(0, 2), (2, 5)}], golden),
        ([{(0, 5), (1, 1)}, b], golden),  # of a term that both hold
        ([b, a], golden),  # systems exchanged
        ([a, b], [True, True, True, False]),  # another term is gold
        ([a, b], [True, True, False, False]),  # as many gold terms, and others
    ]
    digests = [build_set_panel(*arguments).compute_digests()[0, 0].tobytes() for arguments in otherwise]
    assert len({before, *digests}) == 1 + len(otherwise)


def test_of_sets_terms_that_neither_system_holds_count_by_their_number_alone():
    golden = [True, False, True, False]
    a, b = {(0, 0), (1, 1)}, {(0, 2), (2, 3)}
    before = build_set_panel([a, b], golden).compute_digests()[0, 0].tobytes()
    assert (
        build_set_panel([a, b], [*golden, False]).compute_digests()[0, 0].tobytes() == before
    )  # another system's terms
    third = replace(
        build_set_panel([a, b], golden), holdings=(*build_set_panel([a, b], golden).holdings, np.array([3 * 6 + 4]))
    )
    assert third.compute_digests()[0, 0].tobytes() == before
    assert (
        build_set_panel([a, b], [*golden, True]).compute_digests()[0, 0].tobytes() != before
    )  # one more gold term to be found
    renumbered = build_set_panel([{(1, 0), (0, 1)}, {(1, 2), (2, 3)}], [False, True, True, False])
    assert renumbered.compute_digests()[0, 0].tobytes() == before


def test_of_sums_each_contributing_unit_counts_with_its_address_and_size():
    panel = panel_kinds.build_sum_panels()["decimals"]
    pair = panel.select([0])
    before = pair.compute_digests()[0, 0].tobytes()
    k = int(np.flatnonzero(pair.values[:, 0, 0] != pair.values[:, 1, 0])[0])
    changed = []
    for name in ("addresses", "sizes"):
        array = getattr(pair, name).copy()
        array[k] += 100
        changed.append(replace(pair, **{name: array}).compute_digests()[0, 0].tobytes())
    values = pair.values.copy()
    values[k] += 1  # both systems alike: the difference stays, and so do sums of differences
    changed.append(replace(pair, values=values).compute_digests()[0, 0].tobytes())
    assert len({before, *changed}) == 4
    equal_unit = int(np.flatnonzero((pair.values[:, 0] == pair.values[:, 1]).all(axis=1))[0])
    is_kept = np.arange(len(pair.addresses)) != equal_unit
    without = replace(pair, addresses=pair.addresses[is_kept], values=pair.values[is_kept], sizes=pair.sizes[is_kept])
    assert (
        without.compute_digests()[0, 0].tobytes() == before
    )  # what both contribute alike is kept for other systems' sake


MAKE_SPEC = importlib.util.spec_from_file_location("kept_make", KEPT_FOLDER / "make.py")
MAKE = importlib.util.module_from_spec(MAKE_SPEC)
MAKE_SPEC.loader.exec_module(MAKE)


def read_comparisons(store):
    with closing(sqlite3.connect(store)) as connection:
        rows = connection.execute("SELECT digest, label FROM comparisons").fetchall()
    return {digest if isinstance(digest, str) else digest.hex(): label for digest, label in rows}


@pytest.fixture(scope="module")
def migrated(tmp_path_factory):
    """Return a function that makes the store of an earlier version, brings it to the present schema, and returns its path."""

    @functools.cache
    def build_store(version):
        store = tmp_path_factory.mktemp(version) / "kept.sqlite"
        with closing(sqlite3.connect(store)) as connection:
            connection.executescript((KEPT_FOLDER / f"{version}.sql").read_text())
        before = read_comparisons(store)
        with open_store(str(store), "other"):
            assert read_comparisons(store) == before
        return store

    return build_store


@pytest.mark.parametrize("part", MAKE.PLANS)
@pytest.mark.parametrize("version", sorted(path.stem for path in KEPT_FOLDER.glob("store_*.sql")))
def test_a_plan_counts_nothing_again_that_an_earlier_version_has_kept(version, part, migrated, tmp_path, monkeypatch):
    MAKE.write(tmp_path)
    store = tmp_path / "kept.sqlite"
    shutil.copy(migrated(version), store)
    before = read_comparisons(store)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("own_metrics", None)
    outcome = run_plan(load_plan(tmp_path / f"{part}.toml"), cluster="none")
    sys.modules.pop("own_metrics", None)
    new = Counter(label for digest, label in read_comparisons(store).items() if digest not in before)
    n_exact = new.pop("exact p", 0)  # which none of these versions had
    assert new.keys() == RECOUNTED_COMPARISONS.get(version, {}).get(part, {}).keys()
    assert new or outcome.n_counted <= n_exact  # the gate counts some of them


def define(decorator, name, **options):
    """Return a data class of this module made by a decorator, and one that inherits from it."""

    class Entry:
        """An entry."""

        size: int
        label: str = "none"
        parts: list = dataclasses.field(default_factory=list, compare=False)
        secret: int = dataclasses.field(default=7, repr=False)
        cache: dict = dataclasses.field(init=False, default_factory=dict, repr=False, compare=False)
        limit: typing.ClassVar[int] = 9

        def __post_init__(self):
            if self.size > self.limit:
                raise ValueError("too large")

    class Wider(decorator(**options)(Entry)):
        """An entry with a width."""

        width: float = 0.5

    classes = []
    for made, suffix in ((Wider.__mro__[1], ""), (decorator(**options)(Wider), "Wider")):
        made.__qualname__ = made.__name__ = f"{name}{suffix}"
        made.__module__ = __name__
        globals()[made.__name__] = made  # for pickle
        classes.append(made)
    return classes


def try_call(function, *values, **named):
    try:
        return function(*values, **named)
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error).rpartition(".")[2]
