"""Turn the keys of a plan into a plan: resolve paths, expand patterns, fill in defaults."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from sigdask.analysis.comparison.stopping.compatibility import default_adjustment
from sigdask.errors import InputError
from sigdask.execution import clusters
from sigdask.execution.clusters.description import ClusterSpec, parse_description
from sigdask.formats import Options, Source
from sigdask.io.text_files import read_text
from sigdask.nightly.gate import FALSE_ALARMS_PER_YEAR, Equivalent, NonInferior, NotWorse, Rule, web_hook
from sigdask.nightly.plan import paths
from sigdask.nightly.plan.candidates import build_rankings
from sigdask.nightly.plan.cross_checks import check_comparisons, check_plan
from sigdask.nightly.plan.errors import Complaint, format_value, suggest_nearest
from sigdask.nightly.plan.keys import (
    BaselineKeys,
    BesagCliffordKeys,
    EquivalentKeys,
    GateKeys,
    NonInferiorKeys,
    PlanKeys,
    TestSetKeys,
)
from sigdask.nightly.plan.labellings import build_independence_tests
from sigdask.nightly.plan.lines import PlanKey
from sigdask.nightly.plan.model import OUTPUTS, Gate, NotifySettings, Plan, ReportFiles, TestSet
from sigdask.options import Adjust
from sigdask.statistics.classical.names import parse_tests as classical_tests
from sigdask.statistics.stopping import BesagClifford, ConfidenceSequence, Stopping

DATABASES = ("sqlite", "postgresql")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _PlanLocation:
    """The folder that relative paths start from, and the list that collects complaints."""

    folder: Path
    complaints: list[Complaint]

    def complain(self, key: PlanKey, text: str) -> None:
        self.complaints.append(Complaint(key, text))

    def attempt(self, key: PlanKey, call: Callable[..., _T], *arguments: Any) -> _T | None:
        """Call a function, and turn an InputError into a complaint."""
        try:
            return call(*arguments)
        except InputError as error:
            self.complain(key, str(error))
            return None

    def find_path(
        self, key: PlanKey, text: str | None, find: Callable[[str, Path], Path] = paths.resolve_existing
    ) -> Path | None:
        return None if text is None else self.attempt(key, find, text, self.folder)


def resolve_plan(keys: PlanKeys, path: Path, complaints: list[Complaint], numbers: Sequence[int]) -> Plan:
    """Return the plan that valid keys describe.

    Parameters
    ----------
    keys : PlanKeys
        Those that are valid each by itself.
    path : Path
        The plan file, absolute; other paths are relative to its folder.
    complaints : list of Complaint
        Added to. When it is not empty, what is returned must not be used; what does not follow from
        earlier complaints is judged all the same.
    numbers : sequence of int
        Places of the test sets in the file.
    """
    location = _PlanLocation(path.parent, complaints)
    is_valid = not complaints
    tests = location.attempt(("tests",), classical_tests, keys.tests) or ()
    test_sets = tuple(
        _build_test_set(entry, keys, location, ("test_set", number), tests)
        for entry, number in zip(keys.test_set, numbers, strict=True)
    )
    plan = Plan(
        path=path,
        name=keys.name or path.stem,
        test_sets=test_sets,
        seed=keys.seed,
        alpha=keys.alpha,
        second_run=keys.second_run,
        adjust=keys.adjust or _choose_adjustment(keys),
        family=keys.family,
        stopping=_build_stopping(keys),
        cluster=_resolve_cluster(keys.cluster, location),
        workers=keys.workers,
        store=_resolve_store(keys.store, path, location),
        report=ReportFiles(
            **{
                name: location.find_path(("report", name), getattr(keys.report, name), paths.resolve_writable)
                for name in OUTPUTS
            },
            layout=keys.report.layout,
            digits=keys.report.digits,
            percent=keys.report.percent,
            figures=location.find_path(("report", "figures"), keys.report.figures, paths.resolve_folder),
            figure_format=keys.report.figure_format,
        ),
        gate=_build_gate(keys.gate, keys, location) if keys.gate is not None else None,
        rankings=build_rankings(keys, location.folder, location.complain),
        independence=build_independence_tests(keys, location.folder, location.complain),
    )
    if is_valid:
        check_plan(plan, location.complain)
    return plan


def _build_test_set(
    entry: TestSetKeys, keys: PlanKeys, location: _PlanLocation, key: PlanKey, tests: tuple[str, ...]
) -> TestSet:
    baseline, pairs = _split_pairs(entry.pairs or keys.pairs)
    metrics = entry.metrics or keys.metrics or ()
    test_set = TestSet(
        name=entry.name,
        sources=_find_sources(entry, location, (*key, "systems")),
        gold=location.find_path(
            (*key, "gold"), entry.gold, partial(paths.resolve_existing, folders=paths.can_read_folders(entry.format))
        ),
        format=entry.format,
        options=replace(_build_options(entry, location, key), metrics=metrics),
        metrics=metrics,
        unit=entry.unit,
        by=entry.by,
        baseline=baseline,
        pairs=pairs,
        alternative=entry.alternative or keys.alternative,
        method=entry.method or keys.method,
        exact_limit=keys.exact_limit if entry.exact_limit is None else entry.exact_limit,
        trials=entry.trials or keys.trials,
        tests=tests if entry.tests is None else location.attempt((*key, "tests"), classical_tests, entry.tests) or (),
        interval=entry.interval or keys.interval,
        confidence=entry.confidence or keys.confidence,
        resamples=entry.resamples or keys.resamples,
    )
    check_comparisons(test_set, entry, key, location.complain)
    return test_set


def _split_pairs(pairs: Any) -> tuple[str | None, tuple[tuple[str, str], ...] | None]:
    if isinstance(pairs, BaselineKeys):
        return pairs.baseline, None
    return None, None if pairs == "all" else pairs


def _find_sources(entry: TestSetKeys, location: _PlanLocation, key: PlanKey) -> tuple[Source, ...]:
    by_files: dict[tuple[Path, ...], Source] = {}
    for source in paths.find_sources(entry.systems, location.folder, entry.format):
        if isinstance(source, InputError):
            location.complain(key, str(source))
            continue
        files = source.parts or (source.path,)
        if files in by_files:
            location.complain(key, f"found {format_value(str(source.path))} twice")
        by_files[files] = source
    return tuple(by_files.values())


def _build_options(entry: TestSetKeys, location: _PlanLocation, key: PlanKey) -> Options:
    references = (entry.references,) if isinstance(entry.references, str) else entry.references or ()
    reference_paths = [location.find_path((*key, "references"), text) for text in references]
    settings: dict[str, Any] = {
        "id_column": entry.id,
        "gold_column": entry.gold_column,
        "prediction_column": entry.prediction_column,
        "system_column": entry.system_column,
        "score_column": entry.score_column,
        "groups": tuple(dict.fromkeys(name for name in (entry.unit, entry.by) if name is not None and name != "item")),
        "ignore": entry.ignore or (),
        "label_map": tuple((entry.map or {}).items()),
        "align": entry.align,
        "decimal": entry.decimal,
        "missing": entry.missing,
        "min_items": entry.min_items,
        "references": tuple(path for path in reference_paths if path is not None),
        "documents": location.find_path((*key, "documents"), entry.documents),
        "group_file": location.find_path((*key, "groups"), entry.groups),
        "most_unpacked": entry.most_unpacked,
        "name": entry.name,
    }
    return location.attempt((*key, "ignore"), lambda: Options(**settings)) or Options()


def _choose_adjustment(keys: PlanKeys) -> Adjust | None:
    """Return the default adjustment of p-values for the plan's stopping rule, or None if it has no such rule."""
    rule = _build_stopping(keys)
    return None if rule is None else default_adjustment(rule)


def _build_stopping(keys: PlanKeys) -> Stopping | None:
    if keys.stopping is None:
        return None
    if isinstance(keys.stopping, BesagCliffordKeys):
        return BesagClifford(keys.stopping.h)
    return ConfidenceSequence(keys.alpha, keys.stopping.epsilon)


def _resolve_cluster(cluster: str | Mapping[str, Any], location: _PlanLocation) -> ClusterSpec:
    """Return the cluster as `--cluster` takes it: a name, or a table with the keys of a cluster file."""
    key: PlanKey = ("cluster",)
    if isinstance(cluster, str):
        return _check_cluster_text(cluster, location, key)
    value = cluster.get("file", cluster.get("class"))
    kind = "file" if "file" in cluster else "class"
    if not isinstance(value, str) or not value.strip():
        found_text = f"{kind} = {format_value(value)}" if kind in cluster else format_value(cluster)
        location.complain(key, f"found {found_text}, expected class = NAME and its options, or file = FILE.toml")
    elif kind == "file":
        if len(cluster) > 1:
            location.complain(key, f"found {format_value(cluster)}, expected `file` alone; options stand in the file")
        return _check_cluster_file(str(value), location, (*key, "file"))
    else:
        return (
            location.attempt(key, partial(parse_description, source="[cluster]", folder=location.folder), cluster)
            or cluster
        )
    return cluster


def _check_cluster_text(text: str, location: _PlanLocation, key: PlanKey) -> str:
    if text.endswith((".json", ".toml")):
        return _check_cluster_file(text, location, key)
    if text not in clusters.CLUSTER_WORDS and not text.startswith(("tcp://", "tls://")):
        location.complain(
            key,
            f"found {format_value(text)}, expected {clusters.KINDS}; "
            f"{suggest_nearest(text, clusters.CLUSTER_WORDS, 'words')}",
        )
    return text


def _check_cluster_file(text: str, location: _PlanLocation, key: PlanKey) -> str:
    path = location.find_path(key, text, paths.resolve_local)
    if path is not None and path.suffix != ".json":
        location.attempt(key, clusters.read, path)
    return str(path or text)


def find_store(text: str | None, path: Path) -> str:
    """Return the file or URL of a plan's database, even if the rest of the plan is invalid."""
    if text is not None and "://" not in text:
        return str(paths.resolve_path(text, path.parent))
    return _resolve_store(text, path, _PlanLocation(path.parent, []))


def _resolve_store(text: str | None, path: Path, location: _PlanLocation) -> str:
    """Return the file or URL of the database; by default a file next to the plan."""
    if text is None:
        return str(path.with_suffix(".sqlite"))
    scheme, separator, rest = text.partition("://")
    if not separator:
        file = location.find_path(("store",), text, paths.resolve_database)
        return str(file)
    if scheme.partition("+")[0] not in DATABASES:
        location.complain(
            ("store",),
            f"found {format_value(scheme)}://…, expected a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE; "
            f"{suggest_nearest(scheme, DATABASES, 'databases')}",
        )
    elif scheme.startswith("sqlite") and rest.startswith("/") and not rest.startswith("//"):
        file = location.find_path(("store",), rest[1:], paths.resolve_database)
        return str(file)
    return text


def _build_gate(gate_keys: GateKeys, keys: PlanKeys, location: _PlanLocation) -> Gate:
    notify = NotifySettings(
        command=_find_command(gate_keys.command or (), location),
        webhook=_resolve_webhook(gate_keys.webhook, location),
        body=_load_template(gate_keys.webhook_body, location),
        when=gate_keys.when,
        timeout=gate_keys.timeout,
    )
    if gate_keys.fdr != "none" and gate_keys.false_alarms_per_year is not None:
        text = (
            f'found {gate_keys.false_alarms_per_year:g} and fdr = "{gate_keys.fdr}", expected one of the two; '
            "each gives the level"
        )
        location.complain(("gate", "false_alarms_per_year"), text)
    return Gate(
        rules=tuple(_build_rule(rule, keys, gate_keys) for rule in gate_keys.rules),
        runs_per_year=gate_keys.runs_per_year,
        fdr=gate_keys.fdr,
        junit=location.find_path(("gate", "junit"), gate_keys.junit, paths.resolve_writable),
        json=location.find_path(("gate", "json"), gate_keys.json, paths.resolve_writable),
        notify=notify,
    )


def _build_rule(rule: Any, keys: PlanKeys, gate: GateKeys) -> Rule:
    shared = {
        "alpha": rule.alpha or keys.alpha,
        "baseline": rule.baseline,
        "test_sets": rule.test_sets or (),
        "metrics": rule.metrics or (),
    }
    if isinstance(rule, NonInferiorKeys):
        return NonInferior(margin=rule.margin, **shared)
    if isinstance(rule, EquivalentKeys):
        return Equivalent(margin=rule.margin, **shared)
    adjust: Literal["holm", "plan", "none"] = "holm" if keys.adjust in {None, "none"} else "plan"
    false_alarms = gate.false_alarms_per_year
    if false_alarms is None and rule.alpha is None and gate.fdr == "none":
        false_alarms = FALSE_ALARMS_PER_YEAR
    return NotWorse(
        adjust=rule.adjust or adjust, detectable=rule.detectable, false_alarms_per_year=false_alarms, **shared
    )


def _find_command(command: tuple[str, ...], location: _PlanLocation) -> tuple[str, ...]:
    """Return the command with its program resolved relative to the plan or on the PATH."""
    if not command:
        return command
    program = str(location.folder / command[0]) if "/" in command[0] else command[0]
    program_path = None if "\0" in "".join(command) else shutil.which(program)
    if program_path is None:
        location.complain(
            ("gate", "command"), f"found {format_value(command[0])}, expected a program that exists and may be run"
        )
        return command
    return (program_path, *command[1:])


def _resolve_webhook(url: str | None, location: _PlanLocation) -> str | None:
    """Return the URL; $NAME reads it from the environment, where an empty value means no web hook."""
    key: PlanKey = ("gate", "webhook")
    if url is not None and url.startswith("$"):
        name = url[1:]
        if name not in os.environ:
            location.complain(
                key, f"found {format_value(url)}, and no such environment variable is set; empty is no web hook"
            )
            return None
        url = os.environ[name]
        found_text = f"that of the environment variable {name}"
    else:
        found_text = "" if url is None else format_value(url)
    if not url:
        return None
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_url = False
    if not is_url or any(c.isspace() for c in url):
        location.complain(key, f"found {found_text}, expected http://HOST/… or https://HOST/…")
    return url


def _load_template(text: str | None, location: _PlanLocation) -> str | None:
    """Return the template in a file, after a check that it renders valid JSON."""
    key: PlanKey = ("gate", "webhook_body")
    path = location.find_path(key, text)
    if path is None:
        return None
    template = location.attempt(key, read_text, path, "a template of JSON")
    if template is not None:
        location.attempt(key, web_hook.check_template, template)
    return template
